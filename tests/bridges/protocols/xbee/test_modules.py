"""Two gateways with an XBee module each, and simulated modules between the two pseudo-terminals."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from appliance.parts.bus import BusPart
from bridges.media.uart.medium import Uart
from bridges.protocols.xbee.protocol import Xbee
from bus.hub import Hub, Link
from bus.ledger import Stats
from tests.bridges.protocols.spoken_support import message, told
from tests.bridges.protocols.xbee import xbee_support as digi
from tests.bridges.support import PtyPair, RecordingPipe, say
from tests.helpers.appliances import running
from tests.helpers.peers import Ear, until

NODES = {"kitchen": f"{digi.KITCHEN:016X}", "hall": f"{digi.HALL:016X}", "attic": "0013A20000000001"}


class End(NamedTuple):
    """A gateway with a module: what its bus hears, and its link."""

    hub: Hub
    ear: RecordingPipe
    link: Link
    module: digi.Module

    def say(self, *offered: tuple[str, bytes]) -> None:
        say(self.hub, self.ear, *(message(f"xbee/{name}", data) for name, data in offered))

    @property
    def heard(self) -> list[tuple[str, bytes]]:
        return told(self.ear.messages, "xbee", *NODES)

    @property
    def stats(self) -> Stats:
        return self.hub.accounts()[self.link.name].stats


@asynccontextmanager
async def ends(place: Path, escaped: bool, **settings: Any) -> AsyncIterator[tuple[digi.Air, End, End]]:
    """Open two gateways, whose modules have the addresses of the kitchen and of the hall."""
    air = digi.Air()
    async with AsyncExitStack() as stack:
        kitchen = await opened(stack, place / "ttyA", air, digi.KITCHEN, escaped, settings)
        hall = await opened(stack, place / "ttyB", air, digi.HALL, escaped, settings)
        yield air, kitchen, hall


async def opened(
    stack: AsyncExitStack, path: Path, air: digi.Air, address: int, escaped: bool, settings: dict[str, Any]
) -> End:
    line = PtyPair(path)
    stack.callback(line.close)
    record = Xbee(nodes=NODES, send=("kitchen", "hall", "attic", "all"), escaped=escaped, **settings)
    link = Uart(port=str(path), baud=3_000_000).speaking(record, retry_min_s=0.01, retry_max_s=0.02)
    end = End(Hub(), RecordingPipe(), link, digi.Module(air, address, line, escaped))
    end.hub.attach(end.ear)
    link.open(end.hub, asyncio.get_running_loop())
    stack.callback(link.close)
    await until(lambda: link.state == "up")
    end.module.switch_on()
    stack.callback(end.module.switch_off)
    return end


ANY = [("hall", bytes((n, 0x7E, 0x7D, 0x11, 0x13)) * (n % 16 + 1)) for n in range(100)]


@pytest.mark.parametrize("escaped", [False, True])
async def test_messages_cross_by_radio_both_ways_in_order_and_the_ledger_agrees(
    tmp_path: Path, escaped: bool
) -> None:
    async with ends(tmp_path, escaped) as (_, kitchen, hall):
        kitchen.say(*ANY, ("hall", b"x" * 85))
        hall.say(("kitchen", b"21.5"), ("all", b"hello"))
        await until(lambda: len(hall.heard) == len(ANY) and len(kitchen.heard) == 2)
        await until(lambda: kitchen.stats.queued == hall.stats.queued == 0)
        assert hall.heard == [("xbee/kitchen", data) for _, data in ANY]
        assert kitchen.heard == [("xbee/hall", b"21.5"), ("xbee/hall", b"hello")]
        assert (kitchen.stats.sent, kitchen.stats.dropped) == (len(ANY), {"oversize": 1})
        assert [one.stats.balance() for one in (kitchen, hall)] == [0, 0]
        assert [one.stats.rejected for one in (kitchen, hall)] == [{}, {}]


PLANT = """
name: t
gateways: {{gw: {{status: {{serve: false}}}}}}
buses: {{near: {{on: gw, listen: ["inproc://near"]}}, far: {{on: gw, listen: ["inproc://far"]}}}}
bridges:
  one:
    on: gw
    join:
      - bus: near
      - uart: {{port: {place}/ttyA, baud: 3000000}}
        protocol: {{xbee: {{root: air, nodes: {{hall: "0013A2007D117E13"}}, send: hall, escaped: true}}}}
  other:
    on: gw
    join:
      - bus: far
      - uart: {{port: {place}/ttyB, baud: 3000000}}
        protocol: {{xbee: {{root: radio}}}}
"""


async def test_two_buses_of_a_topology_are_joined_by_modules_of_both_modes(tmp_path: Path) -> None:
    lines, air = [PtyPair(tmp_path / name) for name in ("ttyA", "ttyB")], digi.Air()
    modules = [digi.Module(air, digi.KITCHEN, lines[0], True), digi.Module(air, digi.HALL, lines[1])]
    async with running(PLANT.format(place=tmp_path)) as appliance:
        near, far = (appliance.parts[f"bus {name}"] for name in ("near", "far"))
        assert isinstance(near, BusPart)
        assert isinstance(far, BusPart)
        ears = Ear(near.hub), Ear(far.hub)
        for module in modules:
            module.switch_on()
        await until(
            lambda: all(link.state == "up" for part in appliance.parts.values() for link in part.links)
        )
        ears[0].say(message("air/hall", b"on"), message("air/attic", b"off"))
        await until(lambda: bool(ears[1].heard))
        for module in modules:
            module.switch_off()
    assert told(ears[1].heard, "radio", "0013A20041AE7D2C") == [("radio/0013A20041AE7D2C", b"on")]
    assert [bytes(one.rf_data) for one in modules[0].requests] == [b"on"]
    for line in lines:
        line.close()


async def test_a_module_out_of_reach_is_told_and_what_was_for_it_is_undelivered(tmp_path: Path) -> None:
    async with ends(tmp_path, False) as (air, kitchen, hall):
        air.lost.add(digi.HALL)
        kitchen.say(("hall", b"1"), ("attic", b"2"))
        await until(lambda: kitchen.stats.dropped == {"undelivered": 2})
        assert kitchen.link.condition == "hall: address not found (0x24); attic: address not found (0x24)"
        air.lost.clear()
        kitchen.say(("hall", b"3"))
        await until(lambda: kitchen.stats.sent == 1)
        assert hall.heard == [("xbee/kitchen", b"3")]
        assert kitchen.link.condition == "attic: address not found (0x24)"


@pytest.mark.parametrize(
    ("end_it", "dropped"),
    [
        (lambda kitchen: kitchen.module.reset(), {"undelivered": 2}),
        (lambda kitchen: kitchen.link.close(), {"closed": 3}),
        (lambda kitchen: kitchen.link.pipe.purge("fenced"), {"fenced": 3}),
    ],
)
async def test_packets_without_a_status_end_with_the_module_or_the_link(
    tmp_path: Path, end_it: Callable[[Any], object], dropped: dict[str, int]
) -> None:
    async with ends(tmp_path, False, unanswered=2) as (_, kitchen, _):
        kitchen.module.mute = True
        kitchen.say(("hall", b"1"), ("hall", b"2"), ("hall", b"3"))
        await until(lambda: len(kitchen.module.requests) == 2)
        assert (kitchen.stats.queued, kitchen.stats.sent) == (3, 0)
        end_it(kitchen)
        await until(lambda: kitchen.stats.dropped == dropped)
        assert kitchen.stats.balance() == 0
