"""A side on the TMQ network, with clients as of 2015 and with other sides."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.media.tmq.medium import Tmq
from bus.errors import LinkError
from bus.tmq import Client
from bus.tmq.unread import LIMIT
from bus.wire.frame import SUB
from bus.wire.pattern import Pattern
from tests.bridges.media.tmq.tmq_network import ALERT, TEMP, Bus, Network, frame, network
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import SUBSCRIBE, ReferenceBroker, packed, packet, processed, say


@pytest.fixture
async def net() -> AsyncIterator[Network]:
    with network() as made:
        yield made


async def test_a_client_of_2015_publishes_into_the_bus(net: Network) -> None:
    broker = net.broker()
    bus, fridge = await net.bus(broker), net.reference(broker)
    fridge.publish(*TEMP)
    await processed(lambda: fridge.subscribers[TEMP] == {bus.address}, fridge)
    for number in range(5):
        fridge.send(TEMP, b"%d" % number)
    await until(lambda: len(bus.heard.messages) == 5)
    assert bus.heard.messages == [frame(TEMP, b"%d" % number) for number in range(5)]
    assert bus.pipe.stats.received == 5
    assert not bus.pipe.stats.rejected


async def test_the_bus_publishes_to_a_client_of_2015(net: Network) -> None:
    broker = net.broker()
    bus, panel = await net.bus(broker), net.reference(broker)
    panel.subscribe(*ALERT)
    await until(lambda: len(broker.registry) == 2)
    bus.say(frame(ALERT, b"0"))  # a new pattern: its first message arrives, too
    bus.say(*(frame(ALERT, b"%d" % number) for number in range(1, 5)))
    await processed(lambda: len(panel.received[ALERT]) == 5, panel)
    assert panel.received[ALERT] == [b"0", b"1", b"2", b"3", b"4"]
    assert (bus.pipe.stats.sent, bus.pipe.stats.dropped) == (5, {})
    assert bus.heard.messages == []


async def test_a_busy_bridge_passes_a_client_of_2015_as_many_as_it_has_room_for_each_time(
    net: Network,
) -> None:
    """A flood makes each round of the loop long, and other clients must not wait for many of them."""
    broker = net.broker()
    bus, panel = await net.bus(broker, connect_s=20.0), net.reference(broker)
    panel.subscribe(*ALERT)
    await until(lambda: len(broker.registry) == 2)
    bus.say(frame(ALERT, b"first"))
    await processed(lambda: bus.pipe.stats.sent == 1, panel)
    bus.say(*(frame(ALERT, b"%d" % number) for number in range(3 * LIMIT)))
    await asyncio.sleep(0)
    assert bus.pipe.stats.sent == 1 + LIMIT
    panel.process()  # what was sent is there, so it does not block
    for _ in range(2):  # the loop sees that connections were closed, then this test is next
        await asyncio.sleep(0)
    assert bus.pipe.stats.sent == 1 + 2 * LIMIT
    await processed(lambda: len(panel.received[ALERT]) == 1 + 3 * LIMIT, panel)
    assert panel.received[ALERT] == [b"first", *(b"%d" % number for number in range(3 * LIMIT))]


@pytest.mark.parametrize("brokers", [None, ("main",), ("tcp://127.0.0.1:9942", "main")])
def test_a_link_needs_addresses_of_brokers(brokers: tuple[str, ...] | None) -> None:
    with pytest.raises(LinkError, match="brokers are needed by address: tcp://HOST:PORT"):
        Tmq(brokers=brokers).link()


async def test_only_messages_go_out(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker)
    bus.say(*(frame(ALERT, b"", kind) for kind in range(256) if kind != 1), frame(Pattern(), b"x"))
    assert bus.pipe.stats.dropped == {"type": 255, "no pattern": 1}
    assert [broker.registry.of(bus.address)] == [[(2, ())]]


async def test_what_nobody_wants_is_counted(net: Network) -> None:
    bus = await net.bus(net.broker())
    bus.say(frame(ALERT), frame(ALERT))
    await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 2})
    bus.say(frame(ALERT))
    assert bus.pipe.stats.dropped == {"no subscriber": 3}


async def test_its_own_publications_do_not_come_back(net: Network) -> None:
    """Both subscribe to everything, and so does a client that sends all back under another pattern."""
    broker = net.broker()
    one, other = await net.bus(broker), await net.bus(broker)
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as echo:
        await echo.subscribe(TEMP)
        one.say(*[frame(TEMP, b"5")] * 2)
        other.say(frame(TEMP, b"5"))
        for _ in range(3):
            await echo.publish(ALERT, (await echo.receive()).data)
        await until(lambda: len(one.heard.messages) == 4)
        await until(lambda: len(other.heard.messages) == 5)
    assert sorted(one.heard.messages) == sorted([frame(TEMP, b"5"), *[frame(ALERT, b"5")] * 3])
    assert sorted(other.heard.messages) == sorted([*[frame(TEMP, b"5")] * 2, *[frame(ALERT, b"5")] * 3])
    assert other.address not in other.link.subscribers(TEMP)


async def test_it_learns_from_the_greeting_that_an_address_is_its_own(net: Network) -> None:
    """As behind a router that translates addresses. The first message has come back by then."""
    broker = net.broker()
    # Not all are at loopback, so it listens on all.
    bus = await net.bus(broker, "tcp://192.0.2.1:9", host="*")
    say(broker.addresses[0], packet(SUBSCRIBE, TEMP, packed(("127.0.0.2", bus.address[1]))))
    await until(lambda: len(broker.registry.subscribers(TEMP)) == 2)
    bus.say(frame(TEMP, b"0"))
    await until(lambda: bus.pipe.stats.dropped == {"closed": 1})
    bus.say(frame(TEMP, b"1"))
    assert bus.pipe.stats.dropped == {"closed": 1, "no subscriber": 1}
    await net.bus(broker)  # whatever was on its way has arrived
    assert bus.heard.messages == [frame(TEMP, b"0")]


@pytest.mark.parametrize(("more", "host"), [((), "127.0.0.1"), (("tcp://192.0.2.1:9",), "0.0.0.0")])
async def test_publishers_of_this_machine_only_connect_at_loopback(
    net: Network, more: tuple[str, ...], host: str
) -> None:
    assert (await net.bus(net.broker(), *more, host="*")).address[0] == host


async def test_the_address_that_a_broker_is_told_is_that_of_the_connection_to_it(net: Network) -> None:
    broker = net.broker("tcp://127.0.0.3:0")
    bus = await net.bus(broker, host="*")
    assert broker.registry.subscribers(()) == [("127.0.0.1", bus.address[1])]


async def test_what_another_pattern_covers_is_not_asked_for(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker, subscribe=(TEMP, ("fridge",), ALERT, ("door",)))
    assert sorted(broker.registry.of(bus.address)) == sorted(
        (2, Pattern(name)) for name in ("fridge", "door")
    )


async def test_other_settings_reach_the_brokers_and_what_waits(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker, subscribe=(("fridge",), ("door",)), patterns=1)
    bus.say(frame(TEMP), frame(ALERT))
    await until(lambda: bus.pipe.stats.dropped == {"patterns full": 1, "no subscriber": 1})
    other = Bus.made(broker.urls, subscribe=(("door",), ("motor",)), patterns=2)
    assert bus.link.revise(other)
    await bus.link.settled()
    subscribed = [tokens for kind, tokens in broker.registry.of(bus.address) if kind == SUB]
    assert sorted(subscribed) == sorted(Pattern(name) for name in ("door", "motor"))
    bus.say(frame(ALERT))
    await until(lambda: bus.pipe.stats.dropped == {"patterns full": 1, "no subscriber": 2})


async def test_a_side_that_subscribes_to_nothing_is_up_while_a_broker_answers(net: Network) -> None:
    """Or a bridge that only publishes could not fail over, and nobody would see that its broker is away."""
    broker = net.broker(f"tcp://127.0.0.1:{free_port()}")
    bus = await net.bus(broker, subscribe=())
    assert broker.registry.of(bus.address) == []
    broker.close()
    await until(lambda: bus.link.state == "waiting")
    broker = net.broker(broker.urls[0])
    await until(lambda: bus.link.state == "up")
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(ALERT)
        bus.say(frame(ALERT, b"open"))
        assert (await client.receive()).data == b"open"
    assert broker.stats.rejected == {}


@pytest.mark.parametrize("count", [0, 1])
async def test_it_reaches_a_broker_of_2015_whatever_it_subscribes_to(net: Network, count: int) -> None:
    broker = ReferenceBroker()
    net.stack.callback(broker.close)
    bus = Bus(f"tcp://127.0.0.1:{broker.address[1]}", subscribe=(TEMP,) * count)
    await processed(lambda: bus.link.state == "up", broker)
    bus.link.close()


async def test_losses_are_counted_over_all_times_that_it_is_open(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker)
    broker.close()
    await until(lambda: bus.link.losses == 1)
    bus.link.close()
    assert (bus.link.losses, bus.link.state) == (1, "closed")
    bus.link.open(bus.hub, asyncio.get_running_loop())
    assert bus.link.losses == 1
