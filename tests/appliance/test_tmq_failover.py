"""A bridge between TMQ clients and a bus on two gateways: a takeover, and a reload that adds the other."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from appliance.compose import Appliance
from appliance.parts.broker import BrokerPart
from bridges.handover.gate import Gate
from bridges.media.tmq.link import TmqLink
from bus.tmq import Client
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.pairs import PAIR, Pair, forwarding
from tests.appliance.status.status_support import status_of
from tests.helpers.appliances import reloaded
from tests.helpers.peers import until
from topologies.loading.loader import loads

TEXT = PAIR.replace(
    "pattern: [motor], join: [{{bus: left}},", "join: [{{tmq: {{subscribe: [in], publish: [out]}}}},"
)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with forwarding(TEXT) as made:
        yield made


def link_of(appliance: Appliance) -> TmqLink:
    (found,) = (link for link in appliance.links() if isinstance(link, TmqLink))
    return found


async def ready(pair: Pair) -> None:
    """Wait until gw-a forwards and gw-b could."""
    pair.table.terms.hold_down_s = 0.1
    await until(lambda: pair.forwards("gw-a"))
    pair.table.terms.hold_down_s = 1000.0
    await until(lambda: pair.candidacy("gw-b").candidate.ready)
    await link_of(pair.gateways["gw-b"]).settled()


async def test_a_takeover_loses_and_doubles_nothing_both_ways(pair: Pair) -> None:
    """Each reading comes under one of twenty patterns, so the new bridge declares them as they come."""
    await ready(pair)
    ear, out, into = pair.ears[1], list[bytes](), list[bytes]()
    async with Client([f"tcp://127.0.0.1:{pair.ports[0]}"], listen="127.0.0.1:0") as client:
        await client.subscribe("out")
        for number in range(300):
            data, under = str(number).encode(), str(number % 20)
            await client.publish(("in", under), data)
            ear.say(pack(PUB, Pattern("out", under), data))
            if number == 150:
                pair.gateways["gw-a"].close()
            await asyncio.sleep(0.001)
        await until(lambda: pair.forwards("gw-b"))
        await until(lambda: client.inbox.offered >= 300 and len(ear.heard) >= 300)
        await client.publish(("in", "0"), b"end")
        await until(lambda: ear.heard[-1].endswith(b"end"))
        while (item := client.receive_nowait()) is not None:
            out.append(item.data)
        into = [frame[12:] for frame in ear.heard[:-1]]
    wanted = sorted(str(number).encode() for number in range(300))
    assert sorted(out) == wanted
    assert sorted(into) == wanted


async def test_a_standby_settles_what_the_active_bridge_publishes(pair: Pair) -> None:
    await ready(pair)
    gate = pair.candidacy("gw-b").gate
    assert isinstance(gate, Gate)
    window = gate.window
    async with Client([f"tcp://127.0.0.1:{pair.ports[0]}"], listen="127.0.0.1:0") as client:
        await client.subscribe("out")
        for number in range(5):
            pair.ears[1].say(pack(PUB, Pattern("out"), b"%d" % number))
        await until(lambda: client.inbox.offered == 5)
        await until(lambda: window.stats.dropped.get("heard", 0) == 5)
    assert window.stats.queued == 0
    (role,) = status_of(pair.gateways["gw-b"])["candidates"]
    assert role["window"]["waiting"] == 0
    assert role["window"]["heard"] == 5


async def test_a_reload_that_adds_a_gateway_lets_the_first_one_hear_it(pair: Pair) -> None:
    """Alone, a bridge asks for nothing but what it subscribes to."""
    alone = loads(TEXT.format(*pair.ports).replace("[gw-a, gw-b]", "gw-a"), "pair.yaml")
    appliance = pair.gateways["gw-a"]

    def hears(*names: str) -> bool:
        part, address = pair.hub.parts["broker main"], link_of(appliance).address
        assert isinstance(part, BrokerPart)
        assert address is not None
        return address[1] in {port for _, port in part.service.broker.registry.subscribers(Pattern(*names))}

    await until(lambda: hears("out") and hears("in"))
    link = link_of(appliance)
    reloaded(appliance, alone)
    await until(lambda: hears("in") and not hears("out"))
    reloaded(appliance, pair.topology)
    await until(lambda: hears("out") and hears("in"))
    assert link_of(appliance) is link
