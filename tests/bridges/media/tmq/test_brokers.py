"""Brokers that die, come back and move, and the patterns that they are told."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from bridges.media.shedding import Shed
from bridges.media.tmq import pipe
from bridges.media.tmq.declared import Declarations
from bus.tmq import Client
from bus.tmq.broker.registry import Registry
from bus.tmq.client import node, uplink
from bus.tmq.wire import ADD, ANSWER, ANSWERED, HELLO, Cutter, Hello, pack_hello
from bus.wire.frame import SUB, pack
from bus.wire.pattern import Pattern
from tests.bridges.media.tmq.tmq_network import ALERT, TEMP, Bus, Network, frame, network
from tests.bus.tmq.broker.broker_house import FAST, free_urls
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import ReferenceBroker, ReferenceClient, packed, packet, processed, say


@pytest.fixture
async def net() -> AsyncIterator[Network]:
    with network() as made:
        yield made


async def arrives(bus: Bus, client: Client, pattern: Pattern, data: bytes = b"now") -> None:
    """Check that a message of the bus reaches a client, once."""
    bus.say(frame(pattern, data))
    async with asyncio.timeout(20):
        assert await client.receive() == (pattern, data)
    assert client.receive_nowait() is None


async def test_brokers_die_one_after_the_other_and_come_back(net: Network) -> None:
    """Known patterns go on without any broker; new ones wait for the next one that answers."""
    urls = free_urls(2)
    first, second = (net.broker(url, peers=urls, share_s=0.1) for url in urls)
    bus = await net.bus(first, second)
    quick: dict[str, Any] = FAST
    async with Client(urls, listen="127.0.0.1:0", **quick) as client:
        await client.subscribe(())
        await arrives(bus, client, TEMP)
        first.close()
        await until(lambda: bus.link.losses == 1 and bus.link.state == "up")
        await until(lambda: client.address in second.registry.subscribers(()))
        await arrives(bus, client, TEMP)
        await arrives(bus, client, ALERT)

        first = net.broker(urls[0], peers=urls, share_s=0.1)
        await until(lambda: bus.address in first.registry.subscribers(()))
        await until(lambda: client.address in first.registry.subscribers(()))
        await arrives(bus, client, Pattern("new"))

        first.close()
        second.close()
        await until(lambda: bus.link.state == "waiting")
        assert bus.link.fault
        await arrives(bus, client, TEMP)
        bus.say(*(frame(Pattern("newer"), b"%d" % number) for number in range(3)))
        assert bus.pipe.stats.queued == 3
        await until(lambda: client.broker is None)
        second = net.broker(urls[1], peers=urls, share_s=0.1)
        second.registry.add(SUB, (), client.address, "127.0.0.1")  # it was quicker than the bus
        for number in range(3):
            async with asyncio.timeout(20):
                assert await client.receive() == (Pattern("newer"), b"%d" % number)
    assert (bus.pipe.stats.balance(), bus.pipe.stats.dropped) == (0, {})


async def states(bus: Bus, broker: object) -> list[str]:
    """Return the states of a side's link, at each turn of the loop until another broker answers or none."""
    found = [bus.link.state]
    while bus.link.state == "up" and (bus.link.losses == 0 or bus.broker in (None, broker)):
        await asyncio.sleep(0)
        found.append(bus.link.state)
    return sorted(set(found))


async def test_a_link_is_up_until_all_brokers_are_tried(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that moves to the next broker loses nothing, so none must take over from it."""
    monkeypatch.setattr(uplink, "MOVING_S", 60.0)
    first, second, third = (net.broker() for _ in range(3))
    bus = await net.bus(first, second, third, return_s=20.0)
    first.close()
    second.close()
    assert await states(bus, first.addresses[0]) == ["up"]
    assert bus.broker == third.addresses[0]
    assert bus.link.losses == 1
    third.close()
    assert await states(bus, third.addresses[0]) == ["up", "waiting"]
    bus.link.close()


async def test_a_link_is_not_up_while_the_next_broker_takes_no_connection(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that is cut off from all brokers must not keep the lease while it tries each."""
    monkeypatch.setattr(uplink, "MOVING_S", 0.01)
    first = net.broker()
    with socket.create_server(("127.0.0.1", 0), backlog=0) as hole, ExitStack() as filled:
        for _ in range(4):
            one = filled.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(hole.getsockname())
        bus = await net.bus(first, f"tcp://127.0.0.1:{hole.getsockname()[1]}")
        first.close()
        await until(lambda: bus.link.state == "waiting")
        assert "timed out" not in bus.link.fault
        bus.link.close()


async def test_a_link_is_not_up_before_a_broker_has_answered(net: Network) -> None:
    bus = Bus(*free_urls(2))
    assert bus.link.state == "opening"
    assert "up" not in await states(bus, None)
    await until(lambda: bus.link.state == "waiting")
    bus.link.close()


async def test_without_a_broker_new_patterns_wait_no_longer_than_they_may(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "HOLD_S", 0.05)
    bus = Bus("tcp://127.0.0.1:1", queue_bytes=4000)
    bus.say(*(frame(Pattern("new"), bytes(1000)) for _ in range(5)))
    assert (bus.pipe.stats.queued, bus.pipe.stats.dropped) == (3, {"queue full": 2})
    await until(lambda: bus.pipe.stats.dropped == {"queue full": 2, "undeclared": 3})
    assert (bus.pipe.stats.balance(), bus.pipe.stats.queued) == (0, 0)
    bus.link.close()


async def test_a_policy_of_the_side_bounds_what_waits_for_its_pattern(net: Network) -> None:
    bus = Bus("tcp://127.0.0.1:1", shed=Shed("oldest", 4000, age_s=0.05))
    bus.say(*(frame(Pattern("new"), bytes(1000)) for _ in range(5)))
    assert (bus.pipe.stats.queued, bus.pipe.stats.dropped) == (3, {"shed": 2})
    await until(lambda: bus.pipe.stats.dropped == {"shed": 2, "aged out": 3})
    bus.link.close()


async def test_patterns_that_come_while_a_broker_is_asked_are_asked_about_next(net: Network) -> None:
    bus = await net.bus(net.broker())
    for number in range(3):
        bus.say(frame(Pattern(number)))
        await asyncio.sleep(0)
    await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 3})


async def test_a_greeting_is_no_answer(net: Network) -> None:
    """A sign of life may come between the question and its answer."""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cutter, tasks = Cutter(), list[asyncio.Task[None]]()
        while data := await reader.read(4096):
            for one in cutter.cut(data):
                if one[0] == HELLO and one[5] & ANSWER:
                    writer.write(pack_hello(Hello(1, 0)))
                    tasks.append(asyncio.create_task(answered(writer)))
                    asked.set()
                elif not tasks:
                    writer.write(pack_hello(Hello(1, 0)))
        writer.close()

    async def answered(writer: asyncio.StreamWriter) -> None:
        await answer.wait()
        writer.write(pack_hello(Hello(1, 0, ANSWERED)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        bus = Bus(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await until(lambda: bus.link.state == "up")
        bus.say(frame(TEMP))
        await asyncio.wait_for(asked.wait(), 20)
        await asyncio.wait([asyncio.create_task(asyncio.sleep(0.05))])
        assert (bus.pipe.stats.queued, bus.pipe.stats.dropped) == (1, {})
        answer.set()
        await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 1})
        bus.link.close()


async def test_a_broker_names_no_more_subscribers_than_the_bound_and_none_without_a_port(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "_SUBSCRIBERS", 3)
    bus = await net.bus(net.broker())
    bus.say(frame(TEMP))
    await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 1})
    named = [("127.0.0.2", 0), *((f"127.0.0.{number}", 9) for number in range(2, 7))]
    say(bus.address, packet(ADD, TEMP, b"".join(map(packed, named))))
    await until(lambda: bus.pipe.stats.rejected == {"subscribers full": 3})
    assert bus.link.subscribers(TEMP) == named[1:4]


async def test_a_subscriber_that_a_broker_names_again_is_tried_at_once(net: Network) -> None:
    bus = await net.bus(net.broker(), retry_min_s=20.0, retry_max_s=20.0)
    where, other = (("127.0.0.1", free_port()) for _ in range(2))
    bus.say(frame(TEMP))
    await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 1})
    say(bus.address, packet(ADD, TEMP, packed(where)))
    await until(lambda: bus.link.subscribers(TEMP) == [where])
    bus.say(frame(TEMP))
    await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 1, "peer gone": 1})
    async with Client([], listen=where) as client:
        await client.subscribe(TEMP)
        say(bus.address, packet(ADD, TEMP, packed(where) + packed(other)))
        await until(lambda: bus.link.subscribers(TEMP) == [where, other])
        await arrives(bus, client, TEMP)


async def test_a_broker_moves_to_another_address(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is looked up each time that it is dialled, without a pause of the loop."""
    port, where = free_port(), ["127.0.0.1"]
    first = net.broker(f"tcp://127.0.0.1:{port}")

    async def look_up(host: str, port: int, **_: Any) -> list[Any]:
        await asyncio.sleep(0)
        if not where:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where[0], port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    bus = Bus(f"tcp://gw-a.example:{port}")
    await until(lambda: bus.address in first.registry.subscribers(()))
    del where[:]
    first.close()
    await until(lambda: "no such name" in bus.link.fault)
    second = net.broker(f"tcp://127.0.0.2:{port}")
    where[:] = ["127.0.0.2"]
    await until(lambda: bus.link.state == "up" and bus.address in second.registry.subscribers(()))
    bus.link.close()


@pytest.mark.parametrize("is_refused", [True, False])
async def test_each_address_of_a_brokers_name_is_tried(
    net: Network, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    """At the first address nobody listens, or a program that never says a word."""
    port = free_port()
    broker = net.broker(f"tcp://127.0.0.1:{port}")

    async def look_up(host: str, port: int, **_: Any) -> list[Any]:
        found = ("127.0.0.2", "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    with nullcontext() if is_refused else socket.create_server(("127.0.0.2", port)):
        bus = Bus(f"tcp://gw-a.example:{port}", connect_s=0.1, retry_min_s=0.001)
        await until(lambda: bus.link.state == "up" and bus.address in broker.registry.subscribers(()))
        bus.link.close()


async def test_a_broker_of_2015_names_the_subscribers_late_and_the_first_message_arrives(
    net: Network,
) -> None:
    broker = ReferenceBroker()
    net.stack.callback(broker.close)
    panel = ReferenceClient(broker.address)
    net.stack.callback(panel.close)
    bus = Bus(f"tcp://127.0.0.1:{broker.address[1]}", subscribe=(TEMP,))
    await processed(lambda: broker.subscribed.get(TEMP) == {bus.address}, broker)
    panel.subscribe(*ALERT)
    await processed(lambda: ALERT in broker.subscribed, broker)
    bus.say(frame(ALERT, b"0"), frame(ALERT, b"1"))
    await processed(lambda: len(panel.received[ALERT]) == 2, broker, panel)
    assert panel.received[ALERT] == [b"0", b"1"]
    panel.publish(*TEMP)
    await processed(lambda: panel.subscribers[TEMP], broker, panel)
    await asyncio.to_thread(panel.send, TEMP, b"21.5")
    await until(lambda: bus.heard.messages == [frame(TEMP, b"21.5")])
    bus.link.close()


async def test_a_flood_of_new_patterns_does_not_stop_those_in_use(net: Network) -> None:
    broker = net.broker()
    bus = await net.bus(broker, patterns=100)
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(TEMP)
        await arrives(bus, client, TEMP)
        for first in range(0, 100_000, 1000):
            bus.say(*(pack(1, (number,)) for number in range(first, first + 1000)))
            await arrives(bus, client, TEMP)
    assert len(broker.registry.of(bus.address)) == 101
    stats = bus.pipe.stats
    assert stats.sent == 101
    assert stats.dropped == {"no subscriber": 99, "patterns full": 99_901}


async def test_a_broker_refuses_more_patterns_than_it_takes_and_says_so(net: Network) -> None:
    broker = net.broker(registry=Registry(per_address=50))
    bus = await net.bus(broker, patterns=100)
    bus.say(*(frame(Pattern(number)) for number in range(100)))
    await until(lambda: bus.pipe.stats.dropped == {"no subscriber": 100})
    rejected = broker.stats.rejected
    assert list(rejected) == ["registrations of one address"]
    assert rejected["registrations of one address"] >= 51  # each is asked for again later


def test_the_pattern_that_was_unused_longest_makes_room_if_it_is_idle() -> None:
    patterns = Declarations(3, idle_s=60)
    a, b, c, d = (bytes((0, 0, 0, number)) for number in range(4))
    for number, key in enumerate((a, b, c)):
        assert patterns.surplus(number) == []
        assert patterns.add(key, number)
    assert patterns.find(a, 50)
    assert (patterns.surplus(60.9), patterns.add(d, 60.9)) == ([], None)  # b was used at 1
    assert [gone.tokens for gone in patterns.surplus(61)] == [(1,)]
    assert patterns.add(d, 61)
    assert patterns.find(b, 61) is None
    assert [gone.tokens for gone in patterns.surplus(62)] == [(2,)]
    assert patterns.add(b, 62)
    assert patterns.surplus(109.9) == []  # a was used at 50
    assert len(patterns) == 3


async def test_a_pattern_that_is_taken_back_is_declared_again_when_it_is_used(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "Declarations", lambda limit: Declarations(limit, 0.0))
    broker = net.broker()
    bus = await net.bus(broker, patterns=1)
    async with Client([broker.urls[0]], listen="127.0.0.1:0") as client:
        await client.subscribe(())
        for pattern in (TEMP, ALERT, TEMP, ALERT):
            await arrives(bus, client, pattern)
        assert len(broker.registry.of(bus.address)) == 2


async def test_a_client_that_loops_its_own_messages_stops_nobody(net: Network) -> None:
    """It hears itself, and sends all that it hears again: as many messages as it can, without an end."""
    broker = net.broker()
    bus, fridge, url = await net.bus(broker), net.reference(broker), broker.urls[0]
    fridge.publish(*ALERT)
    await processed(lambda: fridge.subscribers[ALERT], fridge)
    async with Client([url], listen="127.0.0.1:0") as looper, Client([url], listen="127.0.0.1:0") as panel:
        await looper.subscribe(TEMP)
        await panel.subscribe("door")

        async def loop() -> None:
            async for pattern, data in looper:
                await looper.publish(pattern, data)

        looping = asyncio.create_task(loop())
        bus.say(frame(TEMP, b"1"))
        await until(lambda: len(bus.heard.messages) > 2000)
        fridge.send(ALERT, b"open")
        await arrives(bus, panel, Pattern("door"))
        await until(lambda: frame(ALERT, b"open") in bus.heard.messages)
        looping.cancel()
    await until(lambda: bus.pipe.stats.sent == bus.pipe.stats.offered == 2)  # none of what came back
    assert set(bus.heard.messages) == {frame(TEMP, b"1"), frame(ALERT, b"open")}
