"""A side that stands by declares what its mate publishes, so it knows the subscribers when it takes over."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.bridge import Bridge
from bridges.media.tmq import pipe
from bridges.media.tmq.declared import Declarations
from bridges.policy import Policy
from bus.tmq import Client
from bus.tmq.wire import Address
from bus.wire.pattern import Pattern
from tests.bridges.media.tmq.tmq_network import ALERT, TEMP, Bus, Network, frame, network
from tests.bridges.support import recorder, say
from tests.helpers.peers import until

ONE, OTHER = 0xB0B00, 0xB0B01
A, B, C, D = (bytes((0, 0, 0, number)) for number in range(4))


@pytest.fixture
async def net() -> AsyncIterator[Network]:
    with network() as made:
        yield made


async def received(client: Client, count: int) -> list[bytes]:
    async with asyncio.timeout(20):
        return [(await client.receive()).data for _ in range(count)]


class Gateway:
    """A bridge between a field and the TMQ network, that forwards while it `may`."""

    def __init__(self, url: str, number: int) -> None:
        self.may = False
        self.bridge = Bridge(f"gw-{number}", 1)
        network = self.bridge.side("tmq", Policy(allow_in=(TEMP,), allow_out=(ALERT,)))
        self.field = recorder(self.bridge.side("field"))
        self.gate = self.bridge.stand_by(lambda _: self.may)
        self.link = Bus.made([url], None, number, subscribe=(TEMP,), publish=(ALERT,))
        self.link.open(network, asyncio.get_running_loop())

    def start(self) -> None:
        self.may = True
        self.gate.resume()

    def knows(self, address: Address, pattern: Pattern) -> bool:
        return address in self.link.subscribers(pattern)

    def say(self, data: bytes) -> None:
        say(self.bridge.sides[1], self.field, frame(ALERT, data))


async def test_after_a_takeover_without_a_broker_the_subscribers_get_what_comes(net: Network) -> None:
    """One alert before it is enough, also the first on the connection between the two."""
    broker = net.broker()
    one, other = (Gateway(broker.urls[0], number) for number in (ONE, OTHER))
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(ALERT)
        await until(lambda: {one.link.address, other.link.address} < set(broker.registry.subscribers(ALERT)))
        one.start()
        for each in (one, other):
            each.say(b"before")
        await until(lambda: other.gate.window.stats.dropped.get("heard") == 1)
        await until(lambda: other.knows(client.address, ALERT))
        await other.link.settled()
        broker.close()
        one.link.close()
        await until(lambda: other.link.state == "waiting")
        other.say(b"unsent")
        other.start()
        other.say(b"after")
        assert await received(client, 3) == [b"before", b"unsent", b"after"]
    assert all(not list(account.faults()) for account in other.bridge.accounts().values())
    other.link.close()


async def test_a_reload_that_adds_a_mate_makes_what_it_publishes_known(net: Network) -> None:
    """The mate was quicker, and has connected before."""
    broker = net.broker()
    active, alone = await net.bus(broker, mates=ONE), await net.bus(broker)
    for data in (b"1", b"2"):  # the second comes after the greeting
        active.say(frame(ALERT, data))
    await until(lambda: len(alone.heard.messages) == 2)
    assert alone.link.subscribers(ALERT) == []
    assert alone.link.revise(Bus.made(broker.urls, None, OTHER))
    active.say(frame(ALERT, b"3"))
    await until(lambda: alone.link.subscribers(ALERT) == [active.address])


async def test_what_others_publish_is_not_declared(net: Network) -> None:
    """Also where it matches `publish`, or a pattern that is published here would not have its room."""
    broker = net.broker()
    active, standby = await net.bus(broker, mates=ONE), await net.bus(broker, mates=OTHER)
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        for number in range(50):
            await client.publish(Pattern("new", number), b"")
        await until(lambda: len(standby.heard.messages) == 50)
        active.say(frame(ALERT))
        await until(lambda: bool(standby.link.subscribers(ALERT)))
    assert {tokens for _, tokens in broker.registry.of(standby.address)} == {(), ALERT}


async def test_a_flood_of_patterns_is_bounded_and_takes_no_room_from_those_in_use(net: Network) -> None:
    broker = net.broker()
    active, standby = await net.bus(broker, mates=ONE), await net.bus(broker, mates=OTHER, patterns=10)
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(TEMP)
        await client.subscribe(ALERT)
        standby.say(frame(TEMP, b"in use"))
        assert await received(client, 1) == [b"in use"]
        active.say(*(frame(Pattern("flood", number)) for number in range(50)))
        await until(lambda: len(standby.heard.messages) == 50)
        assert standby.pipe.stats.rejected == {"patterns full": 41}
        await standby.link.settled()
        assert len(broker.registry.of(standby.address)) == 1 + 10
        standby.say(frame(TEMP, b"still"), frame(ALERT, b"new"))
        assert sorted(await received(client, 2)) == [b"new", b"still"]
        await standby.link.settled()
        assert len(broker.registry.of(standby.address)) == 1 + 10
    assert standby.pipe.stats.dropped == {}


async def test_what_a_mate_publishes_no_longer_is_taken_back(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "Declarations", lambda limit: Declarations(limit, 0.0))
    broker = net.broker()
    active, standby = (
        await net.bus(broker, mates=ONE, patterns=9),
        await net.bus(broker, mates=OTHER, patterns=1),
    )

    def declared() -> set[tuple[int, ...]]:
        return {tokens for _, tokens in broker.registry.of(standby.address) if tokens}

    active.say(frame(TEMP))
    await until(lambda: declared() == {TEMP})
    active.say(frame(ALERT))
    await until(lambda: declared() == {ALERT})
    active.say(frame(TEMP))
    await until(lambda: declared() == {TEMP})


async def test_a_pattern_is_known_only_when_a_broker_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "HOLD_S", 0.05)
    bus = Bus("tcp://127.0.0.1:1", mates=ONE)
    assert isinstance(bus.pipe, pipe.TmqPipe)
    bus.pipe.overhear([frame(ALERT)[4:]])
    bus.say(frame(ALERT))
    assert (bus.pipe.stats.queued, bus.pipe.stats.dropped) == (1, {})
    await until(lambda: bus.pipe.stats.dropped == {"undeclared": 1})
    bus.link.close()


def test_one_declared_ahead_needs_free_room_or_that_of_an_idle_one() -> None:
    patterns = Declarations(2, idle_s=60)
    assert patterns.add(A, 0)
    assert not patterns.overhear(B, 1)
    assert patterns.add(B, 1, ahead=True)
    assert patterns.overhear(B, 2)
    assert patterns.overhear(A, 3)  # used elsewhere, so not idle
    assert (patterns.idle(61.9), patterns.add(C, 61.9, ahead=True)) == ([], None)
    assert [gone.tokens for gone in patterns.idle(62)] == [(1,)]
    assert patterns.add(C, 62, ahead=True)
    assert [gone.tokens for gone in patterns.idle(63)] == [(0,)]


def test_one_in_use_gets_the_room_of_one_declared_ahead() -> None:
    patterns = Declarations(2, idle_s=60)
    for number, key in enumerate((A, B)):
        assert patterns.add(key, number, ahead=True)
    assert patterns.find(A, 2) is None
    assert patterns.adopt(A, 2) is patterns.find(A, 2)
    assert patterns.adopt(A, 2) is None
    assert [gone.tokens for gone in patterns.surplus(3)] == [(1,)]
    assert patterns.add(C, 3)
    assert (patterns.surplus(4), patterns.add(D, 4)) == ([], None)
