"""Radios of one PAN, on simulated air: the real link, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.media.ieee802154.card import trouble
from bridges.media.ieee802154.link import RadioLink
from bridges.media.ieee802154.medium import Ieee802154
from bridges.media.ieee802154.pipe import lost
from bridges.media.rtnetlink import RUNNING, UP, LinkNews
from bridges.media.shedding import Shed
from bridges.policy import Policy
from bridges.simulate import Faults, RadioWire, run
from bus.hub import Hub
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.support import SIZES, RecordingPipe, frame, recorder, say
from tests.helpers.peers import until


class Host:
    """A hub with one radio, and a recorder."""

    def __init__(self, wire: RadioWire, **options: Any) -> None:
        self.hub, self.link = Hub(), wire.link(**options)
        self.heard: RecordingPipe = recorder(self.hub)
        self.link.open(self.hub, asyncio.get_running_loop())

    def say(self, *messages: bytes) -> None:
        say(self.hub, self.heard, *messages)


@contextmanager
def hosts(wire: RadioWire, count: int, **options: Any) -> Iterator[list[Host]]:
    made = [Host(wire, **options) for _ in range(count)]
    yield made
    for host in made:
        host.link.close()
        assert host.link.stats.balance() == 0


async def up(made: Sequence[Host]) -> None:
    await until(lambda: all(host.link.state == "up" for host in made))


def simulated(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(scenario())


def test_every_size_to_every_radio_in_datagrams_of_at_most_110_bytes() -> None:
    async def scenario() -> None:
        wire = RadioWire()
        with hosts(wire, 3) as (a, b, c):
            await up([a, b, c])
            messages = [frame(size) for size in SIZES]
            a.say(*messages)
            await until(lambda: b.heard.messages == c.heard.messages == messages)
            assert not a.heard.messages
            assert (a.link.stats.rejected, b.link.stats.rejected) == ({}, {})
        assert max(len(event.data) for event in wire.log) == 110

    simulated(scenario)


def test_a_radio_that_hears_itself_takes_nothing_of_that_in() -> None:
    async def scenario() -> None:
        with hosts(RadioWire(echoes=True), 2) as (a, b):
            await up([a, b])
            a.say(frame(20), frame(500))
            await until(lambda: len(b.heard.messages) == 2)
            assert not a.heard.messages
            assert set(a.link.stats.rejected) == {"echo"}

    simulated(scenario)


def test_bad_air_costs_messages_but_makes_none_and_none_twice() -> None:
    async def scenario() -> None:
        rates = Faults(loss=0.02, duplication=0.1, reordering=0.05, corruption=0.02, jitter_s=0.01)
        with hosts(RadioWire(seed=2, faults=rates), 2) as (a, b):
            await up([a, b])
            said = [frame(60 if seed % 2 else 700, seed) for seed in range(200)]
            for message in said:
                a.say(message)
                await asyncio.sleep(0.2)
            await asyncio.sleep(2)
            heard = b.heard.messages
            assert len(set(heard)) == len(heard)
            assert set(heard) <= set(said)
            assert len(heard) > 140
            assert {"duplicate", "crc", "fragment timeout"} <= set(b.link.stats.rejected)

    simulated(scenario)


def test_what_is_purged_did_not_come_out_though_one_message_had_begun() -> None:
    async def scenario() -> None:
        with hosts(RadioWire(), 2, queue_bytes=1 << 20) as (a, b):
            await up([a, b])
            said = [frame(3000, seed) for seed in range(40)]
            a.say(*said)
            await asyncio.sleep(0.5)
            purged = a.link.pipe.purge("fenced")
            await asyncio.sleep(5)
            assert [*b.heard.messages, *purged] == said
            assert a.link.stats.dropped == {"fenced": len(purged)}
            assert b.link.stats.rejected == {"fragment timeout": 1}

    simulated(scenario)


@pytest.mark.parametrize("size", [40, 900])
def test_check_knows_what_fits(size: int) -> None:
    async def scenario() -> None:
        wire = RadioWire()
        with hosts(wire, 2, shed=Shed(policy="newest", queue_bytes=1 << 20, age_s=60)) as (a, b):
            await up([a, b])
            start_s = asyncio.get_running_loop().time()
            a.say(*(frame(size, seed) for seed in range(100)))
            await until(lambda: len(b.heard.messages) == 100)
            took_s = (asyncio.get_running_loop().time() - start_s) / 100
            promised_s = a.link.options.seconds(size, False)
            assert promised_s is not None
            assert took_s < promised_s < 4 * took_s

    simulated(scenario)


def test_of_two_gateways_at_one_pan_the_second_waits_and_drops_what_it_hears() -> None:
    async def scenario() -> None:
        wire, bridges, buses = RadioWire(), list[Bridge](), list[tuple[Any, RecordingPipe]]()
        links = [wire.link() for _ in range(2)]
        for rank, link in enumerate(links):
            bridge = Bridge("x", 0xA, pattern=(7,), clock=asyncio.get_running_loop().time)
            bus, radio = (
                bridge.side("bus", Policy(trunk=True)),
                bridge.side("radio", Policy(trunk=True, hold_s=0.04 * rank), hold_needed=lambda: True),
            )
            bridge.stand_by(lambda _: True).resume()
            buses.append((bus, RecordingPipe("bus")))
            bus.attach(buses[-1][1])
            link.open(radio, asyncio.get_running_loop())
            bridges.append(bridge)
        with hosts(wire, 1) as (far,):
            await up([far])
            await until(lambda: all(link.state == "up" for link in links))
            for number in range(20):
                for bus, pipe in buses:
                    say(bus, pipe, wrap(pack(1, (7, number)), Envelope(5, number)))
                await asyncio.sleep(0.01)
            await asyncio.sleep(1)
            assert len(far.heard.messages) == 20
            assert bridges[1].sides[1].ports[0].stats.dropped == {"heard": 20}
        for link in links:
            link.close()

    simulated(scenario)


def test_a_radio_that_is_unplugged_comes_back() -> None:
    async def scenario() -> None:
        with hosts(RadioWire(), 2, retry_max_s=0.2) as (a, b):
            await up([a, b])
            b.link.end.unplug()
            await until(lambda: b.link.state == "waiting")
            assert "is down: run ip link set" in b.link.fault
            b.link.end.plug()
            await up([a, b])
            a.say(frame(200))
            await until(lambda: b.heard.messages == [frame(200)])

    simulated(scenario)


def test_news_of_other_interfaces_and_of_ours() -> None:
    assert lost(3, "wpan0", LinkNews(4, "eth0", 0, 1500, True)) == ""
    assert lost(3, "wpan0", LinkNews(3, "wpan0", UP | RUNNING, 123, False)) == ""
    assert lost(3, "wpan0", LinkNews(3, "wpan0", UP | RUNNING, 123, True)) == "wpan0 is gone"
    assert "is down" in lost(3, "wpan0", LinkNews(3, "wpan0", UP, 123, False))


def test_what_is_missing_here_is_told_and_a_link_goes_on_trying() -> None:
    assert trouble("wpan9", 0xBEEF)

    async def scenario() -> None:
        link = RadioLink(Ieee802154(interface="wpan9", pan=0xBEEF))
        link.open(Hub(), asyncio.get_running_loop())
        await until(lambda: link.state == "waiting")
        assert link.fault == trouble("wpan9", 0xBEEF)
        link.close()

    asyncio.run(scenario())
