"""A bridge that two gateways forward at once: each frame arrives once, whatever happens to one of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from bridges.handover.parallel import Parallel
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.pairs import PAIR, Pair
from tests.helpers.appliances import reloaded
from tests.helpers.peers import until
from topologies.loading.loader import loads

TEXT = (
    PAIR.replace('brokers:\n  main: {{on: hub, listen: "tcp://127.0.0.1:{0}"}}\n', "")
    .replace('"tcp://127.0.0.1:{1}"', '"tcp://127.0.0.1:{1}", {{url: "tcp://127.0.0.1:{0}", trunk: true}}')
    .replace('"tcp://127.0.0.1:{2}"', '"tcp://127.0.0.1:{2}", {{url: "tcp://127.0.0.1:{3}", trunk: true}}')
    .replace("pattern: [motor]", "pattern: [motor], failover: parallel")
)


def up(appliance: Appliance) -> bool:
    return all(link.state == "up" for link in appliance.links())


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    made = Pair(TEXT)
    try:
        await until(lambda: all(len(ear.hub.pipes) == 2 for ear in made.ears))  # itself and its link
        await until(lambda: all(up(appliance) for appliance in made.gateways.values()))
        yield made
    finally:
        made.close()


def readings(first: int, last: int) -> list[bytes]:
    """Return frames, half of which are alike."""
    data = (str(number if number % 2 else 0).encode() for number in range(first, last))
    return [pack(PUB, Pattern("motor"), one) for one in data]


async def test_a_gateway_goes_and_comes_back(pair: Pair) -> None:
    for number, frame in enumerate(readings(0, 300)):
        pair.ears[0].say(frame)
        if number == 100:
            pair.gateways["gw-a"].close()
        if number == 200:
            pair.gateways["gw-a"] = pair.start("gw-a")
        await asyncio.sleep(0)
    await until(lambda: len(pair.ears[1].heard) >= 300)
    assert Counter(pair.ears[1].heard) == Counter(readings(0, 300))


def bridge_of(appliance: Appliance) -> BridgePart:
    part = appliance.parts["bridge joint"]
    assert isinstance(part, BridgePart)
    return part


async def test_a_reload_keeps_what_it_knows_and_may_change_the_kind_of_failover(pair: Pair) -> None:
    one = bridge_of(pair.gateways["gw-a"])
    parallel = one.hub.gate
    assert isinstance(parallel, Parallel)
    text = TEXT.format(*pair.ports)
    reloaded(pair.gateways["gw-a"], loads(text.replace("[motor]", "[motor, x]"), "t.yaml"))
    assert isinstance(one.hub.gate, Parallel)
    reloaded(pair.gateways["gw-a"], loads(text.replace("[gw-a, gw-b]", "[gw-a]"), "t.yaml"))
    assert one.hub.gate is None


async def test_the_status_says_that_all_forward_and_why_one_does_not(pair: Pair) -> None:
    part = bridge_of(pair.gateways["gw-b"])
    assert part.beside is not None
    assert part.beside.down == ""
    pair.hub.close()
    await until(lambda: part.beside is not None and part.beside.down != "")
