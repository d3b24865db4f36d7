"""Producers from patterns: which frames, which rule, which id and metadata, and how they go."""

from typing import Any
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.watch.canaries import TOKEN as CANARY
from bus.wire.frame import CACHE, PUB, SUB, pack
from bus.wire.pattern import Pattern, token
from devices.syndication.bounds import Bounds
from devices.syndication.buses.intake import Intake, producer_id
from devices.syndication.buses.rules import ProducerRule

TEMP = Pattern("fridge", "temp")


def rule(*pattern: str, **settings: Any) -> ProducerRule:
    return ProducerRule(bus="hall", pattern=pattern, **{"codec": "utf-8", **settings})


def intake(*rules: ProducerRule, known: dict[str, Any] | None = None) -> Intake:
    names = [name for one in rules for name in one.pattern]
    return Intake(rules, names, lambda id: {} if known is None else known)


def frame(*names: str | int, data: bytes = b"21.5", kind: int = PUB) -> bytes:
    return pack(kind, Pattern(*names), data)


def heard(rules: Intake, message: bytes, now_s: float = 0.0, accepted: bool = True) -> Any:
    """Return the metadata, the value and the id that a message says; or why it says nothing."""
    taken = rules.take(message)
    said = taken if isinstance(taken, str) else rules.read(taken)
    if isinstance(said, str) or isinstance(taken, str):
        return said
    source, publication = said
    assert publication.id == source.id
    if accepted:
        rules.accept(taken, source, now_s)
    return publication.metadata, msgpack.unpackb(publication.value), publication.id


def id_of(*pattern: str | int) -> str:
    return producer_id("hall", Pattern(*pattern))


def test_each_full_pattern_is_a_producer_that_says_its_metadata_once() -> None:
    rules = intake(rule("fridge", metadata={"Unit": "C", "Tags": ("a", 1)}))
    metadata = {"Bus": "hall", "Pattern": f"fridge/0x{token('temp'):08x}", "Unit": "C", "Tags": ["a", 1]}
    assert heard(rules, frame(*TEMP)) == (metadata, "21.5", id_of(*TEMP))
    metadata["Pattern"] = "fridge/0x00000007"
    assert heard(rules, frame("fridge", 7)) == (metadata, "21.5", id_of("fridge", 7))
    assert heard(rules, frame(*TEMP, data=b"22")) == ({}, "22", id_of(*TEMP))


def test_an_id_is_the_same_for_ever() -> None:
    assert id_of(*TEMP) == "43a05c08-f60e-5a79-8837-edb28969e453"
    assert UUID(id_of(*TEMP)).version == 5
    assert len({producer_id(bus, one) for bus in ("hall", "yard") for one in (TEMP, TEMP[:1], ())}) == 6


@pytest.mark.parametrize("order", [1, -1])
def test_the_longest_pattern_holds(order: int) -> None:
    prefixes = ((), ("a",), ("a", "b", "c"))[::order]
    rules = intake(*(rule(*names, metadata={"n": len(names)}) for names in prefixes))
    found = {"z": 0, "a": 1, "ab": 1, "abc": 3, "abcd": 3}
    assert {names: heard(rules, frame(*names))[0]["n"] for names in found} == found
    assert heard(rules, pack(PUB, (), b""))[0]["Pattern"] == "/"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "no frame"),
        (frame("fridge") + b"x", "no frame"),
        (frame("motor"), "pattern"),
        (pack(PUB, (), b""), "pattern"),
        (frame("fridge", kind=SUB), "type"),
        (frame("fridge", kind=PUB | CACHE), "type"),
        (frame("fridge", CANARY), "canary"),
        (frame("fridge", data=b"\xff"), "no utf-8"),
    ],
)
def test_what_is_no_reading_makes_no_producer(message: bytes, reason: str) -> None:
    rules = intake(rule("fridge", producers=1))
    assert heard(rules, message) == reason
    assert heard(rules, frame("fridge"))[2] == id_of("fridge")


def test_a_rule_has_room_for_so_many_producers_until_one_is_idle() -> None:
    rules = intake(rule("a", producers=2, idle_s=10))
    assert heard(rules, frame("a", 1), 0)[0]
    assert heard(rules, frame("a", 2), 1)[0]
    assert heard(rules, frame("a", 3), 2) == "producers of one rule"
    assert heard(rules, frame("a", 1), 9)[0] == {}
    assert [ids for _, ids in rules.expire(10.9)] == []
    assert [ids for _, ids in rules.expire(11)] == [[id_of("a", 2)]]
    assert heard(rules, frame("a", 3), 12)[0]
    assert heard(rules, frame("a", 1), 12)[0] == {}


def test_one_that_was_idle_says_its_metadata_again() -> None:
    rules = intake(rule("a", idle_s=10), rule("b"))
    assert heard(rules, frame("a"))[0]
    assert heard(rules, frame("b"))[0]
    (gone,) = rules.expire(100)
    assert (gone[0].host, gone[1]) == ("bus hall a", [id_of("a")])
    assert heard(rules, frame("a"), 100)[0] == {"Bus": "hall", "Pattern": "a"}


def test_one_that_is_not_accepted_says_its_metadata_again() -> None:
    rules = intake(rule("a"))
    assert heard(rules, frame("a"), accepted=False) == heard(rules, frame("a"))
    assert heard(rules, frame("a"))[0] == {}
    assert [ids for _, ids in rules.expire(1e9)] == [[id_of("a")]]


def test_what_the_file_no_longer_says_is_deleted() -> None:
    rules = intake(rule("a", metadata={"Room": "410"}), known={"Room": "12", "Old": 1, "Bus": "hall"})
    assert heard(rules, frame("a"))[0] == {"Old": None, "Bus": "hall", "Pattern": "a", "Room": "410"}


def test_the_file_may_say_another_bus_and_pattern() -> None:
    rules = intake(rule("a", metadata={"Bus": "b1"}))
    assert heard(rules, frame("a"))[0] == {"Bus": "b1", "Pattern": "a"}


@pytest.mark.parametrize("metadata", [{"x" * 24: "y" * 980}, {"x": ("",) * 330}, {"x": (2**63,) * 110}])
def test_metadata_of_the_longest_pattern_have_room(metadata: dict[str, Any]) -> None:
    names = [f"{'n' * 300}{number}" for number in range(255)]
    said = heard(intake(rule(*names, metadata=metadata)), pack(PUB, Pattern(*names), b""))[0]
    assert len(msgpack.packb(said)) <= Bounds().metadata_bytes


def test_a_pattern_is_shown_by_its_names_while_these_are_no_longer_than_the_longest_in_numbers() -> None:
    longest = "n" * (255 * len("0x00000000/"))
    assert heard(intake(rule(longest)), frame(longest))[0]["Pattern"] == longest
    longer = longest + "n"
    assert heard(intake(rule(longer)), frame(longer))[0]["Pattern"] == f"0x{token(longer):08x}"


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_message_is_a_publication_or_refused(messages: list[bytes]) -> None:
    rules = intake(rule(codec="json", producers=3))
    for message in messages:
        said = heard(rules, message)
        assert said in ("no frame", "type", "canary", "no json", "producers of one rule") or len(said) == 3
