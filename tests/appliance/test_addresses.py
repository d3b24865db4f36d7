"""Tests on listen addresses that are not there yet: every listener waits, and the rest of the gateway runs.

There is one list of all listeners. The last test reads the syntax trees, and finds one that is not in it.
"""

import ast
import asyncio
import socket
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.compose import Appliance
from appliance.status.snapshot import snapshot
from bus.errors import LinkError
from bus.transports import binding
from bus.transports.binding import SocketPlace
from devices.raw import RawDevice
from tests.helpers.appliances import appliance_of
from tests.helpers.certificates import own_tls
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

ROOT: Final = Path(__file__).parents[2]
_TLS: Final = "tls: {cert_file: DIR/own.pem, ca_file: DIR/ca.pem}"
_MEDIUM: Final = "bridges: {x: {on: gw, join: [{bus: hall}, {%s}]}}"
LISTENERS: Final = {
    "bus": "  far: {on: gw, listen: ['tcp://late.example:PORT']}",
    "bus, numeric": "  far: {on: gw, listen: ['tcp://192.0.2.77:PORT']}",
    "bus, TLS": "  far: {on: gw, listen: [{url: 'tls+tcp://late.example:PORT', CERTS}]}",
    "bus, WebSocket": "  far: {on: gw, listen: ['ws://late.example:PORT']}",
    "bus, secure WebSocket": "  far: {on: gw, listen: [{url: 'wss://late.example:PORT', CERTS}]}",
    "trunk": "  far: {on: gw, listen: [{url: 'tcp://late.example:PORT', trunk: true}]}",
    "tcp": _MEDIUM % "tcp: {mode: listen, host: late.example, port: PORT}",
    "url": _MEDIUM % "url: {mode: listen, address: 'tcp://late.example:PORT'}",
    "tmq": _MEDIUM % "tmq: {brokers: 'tcp://127.0.0.1:9', host: late.example, port: PORT}",
    "broker": "brokers: {b: {on: gw, listen: ['tcp://127.0.0.1:NEAR', 'tcp://late.example:PORT']}}",
    "broker, TLS": "brokers: {b: {on: gw, listen: [{url: 'tls+tcp://late.example:PORT', CERTS}]}}",
    "catalog": "devices: {c: {on: gw, catalog: ['tcp://late.example:PORT'], records: none, beacon: false}}",
    "syndication": "devices: {s: {on: gw, syndication: ['tcp://late.example:PORT'], database: none}}",
    "proxy": "devices: {p: {on: gw, proxy: 'tcp://127.0.0.1:9', listen: 'tls+tcp://late.example:PORT', "
    "CERTS}}",
    "page": "",
}


class Names:
    """The addresses of late names: none, until they are `there`."""

    def __init__(self) -> None:
        self.there = False
        self.resolve = binding.resolve

    def __call__(
        self, place: SocketPlace, kind: int = socket.SOCK_STREAM, numeric: bool = False
    ) -> list[SocketPlace]:
        host, port = place[1] if place[0] != socket.AF_UNIX else ("", 0)
        if host in ("late.example", "192.0.2.77") and self.there and not numeric:
            return self.resolve((place[0], ("127.0.0.1", port)), kind)
        if host == "late.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.resolve(place, kind, numeric)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    made = Names()
    monkeypatch.setattr(binding, "resolve", made)
    monkeypatch.setattr(binding, "RETRY_MIN_S", 0.005)
    monkeypatch.setattr(binding, "RETRY_MAX_S", 0.02)
    return made


def topology_of(listener: str, near: int, far: int, folder: Path) -> Appliance:
    page = "{listen: 'http://late.example:PORT', open: true}" if listener == "page" else "{serve: false}"
    text = f"""\
name: plant
gateways: {{gw: {{address: 127.0.0.1, status: {page}}}}}
buses:
  hall: {{on: gw, listen: ["tcp://127.0.0.1:{near}"]}}
{LISTENERS[listener]}
"""
    text = (
        text.replace("NEAR", str(free_port()))
        .replace("PORT", str(far))
        .replace("CERTS", _TLS)
        .replace("DIR", str(folder))
    )
    return appliance_of(loads(text), "gw")


def waiting(appliance: Appliance) -> list[dict[str, Any]]:
    hubs = snapshot(appliance.view())["hubs"]
    return [row for hub in hubs for row in hub["links"] if row.get("state") == "waiting"]


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_listener_whose_address_is_not_there_waits_while_the_rest_runs(
    listener: str, names: Names, tmp_path: Path
) -> None:
    own_tls(tmp_path)
    near, far = free_port(), free_port()
    appliance = topology_of(listener, near, far, tmp_path)
    appliance.open(asyncio.get_running_loop())
    try:
        reason = "not have that address" if listener == "bus, numeric" else "cannot be looked up"
        await until(lambda: any(reason in row["fault"] for row in waiting(appliance)))
        _, writer = await asyncio.open_connection("127.0.0.1", near)
        writer.close()
        names.there = True
        await until(lambda: not any(reason in row["fault"] for row in waiting(appliance)))
        await until(lambda: is_listening(far))
    finally:
        appliance.close()


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


async def test_a_raw_device_waits_for_one_address_and_serves_another(names: Names) -> None:
    near, far = free_port(), free_port()
    device = RawDevice([f"tcp://127.0.0.1:{near}", f"tcp://late.example:{far}"])
    device.open(asyncio.get_running_loop())
    try:
        await until(lambda: [link.state for link in device.links] == ["up", "waiting"])
        names.there = True
        await until(lambda: [link.state for link in device.links] == ["up", "up"])
        assert device.links[1].fault == ""
    finally:
        device.close()


async def test_a_socket_file_whose_directory_is_made_later(names: Names, tmp_path: Path) -> None:
    device = RawDevice([f"ipc://{tmp_path}/later/bus"])
    device.open(asyncio.get_running_loop())
    try:
        await until(lambda: device.links[0].state == "waiting")
        assert "No such file or directory" in device.links[0].fault
        (tmp_path / "later").mkdir()
        await until(lambda: device.links[0].state == "up")
    finally:
        device.close()


async def test_an_address_that_is_in_use_is_an_error_with_its_holder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(LinkError, match="already in use by this process"):
                RawDevice([f"tcp://{host}:{port}"]).open(asyncio.get_running_loop())


async def test_an_address_that_comes_taken_stays_a_state(names: Names) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        device = RawDevice([f"tcp://late.example:{server.getsockname()[1]}"])
        device.open(asyncio.get_running_loop())
        try:
            await until(lambda: "looked up" in device.links[0].fault)
            names.there = True
            await until(lambda: "already in use by this process" in device.links[0].fault)
        finally:
            device.close()


BINDERS: Final = {
    "bus/embedded/buscoupler_tmq.py": "a microcontroller",
    "bus/transports/sockets.py": "all streams, by `Binding` or `bind_now`",
    "devices/dbp/catalog/datagrams.py": "by `Binding`",
    "devices/dbp/zeromq/sockets.py": "by `bind_now`, or by `Binding`",
    "devices/dbp/beacon/finding.py": "all interfaces",
    "devices/dbp/beacon/sending.py": "from each interface that is there",
    "devices/dbp/monitor/mirror.py": "to see whether an address is ours",
    "bridges/media/multicast/sockets.py": "a group, once its interface is there",
    "bridges/media/multicast/interfaces.py": "netlink",
    "bridges/media/udp/link.py": "a device link, which is opened again",
    "bridges/media/can/raw.py": "a device link, which is opened again",
    "bridges/media/can/group.py": "a device link, which is opened again",
    "appliance/machine/inspection.py": "check --here",
    "appliance/local/responder.py": "a socket file of our own",
    "appliance/demo/scene.py": "looks for a free port",
    "appliance/simulated/real.py": "a virtual CAN interface, for a test",
    "appliance/probe/listening.py": "a CAN interface, to guess what runs on it",
    "bridges/media/can/strangers.py": "a CAN interface, to look at it for a moment",
    "examples/medium-udp/buscoupler_udp/link.py": "a device link, which is opened again",
}
_ACCEPTS: Final = {"appliance/local/responder.py": "a socket file of our own"}
_CALLS: Final = {
    "bind",
    "bind_at",
    "create_server",
    "start_server",
    "start_unix_server",
    "create_datagram_endpoint",
}


def test_every_module_that_binds_is_known() -> None:
    """Fail for a new listener: it uses `bus.transports.binding`, and stands in `LISTENERS`."""
    found = {name for name, path in modules().items() if binds(path)}
    assert found == BINDERS.keys() | {"devices/dbp/catalog/server.py", "devices/dbp/nodes/service.py"}, found


def test_every_acceptor_is_opened_by_a_binding() -> None:
    texts = {name: path.read_text() for name, path in modules().items()}
    accepting = {name for name, text in texts.items() if " Acceptor(" in text or "(Acceptor(" in text}
    assert {name for name in accepting if "Binding" not in texts[name]} == _ACCEPTS.keys()


def modules() -> dict[str, Path]:
    folders = ("bus", "bridges", "devices", "appliance", "topologies", "capture", "examples")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path for path in paths if "tests" not in path.parts}


def binds(path: Path) -> bool:
    text = path.read_text()
    if not any(f".{call}" in text for call in _CALLS):  # most have none, and take long to parse
        return False
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Attribute) and func.attr in _CALLS for func in calls)


async def test_a_path_of_something_else_is_in_use_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        device = RawDevice([f"ipc://{path}"])
        with pytest.raises(LinkError, match=f"cannot listen: {path} is no socket: choose another path"):
            device.open(asyncio.get_running_loop())
        device.close()
