"""Invalid input to a broker: it is bounded and counted, and all other clients are served."""

import asyncio
import logging
import random
import socket
from collections.abc import AsyncIterator

import pytest

from bus.tmq import Client
from bus.tmq.address import may_name
from bus.tmq.broker import Broker
from bus.tmq.broker.common import NAMED, ClientRules
from bus.tmq.broker.registry import Registry
from bus.tmq.wire import ADD, HELLO, MESSAGE, PUBLISH, SHARED, SUBSCRIBE, pack_address
from bus.wire.frame import pack
from tests.helpers.peers import until
from tests.helpers.tmq import say

HERE = "127.0.0.1:0"
ME = pack_address(("127.0.0.1", 1))


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """A broker with small bounds; at the end of the test it must still serve."""
    made = Broker(
        "tcp://127.0.0.1:0",
        rules=ClientRules(connections=20),
        registry=Registry(150, per_host=100),
        heartbeat_s=0.05,
        idle_s=0.3,
    )
    made.open(asyncio.get_running_loop())
    yield made
    await served(made)
    assert made.stats.balance() == 0
    made.close()


async def served(broker: Broker) -> None:
    async with (
        Client(brokers=broker.urls, listen=HERE) as pub,
        Client(brokers=broker.urls, listen=HERE) as sub,
    ):
        assert await sub.subscribe((77,))
        assert await pub.publish((77, 1), b"served")
        assert (await sub.receive()).data == b"served"


BAD = {
    "family": pack(SUBSCRIBE, (1,), bytes.fromhex("000a002a7f000001")),
    "address cut short": pack(SUBSCRIBE, (1,), ME[:7]),
    "no address": pack(PUBLISH, (1,)),
    "port 0": pack(PUBLISH, (1,), pack_address(("127.0.0.1", 0))),
    "published the empty pattern": pack(PUBLISH, (), ME),
    "type 0x02": pack(MESSAGE, (1,), b"not for a broker"),
    "type 0x05": pack(ADD, (1,), ME),
    "greeting": pack(HELLO, (), b"\x01"),
    "bridge": pack(0x80, (1,)),
    "not a peer broker": pack(SUBSCRIBE | SHARED, (1,), b"\0\x1e" + ME),
    "framing": bytes.fromhex("46 01 ff ff 00000001"),
    "half a packet": pack(SUBSCRIBE, (1,), ME)[:-1],
    "nothing said": b"",
}


@pytest.mark.parametrize("reason", BAD)
async def test_each_kind_is_counted_by_its_reason_and_changes_nothing(broker: Broker, reason: str) -> None:
    for _ in range(3):
        say(broker.addresses[0], BAD[reason])
    await until(lambda: broker.stats.rejected == {reason: 3})
    assert broker.counts["registrations"] == 0


async def test_each_kind_is_logged_once_for_each_peer(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "buscoupler.tmq"):
        for _ in range(50):
            say(broker.addresses[0], BAD["family"])
            say(broker.addresses[0], BAD["port 0"])
        await until(lambda: sum(broker.stats.rejected.values()) == 100)
    told = sorted(record.getMessage() for record in caplog.records)
    assert told == [f"tmq broker: refused from 127.0.0.1: {reason}" for reason in ("family", "port 0")]


async def test_random_bytes(broker: Broker) -> None:
    source = random.Random(9942)
    for _ in range(300):
        wire = bytearray(source.randbytes(source.randrange(1, 200)))
        if source.random() < 0.5:  # plausible headers get further than noise
            wire[0:1] = bytes([source.choice((0x46, 0x45, 0x4E, 0x4D, 0x4F, 0x66, 0x10, 0x80, 0x05))])
            wire[1:4] = bytes([source.randrange(3), 0, source.randrange(20)])
        say(broker.addresses[0], bytes(wire))
    await until(lambda: broker.counts["accepted"] == 300 and not broker.counts["connections"])
    assert sum(broker.stats.rejected.values()) >= 250


async def test_a_flood_of_registrations_is_bounded_and_what_was_there_is_kept(broker: Broker) -> None:
    async with Client(brokers=broker.urls, listen=HERE) as early:
        await early.subscribe((5,))
        reader, writer = await asyncio.open_connection(*broker.addresses[0])
        for number in range(5000):
            writer.write(pack(SUBSCRIBE, (number,), pack_address(("10.1.1.1", 1 + number % 60000))))
        await until(lambda: broker.stats.rejected == {"clients of one connection": 5000 - NAMED})
        assert broker.counts["registrations"] == 1 + NAMED
        assert early.address in broker.registry.subscribers((5, 6))
        writer.close()
        reader.feed_eof()
    for address in {a for _, _, a in list(broker.registry.own())}:
        for role, tokens in broker.registry.of(address):
            broker.registry.remove(role, tokens, address)


async def test_one_address_cannot_fill_the_table() -> None:
    small = Broker("tcp://127.0.0.1:0", registry=Registry(per_address=10))
    small.open(asyncio.get_running_loop())
    for number in range(20):
        say(small.addresses[0], pack(SUBSCRIBE, (number,), ME))
    await until(lambda: small.stats.rejected == {"registrations of one address": 10})
    await served(small)
    small.close()


async def test_connections_that_say_nothing_make_room_for_those_that_do(broker: Broker) -> None:
    async with Client(brokers=broker.urls, listen=HERE) as early:
        await early.subscribe((1,))
        silent = [socket.create_connection(broker.addresses[0]) for _ in range(100)]
        await until(lambda: broker.counts["accepted"] >= 101)
        assert broker.counts["connections"] <= 20
        await served(broker)
        assert early.broker == broker.addresses[0]
        assert early.node.uplink.moves == 0
        await until(lambda: broker.counts["connections"] <= 1)  # the others are closed when idle
    for sock in silent:
        sock.close()


async def test_a_slow_loris_is_closed_though_it_never_stops(broker: Broker) -> None:
    """Single bytes are no packet: a client must send a whole frame within `idle_s`."""
    _reader, writer = await asyncio.open_connection(*broker.addresses[0])
    wire = pack(SUBSCRIBE, (1,), bytes(2048))
    sent = 0
    while broker.counts["accepted"] == 0 or broker.counts["connections"]:
        writer.write(wire[sent % len(wire) : sent % len(wire) + 1])
        sent += 1
        await asyncio.sleep(0.005)
    assert broker.stats.rejected == {"half a packet": 1}
    assert sent < len(wire)
    writer.close()


async def test_a_client_that_never_reads_is_bounded() -> None:
    """A publisher with thousands of subscribers reads nothing: its queue stops at its bound."""
    many = ClientRules(unconnected=12_000, per_connection=12_000)
    small = Broker("tcp://127.0.0.1:0", rules=many, queue_bytes=20_000, heartbeat_s=5.0)
    small.open(asyncio.get_running_loop())
    with socket.create_connection(small.addresses[0]) as sock, socket.create_server(("127.0.0.1", 0)) as own:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        mine = pack_address(own.getsockname())
        sock.sendall(pack(HELLO, (), bytes.fromhex("0100ffff00000001") + mine))
        sock.sendall(pack(PUBLISH, tuple(range(255)), mine))
        await until(lambda: len(small.registry) == 1)
        _, writer = await asyncio.open_connection(*small.addresses[0])
        for number in range(12000):
            address = pack_address((f"10.0.{number % 200}.1", 1 + number // 200))
            writer.write(pack(SUBSCRIBE, tuple(range(number % 5)), address))  # short ones have few units
        await until(lambda: small.stats.dropped.get("queue full", 0) > 0)
        assert small.stats.queued_bytes <= 20_000
        assert small.stats.balance() == 0
        writer.close()
        small.close()
        assert small.stats.balance() == 0


async def test_a_client_survives_nonsense_too() -> None:
    source = random.Random(1)
    made = Broker("tcp://127.0.0.1:0")
    made.open(asyncio.get_running_loop())
    async with Client(brokers=made.urls, listen=HERE, heartbeat_s=0.05, idle_s=0.2) as client:
        await client.publish((1,))
        for reason, wire in {**BAD, "type 0x05": pack(ADD, (9,), ME)}.items():
            say(client.address, wire if reason != "family" else pack(ADD, (1,), BAD["family"][8:]))
        for _ in range(100):
            say(client.address, source.randbytes(source.randrange(1, 100)))
        await until(lambda: client.stats.rejected.get("family", 0) >= 1)
        await until(lambda: client.stats.rejected.get("not published", 0) >= 1)
        await until(lambda: client.node.accepted >= 100 + len(BAD))
        assert client.broker == made.addresses[0]
        assert client.subscribers((1,)) == []
        assert client.stats.balance() == 0
    made.close()


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_stranger_cannot_let_the_broker_dial_another_host(
    broker: Broker, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hosts of a test are this machine, so it is no longer told by its address."""
    monkeypatch.setattr("bus.tmq.address.is_own", lambda host: False)
    broker.revise([], ClientRules(foreign_hosts=allowed))
    with socket.socket() as inner:
        inner.bind(("127.0.0.2", 0))
        inner.listen()
        victim = pack_address(inner.getsockname())
        say(broker.addresses[0], pack(PUBLISH, (1, 2), victim))
        say(broker.addresses[0], pack(PUBLISH, (1, 3), pack_address(("127.0.0.1", 1))))
        refused = {} if allowed else {"address of another host": 1}
        await until(lambda: broker.counts["registrations"] == 1 + allowed)
        await until(lambda: broker.stats.rejected == refused)


def test_a_client_names_its_own_host_and_a_program_of_this_machine_any() -> None:
    assert may_name("10.0.0.7", "10.0.0.7")
    assert may_name("127.0.0.1", "10.0.0.7")
    assert not may_name("10.0.0.7", "10.0.0.8")
    assert not may_name("10.0.0.7", "127.0.0.1")
