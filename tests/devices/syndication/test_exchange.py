"""The exchange without sockets: order, and clients that end in the middle of a delivery."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.serving.rejections import Rejections
from devices.syndication.bounds import Bounds
from devices.syndication.client import ClientMessage
from devices.syndication.exchange import Exchange
from devices.syndication.state.producers import NOWHERE
from devices.syndication.wire.messages import Difference, Form, Publication


class Fake:
    """A client that keeps what it is told. `on_take` is called at the next delivery."""

    def __init__(self, exchange: Exchange, host: str = "") -> None:
        self.host = host
        self.exchange = exchange
        self.told: list[Any] = []
        self.batches = 0
        self.on_take: Callable[[], object] = lambda: None

    def take(self, messages: Sequence[ClientMessage]) -> None:
        self.batches += 1
        self.told += map(shown, messages)
        on_take, self.on_take = self.on_take, lambda: None
        on_take()

    def refuse(self, why: str) -> None:
        self.told.append(why)

    def deny(self, why: str, form: Form) -> None:
        self.told.append(why)

    def publish(self, id: str, **metadata: Any) -> bool:
        return self.exchange.publish(self, Publication(id, metadata, b"\1"))

    def subscribe(self, text: str) -> bool:
        return self.exchange.subscribe(self, text)

    def heard(self) -> list[Any]:
        """Return what it was told since the last time."""
        told, self.told = self.told, []
        return told


def shown(message: ClientMessage) -> Any:
    return (message.new, message.gone) if isinstance(message, Difference) else message.id


@pytest.fixture
def rejected() -> dict[str, int]:
    return {}


@pytest.fixture
def exchange(rejected: dict[str, int]) -> Exchange:
    return Exchange(Bounds(), Rejections("x", rejected, logging.getLogger("x")), lambda: 0.0, NOWHERE)


def test_what_is_said_waits_for_the_delivery_and_is_one_batch_for_each(exchange: Exchange) -> None:
    both, other = Fake(exchange), Fake(exchange)
    assert both.subscribe("has Room")
    assert other.subscribe("Room = 1")
    assert both.publish("a", Room=1)
    assert both.publish("a")
    assert (both.told, other.told) == ([], [])
    exchange.deliver()
    assert both.heard() == other.heard() == [((), ()), (("a",), ()), "a", "a"]
    assert (both.batches, other.batches) == (1, 1)


def test_a_client_that_ends_in_the_middle_is_told_nothing_more_and_others_of_its_end_behind(
    exchange: Exchange,
) -> None:
    clients = [Fake(exchange) for _ in range(3)]
    producer = Fake(exchange)
    for number, client in enumerate(clients):
        client.subscribe("has Room")
        client.publish(str(number), Room=number)
    exchange.deliver()
    for client in clients:
        client.told.clear()
    middle = clients[1]
    clients[0].on_take = lambda: exchange.leave(middle)  # while there is something for it
    producer.publish("p", Room=4)
    exchange.deliver()
    assert middle.heard() == []
    assert clients[0].heard() == clients[2].heard() == [(("p",), ()), "p", ((), ("1",))]
    clients[0].on_take = lambda: exchange.leave(clients[0])
    producer.publish("p")
    exchange.deliver()
    assert clients[0].heard() == ["p"]
    assert clients[2].heard() == ["p", ((), ("0",))]
    assert exchange.book.counts["subscriptions"] == 1


def test_a_refused_query_is_answered_behind_what_came_before(
    exchange: Exchange, rejected: dict[str, int]
) -> None:
    client = Fake(exchange, "h")
    client.subscribe("has Room")
    client.publish("a", Room=1)
    assert not client.subscribe("Room =")
    assert client.heard()[:3] == [((), ()), (("a",), ()), "a"]
    client.publish("a")
    exchange.deliver()
    assert client.heard() == ["a"]
    assert rejected == {"query": 1}


def test_one_that_ends_while_its_query_is_refused_leaves_nothing(exchange: Exchange) -> None:
    client = Fake(exchange)
    client.publish("a", Room=1)
    client.subscribe("has Room")
    client.on_take = lambda: exchange.leave(client)
    assert not client.subscribe("Room =")
    assert exchange.book.counts == {**exchange.book.counts, "producers": 0, "subscriptions": 0, "queries": 0}


def test_many_that_end_one_after_the_other_are_no_recursion(exchange: Exchange) -> None:
    clients = [Fake(exchange) for _ in range(500)]
    for number, client in enumerate(clients):
        client.subscribe("")
        client.publish(str(number))
    exchange.deliver()
    for client in clients:
        client.on_take = partial(exchange.leave, client)
    clients[0].publish("0")
    exchange.deliver()
    assert exchange.book.counts == {**exchange.book.counts, "producers": 0, "subscriptions": 0}


def test_a_refused_query_is_answered_with_what_is_wrong_or_with_the_bound(rejected: dict[str, int]) -> None:
    reject = Rejections("x", rejected, logging.getLogger("x"))
    exchange = Exchange(Bounds(queries=1), reject, lambda: 0.0, NOWHERE)
    first, second = Fake(exchange), Fake(exchange)
    assert not first.subscribe("Room =")
    assert first.heard() == [
        "character 7: expected a value (text in quotes, a number, true or false), but found the end"
    ]
    assert first.subscribe("")
    assert not second.subscribe("")
    assert second.heard() == ["queries full"]


def test_a_closed_exchange_tells_nobody_anything_more(exchange: Exchange) -> None:
    client, producer = Fake(exchange), Fake(exchange)
    client.subscribe("")
    exchange.deliver()
    client.heard()
    exchange.close()
    producer.publish("a")
    exchange.leave(producer)
    exchange.deliver()
    assert client.heard() == []
