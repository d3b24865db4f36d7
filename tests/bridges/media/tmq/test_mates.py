"""Two sides that stand in for each other: what the one that stands by hears, and when."""

import asyncio
from collections.abc import Iterator

import pytest

from bridges.media.tmq import mates
from bus.tmq.broker import Broker
from bus.tmq.unread import LIMIT
from tests.bridges.media.tmq.tmq_network import ALERT, Bus, Network, frame, network
from tests.helpers.peers import until
from tests.helpers.tmq import ReferenceClient, processed

ONE, OTHER = 0xB0B00, 0xB0B01
PATIENT = {"verdict_s": 60.0, "connect_s": 60.0, "heartbeat_s": 60.0}  # nothing but the test moves copies


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    monkeypatch.setattr(mates, "LATE_S", 60.0)
    with network() as made:
        yield made


async def told_first(net: Network, broker: Broker, active: Bus, standby: Bus) -> ReferenceClient:
    """Return a client of 2015 that has got a first alert, as the side that stands by has."""
    panel = net.reference(broker)
    panel.subscribe(*ALERT)
    await until(lambda: len(broker.registry) == 3)
    active.say(frame(ALERT, b"first"))
    await processed(lambda: panel.received[ALERT] and standby.heard.messages, panel)
    await until(lambda: active.knows_its_mate or not active.link.mates)
    return panel


async def test_a_mate_hears_what_the_other_subscribers_have_got(net: Network) -> None:
    """Or it would take for sent what a slow subscriber never gets, because this gateway dies."""
    broker = net.broker()
    active, standby = await net.bus(broker, mates=ONE, connect_s=20.0), await net.bus(broker, mates=OTHER)
    panel = net.reference(broker)
    panel.subscribe(*ALERT)
    await until(lambda: len(broker.registry) == 3)
    active.say(frame(ALERT, b"first"))  # shows of which kind each is
    await processed(lambda: panel.received[ALERT] and standby.heard.messages, panel)
    await until(lambda: active.knows_its_mate)
    said = [frame(ALERT, b"%d" % number) for number in range(2 * LIMIT)]
    for one in said:
        active.say(one)
        await asyncio.sleep(0)
    await until(lambda: active.pipe.stats.sent == 1 + LIMIT)
    await until(lambda: standby.heard.messages[1:] == said[:LIMIT])
    for _ in range(100):
        await asyncio.sleep(0)
    assert standby.heard.messages[1:] == said[:LIMIT]
    assert active.pipe.purge("fenced") == said[LIMIT:]
    await processed(lambda: len(panel.received[ALERT]) == 1 + LIMIT, panel)
    active.say(frame(ALERT, b"last"))
    await processed(lambda: panel.received[ALERT][-1] == b"last", panel)
    await until(lambda: standby.heard.messages[1 + LIMIT :] == [frame(ALERT, b"last")])
    assert active.pipe.stats.dropped == {"fenced": LIMIT}
    assert active.copies.dropped == {"fenced": 2 * LIMIT}
    assert active.copies.balance() == 0


async def test_a_reload_that_adds_a_mate_lets_it_wait_for_the_others(net: Network) -> None:
    broker = net.broker()
    active, standby = await net.bus(broker, verdict_s=20.0), await net.bus(broker, mates=OTHER)
    panel = await told_first(net, broker, active, standby)
    assert active.link.revise(Bus.made(broker.urls, None, ONE))
    active.say(*[frame(ALERT, b"%d" % number) for number in range(2 * LIMIT)])
    await until(lambda: active.pipe.stats.sent == 1 + LIMIT)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(standby.heard.messages) <= 1 + LIMIT
    await processed(lambda: len(standby.heard.messages) == 1 + 2 * LIMIT, panel)
    await processed(lambda: len(panel.received[ALERT]) == 1 + 2 * LIMIT, panel)


async def test_a_mate_does_not_wait_for_ever(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mates, "LATE_S", 0.3)
    broker = net.broker()
    active, standby = await net.bus(broker, mates=ONE, **PATIENT), await net.bus(broker, mates=OTHER)
    panel = await told_first(net, broker, active, standby)
    said = [frame(ALERT, b"%d" % number) for number in range(2 * LIMIT)]
    active.say(*said)
    await until(lambda: standby.heard.messages[1:] == said)
    assert active.pipe.stats.sent == 1 + len(said)
    await processed(lambda: len(panel.received[ALERT]) == 1 + len(said), panel)


@pytest.mark.parametrize("who", ["mate", "side"])
async def test_what_waits_for_a_mate_is_counted_when_one_of_the_two_ends(net: Network, who: str) -> None:
    broker = net.broker()
    active, standby = await net.bus(broker, mates=ONE, **PATIENT), await net.bus(broker, mates=OTHER)
    panel = await told_first(net, broker, active, standby)
    active.say(*[frame(ALERT, b"%d" % number) for number in range(2 * LIMIT)])
    (standby if who == "mate" else active).link.close()
    await until(lambda: active.copies.dropped.get("closed", 0) >= 2 * LIMIT)
    await processed(lambda: not active.copies.queued, panel)
    assert (active.pipe.stats.balance(), active.copies.balance()) == (0, 0)
