"""The example of a medium in a distribution of its own, installed: nothing in this repository names it."""

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT
from tests.helpers.installed import Installed
from tests.helpers.ports import free_port

TOPOLOGY = """
name: t
gateways: {{a: {{address: 127.0.0.1}}}}
buses: {{plant: {{on: a, listen: "tcp://127.0.0.1:{tcp}"}}}}
bridges: {{b: {{on: a, join: [bus: plant, unicast: {{host: 127.0.0.1, port: {far}, local_port: {near}}}]}}}}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(ROOT / "examples" / "medium-udp", tmp_path_factory.mktemp("installed"))


@pytest.mark.timeout(120)
def test_it_passes_the_conformance_suite_from_outside(installed: Installed) -> None:
    done = installed.own_tests()
    assert done.returncode == 0, done.stdout


def test_commands_take_it_as_one_of_ours(installed: Installed) -> None:
    tcp, near, far = (free_port() for _ in range(3))
    file = installed.place / "t.yaml"
    file.write_text(TOPOLOGY.format(tcp=tcp, near=near, far=far))
    assert installed.buscoupler("check", str(file)) == f"{file}: ok\n"
    assert f"unicast 127.0.0.1:{far}" in installed.buscoupler("show", str(file))
    assert "unicast:HOST:PORT?local_port=9950" in installed.buscoupler("send", "--help")
    word = f"unicast:127.0.0.1:{near}?local_port={far}"
    with (
        installed.process("run", str(file)),
        installed.process("recv", f"tcp://127.0.0.1:{tcp}", "--pattern", "fridge", "--count", "1") as heard,
    ):
        while heard.poll() is None:  # a bus remembers nothing: speak until somebody listens
            installed.buscoupler("send", word, "fridge/temp", "--data", "21.5")
        assert heard.stdout is not None
        assert "21.5" in heard.stdout.read()
        assert heard.returncode == 0


def test_without_it_a_file_that_names_it_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "buscoupler", "send", "unicast:127.0.0.1:9", "a"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "'unicast:127.0.0.1:9' is no endpoint" in done.stderr
