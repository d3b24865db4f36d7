"""Queries onto a bus: under which pattern, in which form, and what is not said."""

import msgpack

from bus.wire.frame import DATA_BYTES_MAX, PUB, Frame, unpack
from bus.wire.pattern import Pattern, token
from devices.syndication.buses.publisher import BusPublisher
from devices.syndication.buses.rules import QueryRule
from devices.syndication.wire.messages import Difference, Publication

RULE = QueryRule(query="", bus="hall", pattern=("found", "heat"), codec="utf-8")


class Bus:
    """A bus that remembers what was said and refused."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.refused: list[tuple[str, str]] = []

    @property
    def frames(self) -> list[Frame]:
        return [unpack(one) for batch in self.batches for one in batch]

    def publisher(self, rule: QueryRule = RULE) -> BusPublisher:
        return BusPublisher(
            rule, self.batches.append, lambda reason, host: self.refused.append((reason, host))
        )


def publication(id: str, value: object) -> Publication:
    return Publication(id, {"Unit": "C"}, msgpack.packb(value))


def test_a_frame_has_the_pattern_and_the_token_of_the_id() -> None:
    bus = Bus()
    bus.publisher().take([publication("a1", 21.5), publication("7", "warm")])
    assert bus.frames == [
        Frame(PUB, (*Pattern("found", "heat"), token("a1")), b"21.5"),
        Frame(PUB, (*Pattern("found", "heat"), token("7")), b"warm"),
    ]
    assert token("7") != 7


def test_what_one_read_brought_is_said_at_once_and_differences_are_not() -> None:
    bus = Bus()
    bus.publisher().take(
        [Difference(["a1"]), publication("a1", 1), Difference((), ["a1"]), publication("a1", 2)]
    )
    assert [len(batch) for batch in bus.batches] == [2]
    bus.publisher().take([Difference(["a1"])])
    assert len(bus.frames) == 2


def test_a_value_without_a_form_is_counted() -> None:
    bus = Bus()
    publisher = bus.publisher()
    publisher.take([publication("a1", None), publication("a1", "x" * DATA_BYTES_MAX), publication("a1", 1)])
    publisher.take([publication("a1", "x" * (DATA_BYTES_MAX + 1))])
    assert bus.refused == [("no utf-8", "bus hall found/heat"), ("oversize", "bus hall found/heat")]
    assert [len(frame.data) for frame in bus.frames] == [DATA_BYTES_MAX, 1]


def test_a_refused_query_is_a_fault() -> None:
    publisher = Bus().publisher()
    publisher.refuse("queries full")
    assert publisher.fault == "queries full"
