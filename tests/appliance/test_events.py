"""Events reach the buses that a topology names, once each, and no other place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from bus.events import PATTERN
from bus.wire.frame import PUB, pack, unpack
from bus.wire.pattern import Pattern
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: two
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  hall: {{on: gw, listen: ["tcp://127.0.0.1:{0}"]}}
  yard: {{on: gw, listen: ["tcp://127.0.0.1:{1}"]}}
bridges:
  joint:
    on: gw
    join: [{{bus: hall}}, {{bus: yard{yard}}}, {{tcp: {{mode: listen, host: 127.0.0.1, port: {2}}}{field}}}]
{events}
"""
LAST = pack(PUB, Pattern("last"))


@asynccontextmanager
async def running(**words: str) -> AsyncIterator[tuple[Appliance, dict[str, Ear]]]:
    """Run a gateway with an ear on each bus, and one in place of the peer of a field medium."""
    settings = {"yard": "", "field": "", "events": ""} | words
    appliance = appliance_of(loads(TEXT.format(*(free_port() for _ in range(3)), **settings), "t.yaml"), "gw")
    parts = appliance.parts
    ears = {name: Ear(parts[f"bus {name}"].hub) for name in ("hall", "yard")}
    joint = parts["bridge joint"]
    assert isinstance(joint, BridgePart)
    ears["field"] = Ear(joint.legs[2].side)
    appliance.open(asyncio.get_running_loop())
    try:
        yield appliance, ears
    finally:
        appliance.close()


async def heard(**words: str) -> dict[str, int]:
    """Count the events that each ear heard when one was recorded. Frames of applications pass everywhere."""
    async with running(**words) as (appliance, ears):
        appliance.monitor.record("takeover", "fridge", "gw-a is silent")
        appliance.monitor.scan(0)
        ears["hall"].say(LAST)
        await until(lambda: all(LAST in ear.heard for name, ear in ears.items() if name != "hall"))
        found = {name: [unpack(frame) for frame in ear.heard] for name, ear in ears.items()}
        mine = (*PATTERN, *Pattern("takeover"))
        return {name: sum(frame.tokens == mine for frame in frames) for name, frames in found.items()}


NAMED = "allow: [[], buscoupler/event]"


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ({}, {"hall": 0, "yard": 0, "field": 0}),
        ({"events": "events: hall"}, {"hall": 1, "yard": 0, "field": 0}),
        ({"events": "events: [hall, yard]"}, {"hall": 1, "yard": 1, "field": 0}),
        ({"events": "events: hall", "field": f", {NAMED}"}, {"hall": 1, "yard": 0, "field": 1}),
        ({"events": "events: hall", "yard": f", {NAMED}"}, {"hall": 1, "yard": 1, "field": 0}),
        ({"events": "events: [hall, yard]", "yard": f", {NAMED}"}, {"hall": 1, "yard": 1, "field": 0}),
    ],
    ids=["by default", "one bus", "two joined buses", "a field medium", "a bus by a bridge", "both ways"],
)
async def test_an_event_is_heard_once_where_it_is_named_and_nowhere_else(
    words: dict[str, str], counts: dict[str, int]
) -> None:
    assert await heard(**words) == counts


async def test_an_event_that_is_kept_back_is_counted() -> None:
    async with running(events="events: hall") as (appliance, _):
        joint = appliance.parts["bridge joint"]
        assert isinstance(joint, BridgePart)
        before = joint.legs[2].side.ports[0].stats.dropped.get("pattern", 0)
        appliance.monitor.record("takeover", "fridge", "gw-a is silent")
        appliance.monitor.scan(0)
        assert joint.legs[2].side.ports[0].stats.dropped["pattern"] == before + 1


async def test_naming_a_bus_later_makes_its_bridge_keep_events_back() -> None:
    async with running() as (appliance, _):
        text = TEXT.format(*(free_port() for _ in range(3)), yard="", field="", events="events: hall")
        reloaded(appliance, loads(text, "t.yaml"))
        joint = appliance.parts["bridge joint"]
        assert isinstance(joint, BridgePart)
        ears = [Ear(leg.side) for leg in joint.legs]
        appliance.monitor.record("takeover", "fridge", "gw-a is silent")
        appliance.monitor.scan(0)
        assert [len(ear.heard) for ear in ears] == [0, 0, 0]
        ears[0].say(LAST)
        assert [len(ear.heard) for ear in ears] == [0, 1, 1]
