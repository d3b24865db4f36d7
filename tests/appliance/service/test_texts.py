"""The files of a service: what they allow on its gateway, and what systemd says of them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from appliance.service.plan import Plan, plan_of
from appliance.service.texts import files_of, nodes, quoted
from bus.errors import TopologyError
from tests.appliance.service.plans import RULES, TEXT, UNIT, needs_systemd, plan, unit, values
from topologies.loading.loader import loads


def test_a_service_may_open_the_devices_of_its_gateway_and_no_other() -> None:
    assert values(unit(), "DeviceAllow") == ["/dev/char/89:1 rw", "char-ttyUSB rw", "char-ttyACM rw"]
    assert values(unit(), "DevicePolicy") == ["closed"]
    assert "PrivateDevices=yes" not in unit()
    rules = files_of(plan())[RULES]
    assert 'KERNEL=="i2c-1", GROUP="buscoupler"' in rules
    assert 'SYMLINK=="serial/by-id/usb-FTDI_A9-if00", GROUP="buscoupler"' in rules


def test_a_gateway_without_devices_sees_none() -> None:
    assert values(unit("gw-b"), "DeviceAllow") == []
    assert "PrivateDevices=yes" in unit("gw-b")
    assert RULES not in files_of(plan("gw-b"))


def test_it_may_have_can_sockets_and_low_ports_only_where_the_topology_wants_them() -> None:
    assert "AF_CAN" in values(unit(), "RestrictAddressFamilies")[0].split()
    assert "AF_CAN" not in values(unit("gw-b"), "RestrictAddressFamilies")[0].split()
    assert values(unit(), "CapabilityBoundingSet") == values(unit(), "AmbientCapabilities") == [""]
    for key in ("CapabilityBoundingSet", "AmbientCapabilities"):
        assert values(unit("gw-b"), key) == ["CAP_NET_BIND_SERVICE"]


def test_it_writes_where_the_topology_writes_and_keeps_keys_for_its_group() -> None:
    assert values(unit(), "ReadWritePaths") == ["-/run/plant", "-/srv/capture"]
    lines = files_of(plan())["/etc/tmpfiles.d/buscoupler.conf"].splitlines()[1:]
    assert lines == [
        "d /etc/buscoupler 0750 root buscoupler -",
        "z /etc/buscoupler/plant.key 0640 root buscoupler -",
        "d /run/plant 0750 buscoupler buscoupler -",
        "d /srv/capture 0750 buscoupler buscoupler -",
    ]


def test_the_watchdog_leaves_a_lease_the_time_to_go_to_another_gateway() -> None:
    assert values(unit(), "WatchdogSec") == ["10"]
    slow = TEXT.replace('"tcp://127.0.0.1:9942"}', '"tcp://127.0.0.1:9942", lease_ms: 5000}')
    assert values(unit(text=slow), "WatchdogSec") == ["20"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/dev/ttyUSB3", ("/dev/char/188:3",)),
        ("/dev/ttyS1", ("/dev/char/4:65",)),
        ("/dev/ttyAMA0", ("/dev/char/204:64",)),
        ("/dev/gpiochip0", ("char-gpiochip",)),
        ("/dev/sensor", ("/dev/sensor",)),
        ("/dev/ttyACM1", ("/dev/char/166:1",)),
        ("/dev/ttyX9", ("/dev/ttyX9",)),
    ],
)
def test_a_device_is_allowed_by_its_number_so_that_it_can_be_plugged_in_later(
    path: str, allowed: tuple[str, ...]
) -> None:
    assert nodes(path) == allowed


ODD = [
    "a b",
    "50%",
    "%h",
    "$HOME",
    "${HOME}",
    "a;b",
    "#x",
    "[x]*?",
    "ä",
    "{x}",
    "a|b",
    "~",
    ",=",
    "-x",
    "@x",
]


HOSTILE = [
    "a\nb",
    "a\rb",
    "a\tb",
    "a\x00b",
    "\x1b[2J",
    "a\x85b",
    "a\u2028b",
    "a\u202eb",
    "a\u200bb",
    'a"b',
    "it's",
    "a\\",
    "a\\\nb",
]


PLACES = {
    "a UART": "/dev/serial/by-id/usb-FTDI_A9-if00",
    "a directory": "/srv/capture",
    "a key": "/etc/buscoupler/plant.key",
}


def odd_plan(place: str, name: str) -> Plan:
    """Return a plan with `name` at the end of the path of the program, of the topology, or in that."""
    if place in PLACES:
        path = f"{PLACES[place].rpartition('/')[0]}/{name}".replace("${", "$${")
        return plan(text=TEXT.replace(PLACES[place], json.dumps(path)))
    program, file = "/opt/true", "/etc/buscoupler/plant.yaml"
    paths = (f"/opt/{name}", file) if place == "the program" else (program, f"/etc/buscoupler/{name}")
    return plan_of(loads(TEXT, "t.yaml"), "gw-a", "buscoupler", [paths[0]], paths[1])


EVERYWHERE = [*PLACES, "the program", "the file"]


@pytest.mark.parametrize("place", EVERYWHERE)
def test_no_path_makes_a_line_of_a_file_that_root_installs(place: str) -> None:
    lines = {path: text.count("\n") for path, text in files_of(odd_plan(place, "plain")).items()}
    for name in ODD:
        made = files_of(odd_plan(place, name))
        assert {path: text.count("\n") for path, text in made.items()} == lines, name
    for name in HOSTILE:
        with pytest.raises(TopologyError, match=r"the (name|text) holds (U\+[0-9A-F]+|`.`)") as caught:
            odd_plan(place, name)
        assert str(caught.value).isprintable(), name


@needs_systemd
def test_systemd_makes_the_very_directories_of_a_plan(tmp_path: Path) -> None:
    (tmp_path / "etc/passwd").parent.mkdir()
    (tmp_path / "etc/passwd").write_text("buscoupler:x:0:0::/:/bin/false\n")
    (tmp_path / "etc/group").write_text("buscoupler:x:0:\n")
    file = tmp_path / "t.conf"
    for name in ODD:
        lines = files_of(odd_plan("a directory", name))["/etc/tmpfiles.d/buscoupler.conf"].splitlines()
        file.write_text(lines[-1] + "\n")
        subprocess.run(["systemd-tmpfiles", "--create", f"--root={tmp_path}", str(file)], check=True)
    assert sorted(path.name for path in (tmp_path / "srv").iterdir()) == sorted(ODD)


@needs_systemd
def test_systemd_takes_only_the_very_file_for_a_key(tmp_path: Path) -> None:
    """`z` of tmpfiles.d takes a pattern: the modes of neighbours stay."""
    (tmp_path / "etc/buscoupler").mkdir(parents=True)
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/:/bin/false\n")
    (tmp_path / "etc/group").write_text("buscoupler:x:0:\n")
    for name in ("[x]*?", "xab"):
        (tmp_path / "etc/buscoupler" / name).write_text("")
        (tmp_path / "etc/buscoupler" / name).chmod(0o600)
    lines = files_of(odd_plan("a key", "[x]*?"))["/etc/tmpfiles.d/buscoupler.conf"].splitlines()
    file = tmp_path / "t.conf"
    file.write_text(next(line for line in lines if line.startswith("z ")) + "\n")
    subprocess.run(["systemd-tmpfiles", "--create", f"--root={tmp_path}", str(file)], check=True)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "etc/buscoupler").iterdir()}
    assert modes == {"[x]*?": 0o640, "xab": 0o600}


@needs_systemd
def test_systemd_finds_no_fault_in_units_with_odd_paths(tmp_path: Path) -> None:
    paths = []
    for number, name in enumerate(ODD):
        for place in EVERYWHERE:
            paths.append(tmp_path / f"buscoupler-{number}-{EVERYWHERE.index(place)}.service")
            text = files_of(odd_plan(place, name))[UNIT]
            if place == "the program":  # it must be there
                text = text.replace("/opt/", f"{tmp_path}/")
                (tmp_path / name).write_text("#!/bin/sh\n")
                (tmp_path / name).chmod(0o755)
            else:
                text = text.replace("/opt/true", "/usr/bin/true")
            paths[-1].write_text(text)
    words = ["systemd-analyze", "verify", "--man=no", *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "buscoupler" not in done.stderr


@pytest.mark.parametrize(("word", "text"), [("a b", '"a b"'), ("50%", "50%%"), ("$x", "$$x")])
def test_words_are_quoted_for_systemd(word: str, text: str) -> None:
    assert quoted(word) == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/etc/buscoupler/plant.key", "/root/plant.key"),
        ("/srv/capture", "/home/me/capture"),
        ("/srv/capture", "/srv/../tmp/capture"),
        ("/run/plant/bus.sock", "/tmp/bus.sock"),
        ("/run/plant/bus.sock", "/run/bus.sock"),
    ],
)
def test_what_a_service_could_not_see_or_own_is_refused(old: str, new: str) -> None:
    with pytest.raises(TopologyError, match=r"a service does not see|belongs to the system"):
        plan(text=TEXT.replace(old, new))


@pytest.mark.parametrize("name", ["", "A", "../x", "a b", "a" * 40])
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(TopologyError, match="is no name for a service"):
        plan(name=name)


@needs_systemd
@pytest.mark.parametrize("gateway", ["gw-a", "gw-b"])
def test_systemd_rates_the_exposure_of_a_service_below_2(gateway: str, tmp_path: Path) -> None:
    path = tmp_path / "buscoupler.service"
    path.write_text(files_of(plan(gateway))[UNIT])
    words = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(path)]
    done = subprocess.run(words, capture_output=True, text=True)
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) < 2.0
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True
    )
    assert "buscoupler" not in done.stderr


@pytest.mark.parametrize(("port", "low"), [(0, False), (1, True), (1023, True), (1024, False)])
def test_ports_below_1024_are_low_and_any_port_is_none(port: int, low: bool) -> None:
    text = TEXT.replace("127.0.0.1:80", f"127.0.0.1:{port}")
    assert plan("gw-b", text).low_ports is low


CANDIDATES = """\
name: plant
gateways:
  gw-a: {address: 10.0.0.1}
  gw-b: {address: 10.0.0.2}
  gw-c: {address: 10.0.0.3}
  gw-d: {address: 10.0.0.4}
brokers: {main: {on: gw-c, listen: "tcp://0.0.0.0:9942"}}
buses:
  shop: {on: gw-d, listen: ["tcp://0.0.0.0:5555"]}
bridges:
  pair:
    on: [gw-a, gw-b]
    pattern: [motor]
    join: [{bus: shop}, {can: {channel: can0}}]
"""


@pytest.mark.parametrize(("gateway", "real_time"), [("gw-a", 1), ("gw-b", 1), ("gw-c", 1), ("gw-d", 0)])
def test_who_claims_or_grants_leases_has_real_time_priority(gateway: str, real_time: bool) -> None:
    lines = unit(gateway, CANDIDATES)
    assert values(lines, "LimitRTPRIO") == ["1"] * real_time
    assert values(lines, "RestrictRealtime") == ["no" if real_time else "yes"]
    assert values(lines, "ExecStart")[0].endswith(" --real-time") == real_time


@pytest.mark.parametrize(("lease_ms", "watchdog_s"), [(2500, 10), (2501, 11), (30_000, 120)])
def test_the_watchdog_waits_for_four_leases(lease_ms: int, watchdog_s: int) -> None:
    text = TEXT.replace("{on: gw-a, listen:", f"{{on: gw-a, lease_ms: {lease_ms}, listen:", 1)
    assert plan(text=text).watchdog_s == watchdog_s


def test_any_port_of_an_address_is_no_low_port() -> None:
    """A TMQ side listens where its host says, for the connections of clients."""
    tmq = "tmq: {brokers: 'tcp://127.0.0.1:9', host: 127.0.0.1}"
    bridges = f"bridges:\n  nets: {{on: gw-b, join: [bus: other, {tmq}]}}"
    text = TEXT.replace("127.0.0.1:80", "127.0.0.1:8080").replace("bridges:", bridges)
    assert not plan("gw-b", text).low_ports
