"""`check --here`: one line for each thing that this machine lacks, at its place in the file."""

import asyncio
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from appliance.commandline.cli import main
from appliance.local.places import runtime_directory
from appliance.machine import here
from appliance.machine.here import find_lacking
from appliance.machine.turns import worst_s
from bus.errors import BusError
from bus.machine.holders import words_of_process
from bus.needs import Device, Directory, Library, Listening, Lookup, Probe, Readable
from tests.helpers.appliances import appliance_of
from tests.helpers.certificates import own_tls
from tests.helpers.ports import free_port
from topologies.checks.checker import check
from topologies.checks.needs import needs_of
from topologies.loading.loader import loads
from topologies.wiring.segments import wired

WHOLE = """\
name: whole
gateways:
  near: {address: 127.0.0.1, node: 1}
  far: {address: 192.0.2.7, node: 2}
brokers: {m: {on: far, listen: "tcp://0.0.0.0:9942"}}
buses:
  p:
    on: near
    listen: ["tcp://127.0.0.1:%d", {url: "wss://127.0.0.1:7/x", tls: {cert_file: /no/cert.pem}}]
    dial: "tcp://bus.invalid:5"
  q: {on: far, listen: "tcp://0.0.0.0:5"}
bridges:
  x:
    on: near
    join:
      - bus: p
      - uart: /dev/no-such
      - i2c: {bus: 250, targets: [8]}
      - can: {channel: can250}
      - multicast: {group: 239.0.0.1, port: 5, interface: nic9}
      - tcp: {host: 127.0.0.1, port: 6, mode: listen}
      - tmq: {brokers: "tcp://broker.invalid:9942", host: 127.0.0.1, port: 8}
devices: {t: {on: near, tap: p, directory: /proc/self/status/x}}
"""


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_needs_of_a_gateway() -> None:
    needs = [need for _, need in needs_of(wired(loads(WHOLE % 4)), "near")]
    assert {need for need in needs if isinstance(need, Listening)} == {
        Listening("127.0.0.1", port) for port in (4, 6, 7, 8)
    }
    assert {need.path for need in needs if isinstance(need, Device)} == {"/dev/no-such", "/dev/i2c-250"}
    assert {need.extra for need in needs if isinstance(need, Library)} == {
        *("uart", "i2c", "capture"),  # SocketCAN needs none
        "",  # websockets, of the distribution itself
    }
    probes = {need.arguments[0] for need in needs if isinstance(need, Probe)}
    assert probes == {"can250", "nic9"}
    for wanted in (
        Lookup("bus.invalid"),
        Lookup("broker.invalid", ipv4=True),
        Readable("/no/cert.pem"),
        Directory("/proc/self/status/x"),
    ):
        assert wanted in needs
    assert [need for _, need in needs_of(wired(loads(WHOLE % 4)), "far")][:1] == [Listening("0.0.0.0", 5)]


def test_each_lack_has_a_line_and_a_place(taken: int) -> None:
    found = find_lacking(loads(WHOLE % taken, "w.yaml"), None)
    texts = "\n".join(map(str, found))
    for line, words in (
        (9, f"TCP port {taken}: Address already in use"),
        (9, "/no/cert.pem: No such file"),
        (10, "bus.invalid cannot be looked up"),
        (17, "/dev/no-such: No such file"),
        (18, "modprobe i2c-dev"),
        (19, "can"),
        (20, "no interface nic9"),
        (22, "broker.invalid cannot be looked up"),
        (23, "/proc/self/status is no directory"),
    ):
        assert any(f"w.yaml:{line}:" in one and words in one for one in texts.splitlines()), (words, texts)


def test_a_tmq_side_listens_at_an_address_of_this_machine_also_at_any_port() -> None:
    text = """\
name: t
gateways: {a: }
bridges: {x: {on: a, join: [{uart: /dev/null}, {tmq: {brokers: "tcp://127.0.0.1:9", host: 192.0.2.7}}]}}
"""
    (one,) = find_lacking(loads(text), None)
    assert "cannot listen at 192.0.2.7: this machine does not have that address" in one.text


def test_a_gateway_elsewhere_is_looked_for_only_if_it_is_wanted(taken: int) -> None:
    found = find_lacking(loads(WHOLE % taken), "far")
    assert ["192.0.2.7 is no address of this machine" in one.text for one in found] == [True, False]
    assert found[0].level == "warning"
    (one,) = find_lacking(loads(WHOLE % taken), "nobody")
    assert 'no gateway "nobody"; known here: near, far' in one.text
    (one,) = find_lacking(loads((WHOLE % taken).replace("127.0.0.1, node", "192.0.2.8, node")), None)
    assert "Choose with --gateway: near, far" in one.text


def test_names_that_make_the_path_of_a_socket_too_long() -> None:
    text = "name: %s\ngateways: {%s: }\nbuses: {p: {on: %s}}"
    (one,) = find_lacking(loads(text % ("t" * 60, "a" * 60, "a" * 60)), None)
    assert one.level == "warning"
    assert "is too long for a socket" in one.text
    assert find_lacking(loads(text % ("t", "a", "a")), None) == []


def test_the_command(taken: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        f"name: t\ngateways: {{a: }}\nbuses: {{p: {{on: a, listen: 'tcp://127.0.0.1:{taken}'}}}}\n"
    )
    assert main(["check", str(file)]) == 0
    assert main(["check", "--here", str(file)]) == 1
    assert re.search(r":3:\d+: error: buses.p.listen.*: cannot listen at 127.0.0.1", capsys.readouterr().out)
    file.write_text(f"name: t\ngateways: {{a: }}\nbuses: {{p: {{on: a, listen: 'ipc://{tmp_path}/s'}}}}\n")
    assert main(["check", "--here", "--gateway", "a", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: ok\n"
    with pytest.raises(SystemExit) as stopped:
        main(["check", "--gateway", "a", str(file)])
    assert stopped.value.code == 2


LACKING = {
    "port in use": ("buses: {p: {on: a, listen: 'tcp://127.0.0.1:%(port)d'}}", "in use"),
    "WebSocket port in use": ("buses: {p: {on: a, listen: 'ws://127.0.0.1:%(port)d/x'}}", "in use"),
    "broker's port in use": ("brokers: {m: {on: a, listen: 'tcp://127.0.0.1:%(port)d'}}", "in use"),
    "stream's port in use": (
        "bridges: {x: {on: a, join: [uart: /dev/x, tcp: {host: 127.0.0.1, port: %(port)d, mode: listen}]}}",
        "in use",
    ),
    "socket in use": ("buses: {p: {on: a, listen: 'ipc://%(path)s'}}", "in use"),
    "no certificate": (
        "buses: {p: {on: a, listen: {url: 'wss://127.0.0.1:0/x', tls: {cert_file: /no/cert.pem}}}}",
        "/no/cert.pem",
    ),
    "no authority": (
        "buses: {p: {on: a, dial: {url: 'wss://127.0.0.1:5/x', tls: {ca_file: /no/ca.pem}}}}",
        "/no/ca.pem",
    ),
    "unknown adapter": (
        "bridges: {x: {on: a, join: [uart: /dev/x, can: {channel: can0, interface: mypcie}]}}",
        "unknown interface",
    ),
}
"""What `run` refuses because of this machine, and some words of what `check --here` says about it."""
LATE = {
    "address of no interface": ("buses: {p: {on: a, listen: 'tcp://192.0.2.1:5'}}", "that address"),
    "name of nobody": ("buses: {p: {on: a, listen: 'tcp://nobody.invalid:5'}}", "nobody.invalid"),
    "broker of nobody": ("brokers: {m: {on: a, listen: 'tcp://nobody.invalid:5'}}", "nobody.invalid"),
    "no directory for a socket": ("buses: {p: {on: a, listen: 'ipc:///proc/no/s'}}", "/proc"),
}
"""What `run` waits for, and `check --here` finds."""


@pytest.mark.parametrize("name", LACKING)
async def test_what_run_refuses_because_of_this_machine_is_found(
    name: str, taken: int, socket_path: Path
) -> None:
    text, words = LACKING[name]
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_path))
        server.listen()
        whole = "name: t\ngateways: {a: {node: 1}}\n" + text % {"port": taken, "path": socket_path}
        topology = loads(whole)
        assert [finding for finding in check(topology) if finding.level == "error"] == []
        found = find_lacking(topology, None)
        assert any(words in finding.text and finding.line == 3 for finding in found), found
        with pytest.raises(BusError):
            appliance_of(topology, "a").open(asyncio.get_running_loop())


@pytest.mark.parametrize("name", LATE)
async def test_what_run_waits_for_is_found(name: str) -> None:
    text, words = LATE[name]
    topology = loads("name: t\ngateways: {a: {node: 1, status: {serve: false}}}\n" + text)
    found = find_lacking(topology, None)
    assert any(words in finding.text and finding.line == 3 for finding in found), found
    appliance = appliance_of(topology, "a")
    appliance.open(asyncio.get_running_loop())
    try:
        assert [row.link.state for part in appliance.parts.values() for row in part.rows] != ["up"]
    finally:
        appliance.close()


def test_the_port_and_the_files_of_the_status_page_are_looked_at(taken: int, tmp_path: Path) -> None:
    text = "name: t\ngateways:\n  a: {status: {%s}}\nbuses: {p: {on: a}}\n"
    page = f"listen: 'https://127.0.0.1:{taken}', tls: {{cert_file: /no/cert.pem}}, token_file: /no/token"
    found = find_lacking(loads(text % page), None)
    for words in (f"TCP port {taken}: Address already in use", "/no/cert.pem: No such", "/no/token: No such"):
        assert any(words in one.text and (one.level, one.line) == ("error", 3) for one in found), found
    assert find_lacking(loads(text % "serve: false"), None) == []
    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "token").chmod(0o644)
    (one,) = find_lacking(loads(text % f"token_file: {tmp_path / 'token'}"), None)
    assert (one.level, f"run chmod 0600 {tmp_path / 'token'}" in one.text) == ("warning", True)


@pytest.mark.parametrize("place", ["buses", "devices"])
def test_a_secret_that_others_can_read_is_a_warning(tmp_path: Path, place: str) -> None:
    own_tls(tmp_path)
    (tmp_path / "own.pem").chmod(0o644)
    bus = "{p: {on: a, listen: {url: 'tls+tcp://127.0.0.1:0', tls: {cert_file: %s}}}}"
    upload = "{u: {on: a, upload: /tmp/caps, to: 's3://b/c', credentials: %s}}"
    text = f"{place}: {bus if place == 'buses' else upload}" % (tmp_path / "own.pem")
    topology = loads(f"name: t\ngateways: {{a: {{}}}}\n{text}\n")
    (found,) = find_lacking(topology, None)
    assert (found.level, found.line) == ("warning", 3)
    assert found.text.endswith(f"run chmod 0600 {tmp_path / 'own.pem'}")
    (tmp_path / "own.pem").chmod(0o600)
    assert find_lacking(topology, None) == []


def test_a_run_directory_that_others_can_change_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    topology = loads("name: t\ngateways: {a: {}}\nbuses: {p: {on: a}}\n")
    assert find_lacking(topology, None) == []
    runtime_directory().mkdir()
    runtime_directory().chmod(0o777)
    (found,) = find_lacking(topology, None)
    assert (found.level, "can be changed by other users" in found.text) == ("error", True)


ROOM = """\
name: t
gateways: {{a: {{address: 127.0.0.1}}}}
buses: {{p: {{on: a}}, q: {{on: a}}}}
devices:
  one: {{on: a, tap: p, directory: {0}/one, keep_bytes: {1}}}
  two: {{on: a, tap: q, directory: {0}/two, keep_bytes: {2}}}
"""
MB = 1_000_000


@pytest.mark.parametrize(
    ("one", "two", "held", "line"),
    [(4, 4, 0, 0), (5, 5, 0, 0), (6, 5, 0, 6), (20, 1, 0, 6), (6, 5, 2, 0), (8, 8, 2, 6)],
)
def test_a_disk_that_its_captures_may_fill_is_a_warning(
    one: int, two: int, held: int, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 MB are free. What is kept there already, may stay."""
    (tmp_path / "one" / "day").mkdir(parents=True)
    (tmp_path / "one" / "day" / "a.parquet").write_bytes(bytes(held * MB))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=10 * MB // 4096 + 1, f_frsize=4096))
    found = find_lacking(loads(ROOM.format(tmp_path, one * MB, two * MB)), None)
    assert [(one.level, one.line, "the disk has room for" in one.text) for one in found] == (
        [("warning", line, True)] if line else []
    )


@pytest.mark.parametrize(("spool", "is_told"), [(4, False), (5, True)])
def test_what_waits_to_be_uploaded_is_kept_too(
    spool: int, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 MB are free, and 2 MB are in a file of the recorder that waits: one file with two names."""
    (tmp_path / "one" / "upload").mkdir(parents=True)
    (tmp_path / "one" / "a.parquet").write_bytes(bytes(2 * MB))
    os.link(tmp_path / "one" / "a.parquet", tmp_path / "one" / "upload" / "a.parquet")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=10 * MB // 4096 + 1, f_frsize=4096))
    line = "  up: {{on: a, upload: {0}/one, to: 's3://plant/all', spool_bytes: {3}}}\n"
    text = (ROOM + line).format(tmp_path, 6 * MB, 2 * MB, spool * MB)
    assert [one.text.partition(": ")[0] for one in find_lacking(loads(text), None)] == (
        [f"keep_bytes of {tmp_path}/one and keep_bytes of {tmp_path}/two and spool_bytes of {tmp_path}/one"]
        if is_told
        else []
    )


def test_a_directory_that_cannot_be_made_is_told_once() -> None:
    found = find_lacking(loads(ROOM.format("/proc/self/status", MB, MB)), None)
    assert [one.level for one in found] == ["error", "error"]


@pytest.mark.parametrize(
    ("late_s", "level", "words"),
    [
        (0.0002, "note", "0.2 ms late, so a lease lasts some 250 ms"),
        (0.04, "warning", "some 570 ms: `run --real"),
    ],
)
def test_it_says_how_long_a_lease_the_scheduler_allows(
    late_s: float, level: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here, "worst_s", lambda: late_s)
    text = 'name: t\ngateways: {near: {address: 127.0.0.1}}\nbrokers: {m: {on: near, listen: "tcp://127.0.0.1:%d"}}\n'
    (found,) = (one for one in find_lacking(loads(text % free_port()), "near") if "lease" in one.text)
    assert found.level == level
    assert words in found.text


def test_a_gateway_without_leases_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "worst_s", lambda: pytest.fail("measured"))
    assert not find_lacking(loads("name: t\ngateways: {near: {address: 127.0.0.1}}\n"), "near")


def test_the_latest_timer_is_measured() -> None:
    assert worst_s(2) >= 0


@pytest.mark.parametrize(("name", "level"), [("near", "note"), ("far", "error")])
def test_what_the_running_gateway_itself_holds_is_no_error(
    monkeypatch: pytest.MonkeyPatch, name: str, level: str
) -> None:
    process = os.getppid()
    monkeypatch.setattr(here, "status_sockets", lambda _: [Path("x")])
    status = {"topology": "whole", "gateway": name, "pid": process}
    monkeypatch.setattr(
        here, "ask_all", lambda paths: [*((path, status) for path in paths), (Path("y"), OSError())]
    )
    words = f"Address already in use by {words_of_process(process)}"
    monkeypatch.setattr(here, "trouble", lambda need: words if isinstance(need, Listening) else "")
    told = {
        finding.level for finding in find_lacking(loads(WHOLE % 1, "w.yaml"), "near") if words in finding.text
    }
    assert told == {level}
