"""Strangers that make brokers and publishers send to addresses of their choice: a handful, by any way."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bus.tmq import Client, address
from bus.tmq.broker import Broker
from bus.tmq.broker.common import NAMED, ClientRules
from bus.tmq.client.node import _HEARSAY
from bus.tmq.wire import (
    ADD,
    FORGET,
    PUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Address,
    Hello,
    address_frames,
    data_of,
    pack_address,
    pack_hello,
    pack_shared,
    unpack_hello,
)
from bus.wire.frame import SUB, pack
from tests.bus.tmq.broker.broker_house import House
from tests.helpers.peers import until
from tests.helpers.ports import claimed
from tests.helpers.tmq import say

PLACES = [("127.0.0.1", port) for port in claimed()]  # where no other process listens
COUNT = len(PLACES)
SUBSCRIPTIONS = [pack(SUBSCRIBE, (), pack_address(place)) for place in PLACES]
PUBLICATIONS = [pack(PUBLISH, (1,), pack_address(place)) for place in PLACES]
Way = Callable[[Broker, Client], Coroutine[Any, Any, None]]


async def _on_one_connection(broker: Broker, _: Client) -> None:
    await _say(broker, b"".join(SUBSCRIPTIONS))


async def _on_one_that_greets(broker: Broker, _: Client) -> None:
    await _say(broker, pack_hello(Hello(9, 60_000)) + b"".join(SUBSCRIPTIONS))


async def _as_publishers(broker: Broker, _: Client) -> None:
    await _say(broker, b"".join(PUBLICATIONS))


async def _on_one_that_greets_as_each(broker: Broker, _: Client) -> None:
    hellos = [pack_hello(Hello(9, 60_000, address=place)) for place in PLACES]
    said = b"".join(hello + said for hello, said in zip(hellos, SUBSCRIPTIONS, strict=True))
    await _say(broker, said, 2 * COUNT)  # on a connection that has ended, it would name `NAMED` more


async def _on_many_connections(broker: Broker, _: Client) -> None:
    before = broker.stats.received
    for said in SUBSCRIPTIONS:
        await asyncio.to_thread(say, broker.addresses[0], said)
    await until(lambda: broker.stats.received >= before + COUNT and not broker.counts["waiting"])


async def _as_another_broker(broker: Broker, _: Client) -> None:
    shared = b"".join(said for place in PLACES for said in pack_shared(SUBSCRIBE, (), [place], 60))
    await _say(broker, pack_hello(Hello(9, 60_000)) + shared)


async def _to_the_publisher_itself(_: Broker, publisher: Client) -> None:
    with socket.create_connection(publisher.address, source_address=("127.0.0.2", 0)) as sock:
        sock.sendall(b"".join(address_frames(ADD, (1,), PLACES)))
        await until(lambda: sum(publisher.stats.rejected.values()) >= COUNT - _HEARSAY)


async def _say(broker: Broker, data: bytes, frames: int = COUNT) -> None:
    before = broker.stats.received
    with socket.create_connection(broker.addresses[0]) as sock:
        sock.sendall(data)
        await until(lambda: broker.stats.received >= before + frames and not broker.counts["waiting"])


WAYS: dict[str, tuple[Way, int]] = {
    "subscriptions on one connection": (_on_one_connection, NAMED),
    "subscriptions on one that greets": (_on_one_that_greets, NAMED),
    "publications": (_as_publishers, NAMED),
    "one that greets as each of them": (_on_one_that_greets_as_each, 1),
    "a connection for each": (_on_many_connections, 8),
    "another broker": (_as_another_broker, 0),
    "news to the publisher": (_to_the_publisher_itself, _HEARSAY),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_stranger_s_kilobytes_make_nobody_send_to_more_than_a_handful(house: House, way: str) -> None:
    begin, most = WAYS[way]
    other = house.broker()
    broker = house.broker(rules=ClientRules(unconnected=8), peers=other.urls)
    publisher = await house.client(broker)
    assert await publisher.publish((1,))
    seen = [0]
    reached = asyncio.create_task(begin(broker, publisher))

    def looked() -> bool:
        subscribers = set(broker.registry.subscribers((1,))) | set(publisher.subscribers((1,)))
        publishers = {place for place in PLACES if broker.registry.knows(place)}
        seen.append(len(subscribers | publishers))
        return reached.done()

    await until(looked)
    await reached
    assert min(most, 1) <= max(seen) <= most + 1


async def _by_the_publisher_s_listener(_: Broker, publisher: Client, place: Address) -> None:
    with socket.create_connection(publisher.address, source_address=("127.0.0.2", 0)) as sock:
        sock.sendall(b"".join(address_frames(FORGET, (1,), [place])))


async def _as_a_broker(broker: Broker, _: Client, place: Address) -> None:
    await _say(broker, pack_hello(Hello(9, 60_000)) + b"".join(pack_shared(UNSUBSCRIBE, (), [place], 60)), 2)


async def _as_a_client_that_shares(broker: Broker, _: Client, place: Address) -> None:
    hello = pack_hello(Hello(9, 60_000, address=("127.0.0.1", 1)))
    await _say(broker, hello + b"".join(pack_shared(UNSUBSCRIBE, (), [place], 60)), 2)


@pytest.mark.parametrize("take", [_by_the_publisher_s_listener, _as_a_broker, _as_a_client_that_shares])
async def test_a_stranger_takes_no_subscriber_away(
    house: House, take: Callable[[Broker, Client, Address], Coroutine[Any, Any, None]]
) -> None:
    broker = house.broker(peers=house.broker().urls)
    publisher, subscriber = await house.client(broker), await house.client(broker)
    await subscriber.subscribe(())
    await publisher.publish((1,))
    await take(broker, publisher, subscriber.address)
    await until(lambda: broker.stats.rejected or publisher.stats.rejected)
    assert publisher.subscribers((1,)) == [subscriber.address]


async def test_many_clients_of_one_host_that_are_connected_are_no_strangers(house: House) -> None:
    broker = house.broker(rules=ClientRules(unconnected=2))
    publisher = await house.client(broker)
    await publisher.publish((1,))
    crowd = [await house.client(broker) for _ in range(30)]
    for client in crowd:
        assert await client.subscribe((1,))
    await until(lambda: len(publisher.subscribers((1,))) == 30)
    assert broker.stats.rejected == {}


async def test_a_stranger_with_the_number_of_a_broker_is_not_taken_for_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of the broker is adopted although the stranger is there, and not given back to it."""
    monkeypatch.setattr(address, "is_own", lambda host: False)  # so that 127.0.0.2 is another machine
    gone = house.broker()
    broker = house.broker(peers=gone.urls)
    client = await house.client(gone)
    await until(lambda: broker.counts["peers"] == 1)
    number = await asyncio.to_thread(_number_of, gone.addresses[0])
    gone.close()
    with socket.create_connection(broker.addresses[0], source_address=("127.0.0.2", 0)) as stranger:
        await _greets(stranger, broker, number)
        assert not any(tell for _, tell in broker.registry.share(SUB, (1,), client.address, number, 0.0)[0])
        await until(lambda: broker.counts["adopted"] == 1)
    with socket.create_connection(broker.addresses[0], source_address=("127.0.0.2", 0)) as stranger:
        await _greets(stranger, broker, number)
        assert list(broker.registry.own()) == [(SUB, (1,), client.address)]


def _number_of(place: Address) -> int:
    with socket.create_connection(place) as sock:
        sock.sendall(pack_hello(Hello(9, 60_000)))
        hello = unpack_hello(data_of(sock.recv(4096)))
        assert hello is not None
        return hello.node


async def _greets(sock: socket.socket, broker: Broker, number: int) -> None:
    before = broker.stats.received
    sock.sendall(pack_hello(Hello(number, 60_000)))
    await until(lambda: broker.stats.received > before and not broker.counts["waiting"])
