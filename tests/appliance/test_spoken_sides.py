"""Sides whose devices speak a protocol of bytes: crossed in a bridge, kept or opened anew by a reload."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.hub import Hub
from bus.transports.links import make_link
from bus.wire.frame import pack, unpack
from bus.wire.notation import pattern_of
from tests.bridges.support import PtyPair
from tests.helpers.appliances import reloaded, running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads


@pytest.fixture
def line(tmp_path: Path) -> Iterator[PtyPair]:
    pair = PtyPair(tmp_path / "ttyTEST")
    yield pair
    pair.close()


def plant(line: PtyPair, port: int, protocol: str, more: str = "") -> str:
    return f"""
name: t
gateways: {{gw: {{status: {{serve: false}}}}}}
names: [fast]
buses: {{plant: {{on: gw, listen: ["tcp://127.0.0.1:{port}"]}}}}
bridges:
  panel:
    on: gw
    join:
      - {{bus: plant}}
      - uart: {{port: {line.path}, baud: 3000000}}
        protocol: {protocol}
        {more}
"""


LINES = (
    r"""{lines: {match: "(?P<kind>[A-Z]+)=(?P<data>.*)", receive: "p/{kind}","""
    r""" send: {relay: "R {1} {data}\r\n"}}}"""
)


async def test_a_device_of_lines_is_on_the_bus_and_back_by_names_of_the_topology(line: PtyPair) -> None:
    port = free_port()
    async with running(plant(line, port, LINES)):
        ear = Ear(Hub())
        link = make_link(f"tcp://127.0.0.1:{port}", "dial")
        link.open(ear.hub, asyncio.get_running_loop())
        await until(lambda: len(ear.hub.pipes) == 2)
        found = bytearray()

        def is_back() -> bool:
            ear.say(pack(1, pattern_of("relay/fast"), b"1"))
            found.extend(line.read())
            return bool(found)

        await until(is_back)
        assert found.startswith(b"R fast 1\r\n")
        os.write(line.master, b"TEMP=21.5\r\nnoise\r\n")
        await until(lambda: bool(ear.heard))
        link.close()
    assert [(one.tokens, one.data) for one in map(unpack, ear.heard)] == [(pattern_of("p/TEMP"), b"21.5")]


@pytest.mark.parametrize(
    ("protocol", "more", "stays"),
    [
        (LINES, "", True),
        (LINES, "shed: newest", True),
        (LINES, "deny: p/X", True),
        (LINES.replace("R {1}", "S {1}"), "", False),
        ("nmea", "", False),
        ("{lines: {receive: other}}", "", False),
    ],
)
async def test_a_reload_keeps_a_side_unless_its_protocol_differs(
    line: PtyPair, protocol: str, more: str, stays: bool
) -> None:
    port = free_port()
    async with running(plant(line, port, LINES)) as appliance:
        (link,) = [
            one for part in appliance.parts.values() for one in part.links if one.name.startswith("uart:")
        ]
        await until(lambda: link.state == "up")
        pipe = link.pipe  # type: ignore[attr-defined]
        changes = reloaded(appliance, loads(plant(line, port, protocol, more)))
        (after,) = [
            one for part in appliance.parts.values() for one in part.links if one.name.startswith("uart:")
        ]
        await until(lambda: after.state == "up")
        assert (after.pipe is pipe) == stays, [one.line() for one in changes]  # type: ignore[attr-defined]
        assert (link.state == "up") == stays
