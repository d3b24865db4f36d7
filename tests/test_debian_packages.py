"""What tests skip without is installed by `make test`: a program that is missing hides its tests."""

import re

from tests.helpers import ROOT

PACKAGES = {
    "avr-gcc": "gcc-avr",
    "cc": "gcc",
    "ip": "iproute2",
    "man": "man-db",
    "modprobe": "kmod",
    "mosquitto_sub": "mosquitto-clients",
    "nanocat": "nanomsg-utils",
    "nngcat": "nng-utils",
    "promtool": "prometheus",
    "ssh": "openssh-client",
    "systemd-analyze": "systemd",
}
"""The Debian package of a program that has another name."""
ELSEWHERE = {
    "setpriv": "of util-linux, which is essential",
    "make": "it runs the tests",
    "podman": "make image-test",
    "micropython": "Debian 12 has none; the emulated board of test_microbit.py runs it",
    "node": "only for the micropython of npm",
}
"""Programs that `make test` does not install, and why."""
MADE = re.compile(r"^TEST_PACKAGES := (.*)$", re.MULTILINE)


def looked_for() -> set[str]:
    """Return the programs that tests look for."""
    texts = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    return {name for text in texts for name in re.findall(r'\bwhich\(\s*"([\w.-]+)"', text)}


def named() -> set[str]:
    """Return the packages that tests name when they are skipped."""
    texts = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    return {name for text in texts for name in re.findall(r'"Debian package ([a-z][\w.+-]*)"', text)}


def installed() -> list[str]:
    """Return what `make test` installs."""
    found = MADE.search((ROOT / "Makefile").read_text())
    assert found is not None
    return found[1].split()


def test_what_tests_look_for_is_installed() -> None:
    wanted = looked_for() - ELSEWHERE.keys()
    assert len(wanted) > 20
    assert {PACKAGES.get(program, program) for program in wanted} - set(installed()) == set()


def test_what_tests_name_is_installed() -> None:
    assert {"ser2net", "libmodbus-dev"} <= named()
    assert named() - {"util-linux"} - set(installed()) == set()
