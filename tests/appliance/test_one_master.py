"""Two gateways that stand in for each other on devices that are asked: one asks, and never two at a time."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from bridges.media.device import DeviceLink
from bus.backoff import Backoff
from bus.hub import Link
from bus.wire.frame import unpack
from bus.wire.pattern import Pattern
from tests.appliance.asked_devices import LineDevice, TcpDevice, of_side
from tests.appliance.pairs import PLANT, Pair, forwarding
from tests.bridges.protocols.modbus.bench import Device, Said
from tests.bridges.protocols.modbus.ptys import PtyLine
from tests.bridges.protocols.spoken_support import message
from tests.helpers.peers import until
from tests.helpers.ports import free_port

TIMEOUT_S = 0.15
RESULT = Pattern("m", "b", "result")
MODBUS = """
        protocol:
          modbus:
            poll_ms: 20
            timeout_ms: 150
            on_doubt: {on_doubt}
            registers:
              - {{{{register: 5, pattern: m/a}}}}
              - {{{{register: 9, pattern: m/b, write: true, min: 0, max: 100}}}}
"""
TEXT = f"""{PLANT}\
  joint:
    on: [gw-a, gw-b]
    join:
      - bus: left
      - MEDIUM
"""


def text(medium: str, on_doubt: str = "stop") -> str:
    return TEXT.replace("      - MEDIUM\n", f"      - {medium}{MODBUS.format(on_doubt=on_doubt)}") + (
        "  other: {{on: hub, pattern: [none], join: [{{bus: left}}, {{bus: right}}]}}\n"
    )


def readings(pair: Pair) -> int:
    return len(pair.ears[0].heard)


async def more(pair: Pair) -> None:
    """Wait for more readings on the bus."""
    before = readings(pair)
    await until(lambda: readings(pair) > before + 4)


async def test_on_a_serial_line_a_takeover_leaves_one_master_and_one_open_request() -> None:
    line = PtyLine(3)
    device = LineDevice(line, Device())
    medium = f"uart: {{{{port: {{{{gw-a: {line.path(0)}, gw-b: {line.path(1)}}}}}, baud: 115200}}}}"
    async with forwarding(text(medium)) as pair:
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        await more(pair)
        assert {end for end, _ in line.said} == {int(first == "gw-b"), 2}
        assert of_side(pair, second).state == "up"
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await more(pair)
        pair.ears[0].say(message("m/b/set", b"7"))
        await until(lambda: device.device.holding[9] == 7)
    changes = [(one, other) for one, other in pairwise(asked_at(line)) if one[1] != other[1]]
    assert len(changes) == 1
    assert changes[0][1][0] - changes[0][0][0] >= TIMEOUT_S
    assert [pdu[0] for pdu in device.device.asked].count(6) == 1
    device.close()
    line.close()


class Deaf(Device):
    """A device that answers no write."""

    def say(self, asked: bytes, answer: bytes) -> Said:
        return [] if asked[0] == 6 else super().say(asked, answer)


async def test_a_command_that_is_under_way_at_a_takeover_has_one_result() -> None:
    line = PtyLine(3)
    device = LineDevice(line, Deaf())
    medium = f"uart: {{{{port: {{{{gw-a: {line.path(0)}, gw-b: {line.path(1)}}}}}, baud: 115200}}}}"
    async with forwarding(text(medium).replace("timeout_ms: 150", "timeout_ms: 5000")) as pair:
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        await more(pair)
        pair.ears[0].say(message("m/b/set", b"7"))
        await until(lambda: 6 in [pdu[0] for pdu in device.device.asked])
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await more(pair)
        results = [bytes(unpack(one).data) for one in pair.ears[0].heard if unpack(one).tokens == RESULT]
        assert results == [b"not known: it came before a takeover"]
    assert [pdu[0] for pdu in device.device.asked].count(6) == 1
    device.close()
    line.close()


def asked_at(line: PtyLine) -> list[tuple[float, int]]:
    """Return when a gateway asked, and which."""
    return [(at_s, end) for at_s, end in line.times if end < 2]


@pytest.mark.parametrize("on_doubt", ["stop", "go on"])
async def test_without_a_broker_nothing_is_asked_unless_the_topology_wants_that(on_doubt: str) -> None:
    line = PtyLine(3)
    device = LineDevice(line, Device())
    medium = f"uart: {{{{port: {{{{gw-a: {line.path(0)}, gw-b: {line.path(1)}}}}}, baud: 115200}}}}"
    async with forwarding(text(medium, on_doubt)) as pair:
        await more(pair)
        holder = "gw-a" if pair.forwards("gw-a") else "gw-b"
        pair.hub.parts["broker main"].close()
        await until(lambda: pair.candidacy(holder).candidate.state == "orphan")
        loop, asked = asyncio.get_running_loop(), device.device.asked
        count, since_s = len(asked), loop.time()
        if on_doubt == "go on":
            await until(lambda: len(asked) > count + 5)
        else:
            await until(lambda: loop.time() > since_s + 5 * 0.02)  # five times `poll_ms`
            assert len(asked) <= count + 1
    device.close()
    line.close()


async def test_on_tcp_a_standby_has_no_connection_and_counts_as_up() -> None:
    port, device = free_port(), Device(tcp=True)
    server = await asyncio.get_running_loop().create_server(lambda: TcpDevice(device), "127.0.0.1", port)
    async with forwarding(text(f"tcp: {{{{host: 127.0.0.1, port: {port}}}}}")) as pair:
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        await more(pair)
        assert of_side(pair, second).state == of_side(pair, first).state == "up"
        assert len(TcpDevice.live) == 1
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await more(pair)
        values = {bytes(unpack(one).data) for one in pair.ears[0].heard}
        assert values == {b"5", b"9"}
        assert TcpDevice.most == 1
    server.close()


def off(server: asyncio.Server) -> None:
    """Switch the device off."""
    server.close()
    for one in list(TcpDevice.live):
        one.transport.abort()


async def test_on_tcp_a_device_that_is_off_has_the_lease_change_hands_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, device, tries = free_port(), Device(tcp=True), Counter[str]()
    connect = socket.create_connection

    def counted(*args: Any, **more: Any) -> socket.socket:
        tries["device"] += args[0][1] == port
        return connect(*args, **more)

    monkeypatch.setattr(socket, "create_connection", counted)
    monkeypatch.setattr("bridges.media.device.Backoff", lambda *_: Backoff(0.02, 0.05, lambda low, _: low))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: TcpDevice(device), "127.0.0.1", port)
    async with forwarding(text(f"tcp: {{{{host: 127.0.0.1, port: {port}}}}}")) as pair:
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        await more(pair)
        off(server)
        await until(lambda: pair.forwards(second) and not pair.candidacy(second).candidate.ready)
        before = tries["device"]
        await until(lambda: tries["device"] > before + 200)
        assert pair.forwards(second)
        assert pair.candidacy(first).takeovers == pair.candidacy(second).takeovers == 1
        server = await loop.create_server(lambda: TcpDevice(device), "127.0.0.1", port)
        await more(pair)
        await until(lambda: all(pair.candidacy(one).candidate.ready for one in pair.gateways))
        assert len(TcpDevice.live) == 1
    server.close()


def put_off(link: Link) -> Callable[[], bool]:
    """Have a link try again in two hours, after its next attempt. Return a function that tells whether that
    has failed."""
    assert isinstance(link, DeviceLink)
    pauses = link._pauses  # noqa: SLF001
    pauses.min_s = pauses.max_s = pauses.pause_s = 7200.0
    now = asyncio.get_running_loop().time
    return lambda: link._timer is not None and link._timer.when() > now() + 1800.0  # noqa: SLF001


async def test_a_device_that_takes_one_connection_is_taken_over_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, device, loop = free_port(), Device(tcp=True), asyncio.get_running_loop()
    monkeypatch.setattr("bridges.media.device.Backoff", lambda *_: Backoff(0.02, 0.05, lambda low, _: low))
    monkeypatch.setattr(TcpDevice, "takes", 1)
    async with forwarding(text(f"tcp: {{{{host: 127.0.0.1, port: {port}}}}}")) as pair:
        await until(lambda: not any(pair.candidacy(one).candidate.ready for one in pair.gateways))
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        standby = of_side(pair, second)
        await until(put_off(standby))
        server = await loop.create_server(lambda: TcpDevice(device), "127.0.0.1", port)
        await more(pair)
        assert isinstance(standby, DeviceLink)
        standby.hurry()  # in vain: the other has the connection
        await until(lambda: standby.fault == "closed by the other end")
        assert (standby.state, pair.candidacy(second).candidate.ready) == ("waiting", False)
        before = TcpDevice.came
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await more(pair)
        assert TcpDevice.came <= before + 2  # one, unless this machine is so slow that the trial was over
    server.close()
