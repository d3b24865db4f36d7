"""Refusals: whatever bound or rule of a broker refuses a client, the client is told, by every face."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from bus.tmq import (
    Client,
    tmq_bind,
    tmq_broker,
    tmq_init,
    tmq_publish,
    tmq_refusal,
    tmq_socket,
    tmq_subscribe,
)
from bus.tmq.broker import Broker, ClientRules
from bus.tmq.broker.registry import Registry
from bus.tmq.client.uplink import Uplink
from bus.tmq.peer import SILENT, Peer
from bus.tmq.wire import (
    ANSWERED,
    HELLO,
    REFUSED,
    SUBSCRIBE,
    Cutter,
    Hello,
    Refusal,
    pack_refusal,
    unpack_refusal,
)
from bus.wire.frame import pack
from tests.bus.tmq.broker.broker_house import House
from tests.helpers.peers import until, wait
from tests.helpers.tmq import ReferenceClient

Prepare = Callable[[House, Broker], Any]
PATTERN = ("fridge", "temp")


async def _guests(house: House, broker: Broker, count: int = 3) -> list[Client]:
    made = [await house.client(broker, heartbeat_s=5.0) for _ in range(count)]
    for number, client in enumerate(made):
        await client.subscribe((number,))
    await until(lambda: broker.counts["routes"] == count)
    return made


async def _nothing(house: House, broker: Broker) -> None:
    del house, broker


ANY = ClientRules()
REFUSES: dict[str, tuple[dict[str, int], ClientRules, Prepare, str]] = {
    "connections": ({}, ClientRules(connections=3), _guests, "connections full"),
    "registrations in all": ({"limit": 3}, ANY, _guests, "registrations full"),
    "registrations of an address": ({"per_address": 0}, ANY, _nothing, "registrations of one address"),
    "registrations of a host": ({"per_host": 3}, ANY, _guests, "registrations of one host"),
    "clients that keep no connection": ({}, ClientRules(unconnected=0), _nothing, "clients of one host"),
    "the address of another host": ({}, ANY, _nothing, "address of another host"),
}


@pytest.fixture(params=REFUSES)
async def refusing(request: pytest.FixtureRequest, house: House, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a broker that refuses a further client for each of its reasons, and the words of the reason."""
    bounds, rules, prepare, words = REFUSES[request.param]
    broker = house.broker(heartbeat_s=5.0, rules=rules, registry=Registry(**bounds))
    await prepare(house, broker)
    if "another host" in words:
        monkeypatch.setattr("bus.tmq.broker.registering.may_name", lambda host, named: False)
    return broker, words


async def test_a_client_is_told_and_its_calls_return_false(
    house: House, refusing: tuple[Broker, str], caplog: pytest.LogCaptureFixture
) -> None:
    broker, words = refusing
    with caplog.at_level(logging.WARNING, "buscoupler.tmq"):
        client = await house.client(broker, wait_s=0.3)
        assert not await client.subscribe(PATTERN)
        assert not await client.publish(PATTERN)
        assert not await client.publish(PATTERN, b"21.5")
    await until(lambda: words in client.refusal(PATTERN))
    assert {"client refused", "registration refused"} & client.stats.rejected.keys()
    assert any(words in reason for reason in broker.stats.rejected)
    told = [r.getMessage() for r in caplog.records if words in r.getMessage()]
    assert any(line.startswith("tmq broker: refused from") for line in told)
    assert any(line.startswith(("tmq client: refused by", "broker 127.0.0.1")) for line in told)


async def test_the_functions_of_2015_say_so_too(
    refusing: tuple[Broker, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, words = refusing
    monkeypatch.setattr("bus.tmq.classic._WAIT_S", 0.3)

    def refused() -> list[Any]:
        with tmq_init() as context, tmq_socket(context, heartbeat_s=0.05) as made:
            tmq_bind(made, ("127.0.0.1", 0))
            tmq_broker(made, broker.addresses[0])
            done = [tmq_subscribe(made, PATTERN), tmq_publish(made, PATTERN)]
            wait(lambda: tmq_refusal(made, PATTERN))
            return [*done, tmq_refusal(made, PATTERN)]

    subscribed, published, why = await asyncio.to_thread(refused)
    assert (subscribed, published) == (False, False)
    assert words in why


async def test_a_client_is_taken_when_there_is_room_again(house: House) -> None:
    broker = house.broker(rules=ClientRules(connections=2))
    first, _ = await _guests(house, broker, 2)
    late = await house.client(broker, wait_s=0.1)
    assert not await late.subscribe((1,))
    first.close()
    await until(lambda: broker.counts["routes"] == 1)
    await until(lambda: late.broker is not None)
    async with asyncio.timeout(30):
        while not await late.subscribe((1,)):
            pass  # the broker may answer later than within `wait_s`
    assert late.refusal((1,)) == ""


async def test_a_refused_client_goes_to_the_next_broker(house: House) -> None:
    full, free = house.broker(rules=ClientRules(connections=1)), house.broker()
    await _guests(house, full, 1)
    client = await house.client(full, free)
    assert await client.subscribe((1,))
    assert client.broker == free.addresses[0]


async def test_a_client_that_makes_room_is_told(house: House) -> None:
    broker = house.broker(rules=ClientRules(connections=4))
    crowd = await _guests(house, broker, 4)
    loop = asyncio.get_running_loop()
    with socket.socket() as other:
        other.setblocking(False)
        other.bind(("127.0.0.2", 0))
        await loop.sock_connect(other, broker.addresses[0])
        await until(lambda: any("client refused" in client.stats.rejected for client in crowd))
    assert any("closed to make room" in client.node.uplink.fault for client in crowd)


async def test_a_client_of_2015_is_never_sent_a_refusal(house: House) -> None:
    """It fails on a type that it does not know. A connection that ends without an answer it takes well."""
    broker = house.broker(rules=ClientRules(connections=1, unconnected=1))
    [theirs, more] = [ReferenceClient(broker.addresses[0]) for _ in range(2)]
    theirs.subscribe(1)
    more.subscribe(1)
    await until(lambda: "clients of one host that keep no connection" in broker.stats.rejected)
    broker.revise([], ClientRules(connections=1))
    await _guests(house, broker, 1)
    theirs.subscribe(2)
    await until(lambda: broker.counts["refused"] == 1)
    for sock in (theirs, more):
        sock.process()
        assert sock.heard == []
        sock.close()


async def test_a_refused_client_that_says_late_who_it_is_gets_its_answer(house: House) -> None:
    broker = house.broker(rules=ClientRules(connections=1))
    await _guests(house, broker, 1)
    reader, writer = await asyncio.open_connection(*broker.addresses[0])
    await until(lambda: broker.counts["refused"] == 1)
    writer.write(pack(HELLO, (), bytes.fromhex("0100ffff00000001")))
    frames = Cutter().cut(await reader.read())
    assert [frame[0] for frame in frames] == [REFUSED]
    assert unpack_refusal(frames[0]).why.startswith("connections full")
    writer.close()


async def test_a_refusal_of_a_stranger_is_counted_and_changes_nothing(house: House) -> None:
    broker = house.broker()
    [client] = await _guests(house, broker, 1)
    _, writer = await asyncio.open_connection(*client.address)
    writer.write(
        pack_refusal(Refusal(SUBSCRIBE, (1,), "I do not like you")) + pack_refusal(Refusal(0, (), ""))
    )
    await until(lambda: client.stats.rejected == {"refusal of no broker": 2})
    assert (client.refusal((1,)), client.broker) == ("", broker.addresses[0])
    writer.close()


async def test_a_broker_of_an_earlier_version_that_closes_without_a_word_is_no_broker_of_2015(
    house: House,
) -> None:
    """It has not read the greeting, so the connection is reset: one of 2015 reads the packet first."""
    with socket.create_server(("127.0.0.1", 0)) as full:
        client = await house.client("tcp://{}:{}".format(*full.getsockname()), wait_s=0.0)
        assert not await client.publish((1,))
        full.setblocking(False)
        connection, _ = await asyncio.get_running_loop().sock_accept(full)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes.fromhex("0100000000000000"))
        connection.close()
        await until(lambda: client.node.uplink.moves >= 1)
        assert client.node.uplink.fault.endswith("closed without a word")


def test_what_a_refusal_says_is_bounded_and_can_be_shown() -> None:
    made = Refusal(SUBSCRIBE, (1, 2), "registrations full")
    assert unpack_refusal(pack_refusal(made)) == made
    assert len(unpack_refusal(pack_refusal(made._replace(why=1000 * "x"))).why) == 120
    assert unpack_refusal(pack(REFUSED, (), b"\x46\x1b[2Jred\n")).why == "?[2Jred?"
    assert unpack_refusal(pack(REFUSED, ())) == Refusal(0, (), "no reason given")


async def test_a_refusal_stays_while_all_is_registered_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat that registers all again comes in the very turn in which the broker has answered."""
    client = await house.client(
        house.broker(registry=Registry(per_address=0)), heartbeat_s=5.0, refresh_s=0.001
    )
    uplink, answers = client.node.uplink, list[Hello]()
    heard = Uplink.peer_hello

    def and_a_heartbeat(self: Uplink, peer: Peer, hello: Hello) -> None:
        heard(self, peer, hello)
        if self is uplink and hello.flags & ANSWERED and len(answers) < 3:
            answers.append(hello)
            self.tick(asyncio.get_running_loop().time() + 6.0)

    monkeypatch.setattr(Uplink, "peer_hello", and_a_heartbeat)
    assert not await client.subscribe(PATTERN)
    assert not await client.publish(PATTERN)
    assert "registrations of one address" in client.refusal(PATTERN)
    assert len(answers) > 1


async def test_a_refusal_ends_when_the_broker_takes_the_repeated_registration(house: House) -> None:
    broker = house.broker(registry=Registry(1))
    first, late = [await house.client(broker, refresh_s=0.1) for _ in range(2)]
    assert await first.subscribe((1,))
    assert not await late.subscribe((2,))
    first.close()
    await until(lambda: broker.counts["routes"] == 1 and not late.refusal((2,)))


async def test_a_look_at_a_better_broker_leaves_the_refusals_of_the_one_in_use(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # it takes connections, and does not answer
        away = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        client = await house.client(away, house.broker(registry=Registry(per_address=0)), connect_s=0.1)
        assert not await client.subscribe(PATTERN)
        assert client.broker is not None
        taken = list[socket.socket]()
        deaf.setblocking(False)

        def looked_again() -> bool:
            with suppress(BlockingIOError):
                taken.append(deaf.accept()[0])
            return len(taken) > 1

        await until(looked_again)
        for connection in taken:
            connection.close()
        assert "registrations of one address" in client.refusal(PATTERN)


async def test_a_broker_that_only_takes_connections_has_not_registered_anything(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        client = await house.client(url, verdict_s=0.01, connect_s=0.05, wait_s=0.3)
        assert not await client.subscribe(PATTERN)
        assert not await client.publish(PATTERN)
        assert client.broker is None
        assert client.refusal(PATTERN) == f"127.0.0.1:{url.rpartition(':')[2]}: {SILENT}"
