"""The ledger of a side on the TMQ network: exact at every moment, whatever subscribers and brokers do."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from bridges.media.shedding import Policy, Shed
from bus.balance import imbalances
from bus.tmq import Client
from bus.tmq.broker import Broker
from bus.wire.pattern import Pattern
from tests.bridges.media.tmq.tmq_network import ALERT, TEMP, Bus, Network, frame, network
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import SUBSCRIBE, StalledSubscriber, StarvedClient, packed, packet, processed, say


@pytest.fixture
async def net() -> AsyncIterator[Network]:
    with network() as made:
        yield made


class Chaos:
    """A bus whose subscribers come, stall and die, and whose broker dies and comes back."""

    def __init__(self, net: Network, bus: Bus, broker: Broker, seed: int) -> None:
        self.net, self.bus, self.broker, self.random = net, bus, broker, random.Random(seed)
        self.url, self.alive = broker.urls[0], True
        self.clients: list[Client] = []
        self.said = 0

    def say(self) -> None:
        patterns = [TEMP, ALERT, Pattern("new", self.random.randrange(40)), Pattern()]
        count = self.random.choice((1, 3, 40))
        sizes = (0, 10, 1900, 2048)
        choose = self.random.choice
        made = [frame(choose(patterns), bytes(choose(sizes)), choose((1, 1, 1, 2))) for _ in range(count)]
        self.bus.say(*made)
        self.said += count

    async def come(self) -> None:
        client = Client([self.url], listen="127.0.0.1:0", wait_s=0.05, heartbeat_s=0.1)
        client.open(asyncio.get_running_loop())
        self.clients.append(client)
        await client.subscribe(self.random.choice(((), TEMP, ALERT, ("new",))))

    async def leave(self) -> None:
        if self.clients:
            self.clients.pop().close()

    async def stall(self) -> None:
        if self.alive:
            tokens = self.random.choice(((), TEMP))
            stranger = StalledSubscriber(self.broker.addresses[0], asyncio.get_running_loop(), tokens)
            self.net.stack.callback(stranger.close)

    async def be_dead(self) -> None:
        if self.alive:
            where = packed(("127.0.0.1", free_port()))
            say(self.broker.addresses[0], packet(SUBSCRIBE, self.random.choice((TEMP, ALERT)), where))

    async def lose_broker(self) -> None:
        self.alive = not self.alive
        if self.alive:
            self.broker = self.net.broker(self.url)
        else:
            self.broker.close()

    async def purge(self) -> None:
        stats = self.bus.pipe.stats
        before = stats.dropped.get("fenced", 0)
        taken_back = self.bus.pipe.purge("fenced")
        got = len(taken_back) - (stats.dropped.get("fenced", 0) - before)
        assert got >= 0 if self.bus.link.mates else got == 0  # the other gateway sends what it has not heard
        assert all(message[0] == 1 for message in taken_back)

    async def revise(self) -> None:
        policy: Policy = self.random.choice(("newest", "oldest", "conflate"))
        shed = Shed(policy, 4000, self.random.choice((None, 0.01)), self.random.choice((None, 500)))
        other = Bus.made((self.url,), shed, self.bus.link.mates)
        assert self.bus.link.revise(other)

    def check(self) -> None:
        assert self.bus.pipe.stats.offered == self.said
        assert self.bus.pipe.stats.balance() == 0
        assert imbalances([self.bus.hub]) == []

    async def run(self, steps: int) -> None:
        acts = [self.come, self.leave, self.stall, self.be_dead, self.lose_broker, self.purge, self.revise]
        for _ in range(steps):
            for _ in range(5):
                self.say()
                self.check()
                await asyncio.sleep(self.random.choice((0, 0, 0.001)))
                self.check()
            await self.random.choice(acts)()
            self.check()


@pytest.mark.parametrize("seed", range(6))
async def test_it_balances_at_every_moment(net: Network, seed: int) -> None:
    broker = net.broker(f"tcp://127.0.0.1:{free_port()}")  # it comes back there
    mates = seed % 2 * 0xB0B00
    bus = await net.bus(broker, queue_bytes=20_000, mates=mates)
    if mates:
        await net.bus(broker, mates=mates + 1)
    chaos = Chaos(net, bus, broker, seed)
    try:
        await chaos.run(60)
    finally:
        for client in chaos.clients:
            client.close()
    stats = bus.pipe.stats
    bus.link.close()
    chaos.check()
    assert stats.queued == stats.queued_bytes == 0


async def test_copies_that_a_stalled_subscriber_loses_are_counted(net: Network) -> None:
    """The other subscriber gets all, so the messages are sent."""
    broker = net.broker()
    bus = await net.bus(broker, queue_bytes=10_000)
    stranger = StalledSubscriber(broker.addresses[0], asyncio.get_running_loop())
    net.stack.callback(stranger.close)
    async with Client([broker.urls[0]], listen="127.0.0.1:0", queue_messages=1 << 20) as client:
        await client.subscribe(TEMP)
        await until(lambda: len(broker.registry.subscribers(TEMP)) == 3)
        bus.say(frame(TEMP))
        await until(lambda: client.inbox.offered == 1)
        count = 1
        while not bus.copies.dropped.get("queue full", 0) > 100:
            bus.say(frame(TEMP, bytes(2000)))
            count += 1
            assert count < 20_000
            await asyncio.sleep(0)
        await until(lambda: client.inbox.offered == count)
    assert (bus.pipe.stats.sent, bus.pipe.stats.dropped) == (count, {})


async def stalled(net: Network, bus: Bus, broker: Broker) -> StalledSubscriber:
    """Return a subscriber to all but for the bus, that has got one message and reads no more."""
    made = StalledSubscriber(broker.addresses[0], asyncio.get_running_loop())
    net.stack.callback(made.close)
    await until(lambda: made.address in broker.registry.subscribers(()))
    bus.say(frame(ALERT))
    await until(lambda: bus.pipe.stats.sent == 1)
    return made


async def test_a_policy_decides_what_a_slow_subscriber_gets(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker, shed=Shed("conflate", 100_000))
    stranger = await stalled(net, bus, broker)
    count = 0
    while bus.pipe.stats.dropped.get("conflated", 0) < 1000:
        bus.say(*(frame(pattern, b"%d " % count + bytes(1000)) for pattern in (TEMP, ALERT)))
        count += 1
        assert count < 20_000
        await asyncio.sleep(0)
    assert bus.pipe.stats.queued <= 2 + 1  # of TEMP, which is new, one may still be held
    heard = stranger.read_all()
    while bus.pipe.stats.queued:
        await asyncio.sleep(0.001)
        heard += stranger.read_all()
    last = [message for message in heard if message[0] == 2][-2:]
    assert [int(message[12:].split()[0]) for message in last] == [count - 1] * 2
    assert bus.pipe.stats.sent + bus.pipe.stats.dropped["conflated"] == 1 + 2 * count


@pytest.mark.parametrize("rate", [None, 1e6])
async def test_what_waits_too_long_is_dropped_without_another_message(
    net: Network, rate: float | None
) -> None:
    broker = net.broker()
    bus = await net.bus(broker, shed=Shed("newest", 100_000, 0.05, rate))
    await stalled(net, bus, broker)
    count = 1

    def aged() -> bool:
        """Let more wait than the rate lets go in time: after a pause it lets more go."""
        nonlocal count
        while bus.pipe.stats.queued < 40:
            bus.say(frame(ALERT, bytes(2000)))
            count += 1
        return bus.pipe.stats.dropped.get("aged out", 0) > 0

    await until(aged)
    await until(lambda: not bus.pipe.stats.queued)
    assert bus.pipe.stats.sent + bus.pipe.stats.dropped["aged out"] == count


async def test_a_rate_holds_back_what_a_quick_subscriber_would_take(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker, shed=Shed("newest", 100_000, None, 50.0))
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(ALERT)
        for _ in range(2):  # the second one waits until it is known that the client takes many
            bus.say(frame(ALERT))
            await client.receive()
        bus.say(*[frame(ALERT)] * 10)
        assert bus.pipe.stats.queued >= 9
        for _ in range(10):
            await client.receive()
        await until(lambda: bus.pipe.stats.sent == 12)


async def test_what_is_taken_back_is_what_nobody_has_got(net: Network) -> None:
    """A takeover sends it again, and so what others have got is only counted."""
    broker = net.broker()
    bus = await net.bus(broker)
    await stalled(net, bus, broker)
    said = list[bytes]()
    while bus.pipe.stats.queued < 10:
        said.append(frame(ALERT, b"%d " % len(said) + bytes(2000)))
        bus.say(said[-1])
        assert len(said) < 20_000
    bus.say(frame(TEMP, b"new"))  # waits for the broker's answer
    queued = bus.pipe.stats.queued
    assert bus.pipe.purge("fenced") == [*said[1 - queued :], frame(TEMP, b"new")]
    assert bus.pipe.stats.dropped == {"fenced": queued}
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(())
        bus.say(frame(ALERT, b"for both"))
        assert (await client.receive()).data == b"for both"
        await until(lambda: not bus.pipe.stats.queued)
        left = bus.copies.queued
        assert bus.pipe.purge("fenced") == []
        assert bus.copies.queued == left > 0  # the other one will get it, too
    assert bus.copies.dropped == {"fenced": queued - 1}  # the one that was held had no copies yet


async def test_what_is_too_long_for_a_client_of_2015_is_counted(net: Network) -> None:
    broker = net.broker()
    bus, panel = await net.bus(broker), net.reference(broker)
    panel.subscribe(*ALERT)
    await until(lambda: len(broker.registry) == 2)
    longest = 2056 - len(frame(ALERT))
    for size in (longest + 1, longest, longest + 1, 5):  # the first one shows what kind of client it is
        bus.say(frame(ALERT, bytes(size)))
    async with asyncio.timeout(20):
        while bus.pipe.stats.queued or len(panel.received[ALERT]) < 3:
            await asyncio.to_thread(panel.process)
    assert [len(data) for data in panel.received[ALERT]] == [longest, longest, 5]
    assert (bus.pipe.stats.sent, bus.pipe.stats.dropped) == (2, {"oversize": 2})


@pytest.mark.parametrize("age_s", [None, 0.05])
async def test_what_waits_for_a_starved_client_of_2015_arrives_later_if_it_is_not_too_old(
    net: Network, age_s: float | None
) -> None:
    """The message with which it was dialled is not judged by its age again."""
    broker = net.broker()
    bus = await net.bus(broker, shed=Shed("newest", 3084, age_s), connect_s=0.2, doubt_s=0.3)
    with closing(StarvedClient()) as panel:
        say(broker.addresses[0], packet(SUBSCRIBE, ALERT, packed(panel.address)))
        await until(lambda: len(broker.registry) == 2)
        said = [b"%d" % number * 280 for number in range(10)]
        bus.say(*(frame(ALERT, data) for data in said), frame(ALERT, bytes(2000)))
        assert bus.pipe.stats.dropped["shed"] == 1
        await until(lambda: bus.link.subscribers(ALERT) == [panel.address])
        old = 0 if age_s is None else 9
        await until(lambda: bus.pipe.stats.dropped.get("aged out", 0) == old)
        assert (bus.pipe.stats.queued, bus.pipe.stats.balance()) == (10 - old, 0)
        await processed(lambda: bus.pipe.stats.sent == len(panel.messages) == 10 - old, panel)
        assert panel.messages == said[: 10 - old]
