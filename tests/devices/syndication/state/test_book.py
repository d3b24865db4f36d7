"""Who is told what: the rules one by one, the cost by counting, and all against a naive model."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.syndication.state.book import Outcome
from devices.syndication.state.producers import Entry
from devices.syndication.wire.messages import Publication, pack
from tests.devices.syndication.state.model import CLIENTS, IDS, QUERIES, Model, Room, in_order, said


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_subscriber_gets_its_set_first_then_differences_then_publications(room: Room) -> None:
    room.publish("p", "a", Room="410")
    assert not room.heard
    room.subscribe("s", "Room = 410")
    assert room.of("s") == [(["a"], [])]
    room.publish("p", "a")
    room.publish("p", "b", Room="410")
    assert room.of("s") == ["a", (["b"], []), "b"]
    room.publish("p", "b", Room="411")
    room.publish("p", "b")
    assert room.of("s") == [([], ["b"])]
    room.leave("p")
    assert room.of("s") == [([], ["a"])]


def test_an_empty_set_is_said(room: Room) -> None:
    room.subscribe("s", "has Room")
    assert room.of("s") == [([], [])]


def test_metadata_are_upserted_and_nil_deletes(room: Room) -> None:
    room.publish("p", "a", Room="410", Unit="C")
    room.publish("p", "a", Unit="F")
    room.publish("p", "a", Room=None, Nothing=None)
    producer = room.book.producers.find("a")
    assert producer is not None
    assert producer.metadata == {"Unit": "F"}


def test_only_a_change_is_to_be_stored(room: Room) -> None:
    def stored(**metadata: Any) -> bool:
        changes = room.kept.changes
        room.publish("p", "a", **metadata)
        return room.kept.changes > changes

    assert not stored()
    assert stored(Room="410")
    assert not stored()
    assert not stored(Room="410", Nothing=None)
    assert stored(Room=None)
    assert stored(Level=1)
    assert stored(Level=1.0)
    assert stored(Level=float("nan"))
    assert not stored(Level=float("nan"))


def test_stored_is_who_has_metadata_and_since_when_it_is_gone() -> None:
    room = Room(producers=2)
    room.publish("p", "a", Room="410")
    room.publish("p", "b")
    assert room.kept == {"a": Entry("a", pack({"Room": "410"}), None)}
    room.now_s = 5
    room.leave("p")
    assert room.kept == {"a": Entry("a", pack({"Room": "410"}), 5)}
    room.publish("q", "a")
    assert room.kept["a"].gone_s is None
    room.publish("q", "a", Room=None)
    assert not room.kept


def test_what_is_forgotten_is_stored_no_more() -> None:
    room = Room(producers=2, kept_s=10)
    for id in "abc":
        room.publish(id, id, Room="410")
        room.leave(id)
    assert list(room.kept) == ["b", "c"]
    assert room.book.producers.entries() == list(room.kept.values())
    room.book.producers.expire(11)
    assert not room.kept


def test_what_a_gone_producer_said_holds_again_with_its_next_publication(room: Room) -> None:
    room.publish("p", "a", Room="410")
    room.leave("p")
    room.subscribe("s", "has Room")
    assert room.of("s") == [([], [])]
    room.publish("q", "a", Unit="C")
    assert room.of("s") == [(["a"], []), "a"]
    room.leave("q")
    room.publish("q", "a", Room=None)
    assert room.of("s") == [([], ["a"])]


def test_a_producer_is_gone_when_nobody_speaks_for_it(room: Room) -> None:
    room.subscribe("s", "all")
    room.publish("p", "a")
    room.publish("q", "a")
    assert room.of("s") == [([], []), (["a"], []), "a", "a"]
    room.leave("p")
    assert room.of("s") == []
    room.leave("q")
    room.leave("q")
    assert room.of("s") == [([], ["a"])]


def test_a_client_can_fall_silent_for_some_of_its_producers() -> None:
    room = Room(speakers=4)
    room.subscribe("s", "all")
    for client, id in ("pa", "pb", "pc", "qb"):
        room.publish(client, id)
    room.of("s")
    room.silence("p", "a", "b", "unknown")
    room.silence("p", "a")
    room.silence("x", "c")
    assert room.of("s") == [([], ["a"])]
    room.leave("p")
    assert room.of("s") == [([], ["c"])]
    assert [room.publish("p", id).refused for id in "abcd"] == ["", "", "", "speakers full"]


def test_those_that_leave_together_are_one_difference_for_each_query(room: Room) -> None:
    for id in "abc":
        room.publish("p", id, **{id: 1})
    room.subscribe("s", "all")
    room.subscribe("t", "has a| has b")
    room.heard.clear()
    room.leave("p")
    assert room.heard == {"s": [([], ["a", "b", "c"])], "t": [([], ["a", "b"])]}


def test_a_second_query_takes_the_place_of_the_first(room: Room) -> None:
    for id, metadata in {"a": ("x",), "b": ("x", "y"), "c": ("y",)}.items():
        room.publish("p", id, **dict.fromkeys(metadata, 1))
    room.subscribe("s", "has x")
    room.subscribe("s", "has y")
    assert room.of("s") == [(["a", "b"], []), (["c"], ["a"])]
    room.publish("p", "a")
    room.publish("p", "b")
    assert room.of("s") == ["b"]
    room.subscribe("s", "has y")
    assert room.of("s") == [([], [])]
    assert len(room.book.sets.queries) == 1


def test_a_client_hears_itself(room: Room) -> None:
    room.subscribe("p", "all")
    room.publish("p", "a")
    assert room.of("p") == [([], []), (["a"], []), "a"]
    room.subscribe("s", "all")
    room.leave("p")
    assert room.heard == {"s": [(["a"], []), ([], ["a"])]}


def test_one_message_object_is_for_all_subscribers(room: Room) -> None:
    for number in range(10):
        room.subscribe(f"s{number}", "all")
    difference, publication = room.publish("p", "a").deliveries
    assert len(difference.to) == len(publication.to) == 10


def test_nothing_is_left_when_all_have_left(room: Room) -> None:
    room.publish("p", "a", Room="410")
    room.subscribe("s", "has Room| no Unit")
    room.subscribe("t", "has Room| no Unit")
    assert (len(room.book.sets.queries), room.book.sets.queries.members) == (1, 1)
    for client in "pst":
        room.leave(client)
    assert (len(room.book.sets.queries), room.book.sets.queries.members) == (0, 0)
    assert vars(room.book.sets.queries) == {
        "members": 0,
        "instructions": {},
        "_by_text": {},
        "_by_key": {},
        "_bare": {},
    }


# cost


@pytest.mark.parametrize("others", [10, 10_000])
def test_a_change_evaluates_only_the_queries_that_name_its_key(
    others: int, evaluations: Callable[[], int]
) -> None:
    room = Room(queries=20_000, queries_per_host=20_000)
    for number in range(others):
        room.subscribe(f"s{number}", f"Key{number} = x| has Other")
    for number in range(3):
        room.subscribe(f"t{number}", f"Room = {number}")
    evaluations()
    room.publish("p", "a", Room="0")
    assert evaluations() == 3
    room.publish("p", "a", Room="1", Unknown="z")
    assert evaluations() == 3
    assert room.of("t1") == [([], []), (["a"], []), "a"]


def test_a_new_producer_evaluates_no_query_that_names_none_of_its_keys(
    evaluations: Callable[[], int],
) -> None:
    room = Room()
    for number in range(100):
        room.subscribe(f"s{number}", f"Key{number} != x")
    evaluations()
    outcome = room.publish("p", "a", Room="0")
    assert evaluations() == 0
    assert len(outcome.deliveries) == 101


def test_a_publication_evaluates_nothing(room: Room, evaluations: Callable[[], int]) -> None:
    room.subscribe("s", "has Room")
    room.publish("p", "a", Room="410")
    evaluations()
    room.publish("p", "a")
    room.publish("p", "a", Room="410")
    room.leave("p")
    assert evaluations() == 0


def test_a_new_query_is_evaluated_only_for_producers_with_a_key_that_it_names(
    room: Room, evaluations: Callable[[], int]
) -> None:
    for number in range(100):
        room.publish("p", f"a{number}", **{f"Key{number % 50}": "x"})
    evaluations()
    room.subscribe("s", "Key7 != x")
    assert evaluations() == 1 + 2  # for a producer without metadata, and for two with the key
    assert len(room.of("s")[0][0]) == 98


def test_equal_queries_are_evaluated_once(room: Room, evaluations: Callable[[], int]) -> None:
    room.publish("p", "a", Room="410")
    evaluations()
    for number in range(100):
        room.subscribe(f"s{number}", "has Room")
    assert evaluations() == 2  # for a producer without metadata, and for `a`
    room.publish("p", "a", Room="411")
    assert evaluations() == 1


def test_what_is_remembered_ends_with_age() -> None:
    room = Room(kept_s=10)
    for now_s, id in enumerate("ab"):
        room.now_s = now_s
        room.publish(id, id, Room="410")
        room.leave(id)
    room.publish("c", "c", Room="410")
    assert room.book.producers.expire(9.5) == []
    assert room.book.producers.expire(10) == ["a"]
    assert room.book.producers.expire(1e9) == ["b"]
    assert len(room.book.producers) == 1
    assert room.book.producers.forgotten == {"age": 2, "room": 0}


def test_metadata_survive_a_restart() -> None:
    room = Room(producers=2)
    for gone_s, id in enumerate("abc"):
        assert room.book.restore(id, {"Room": "410"}, gone_s) == Outcome()
    room.subscribe("s", "has Room")
    room.publish("p", "b")
    assert room.of("s") == [([], []), (["b"], []), "b"]
    assert list(room.kept) == ["b"]
    room.publish("p", "b", Unit="C")
    assert room.of("s") == ["b"]
    assert room.book.producers.find("a") is None


def test_a_book_inherits_what_another_one_remembers_within_its_bounds() -> None:
    old, room = Room(), Room(producers=2)
    old.now_s = 5.0
    for id in "cba":
        old.publish(id, id, Room="410")
    for id in "bc":
        old.leave(id)
    room.book.producers.inherit(old.book.producers, 6.0)
    assert [entry[::2] for entry in room.book.producers.entries()] == [("c", 5.0), ("a", 6.0)]
    room.subscribe("s", "Room = 410")
    room.publish("p", "c", Unit="C")
    assert room.of("s") == [([], []), (["c"], []), "c"]
    assert old.book.producers.find("c").metadata == {"Room": "410"}  # type: ignore[union-attr]


def test_what_was_stored_completes_what_was_said_since() -> None:
    room = Room(metadata_keys=3)
    room.subscribe("s", "Unit = C")
    room.publish("p", "a", Room="12")
    room.publish("q", "b", Room="12")
    room.now_s = 5.0
    room.leave("q")
    assert room.of("s") == [([], [])]
    for id in "ab":
        room.tell(room.book.restore(id, {"Room": "410", "Unit": "C"}, 1.0))
    assert room.of("s") == [(["a"], [])]
    whole = pack({"Room": "12", "Unit": "C"})
    assert room.kept == {"a": Entry("a", whole, None), "b": Entry("b", whole, 5.0)}
    more = {str(n): n for n in range(4)}
    assert room.book.restore("a", more, 1.0).refused == "metadata of one producer"
    assert room.book.restore("b", more, 1.0).refused == "metadata of one producer"
    assert room.kept == {"a": Entry("a", whole, None), "b": Entry("b", whole, 5.0)}


def test_counts_are_of_those_that_are_present_and_of_those_that_are_not() -> None:
    room = Room()
    for client, id in ("pa", "pb", "qc"):
        room.publish(client, id)
    room.leave("q")
    assert (room.book.counts["producers"], room.book.counts["remembered"]) == (2, 1)


# against a model

steps = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(CLIENTS), st.sampled_from(IDS), said),
    st.tuples(st.just("subscribe"), st.sampled_from(CLIENTS), st.sampled_from(QUERIES)),
    st.tuples(st.just("leave"), st.sampled_from(CLIENTS)),
)


@settings(max_examples=300)
@given(st.lists(steps, max_size=25))
def test_sets_differences_and_order_are_those_of_a_model_that_evaluates_everything(
    taken: list[tuple[Any, ...]],
) -> None:
    room, model = Room(), Model()
    for step in taken:
        match step:
            case ("publish", client, id, metadata):
                room.publish(client, id, **metadata)
            case ("subscribe", client, query):
                room.subscribe(client, query)
            case (_, client):
                room.leave(client)
        heard = {client: list(map(in_order, messages)) for client, messages in room.heard.items()}
        room.heard.clear()
        assert heard == model.step(step)
    assert room.book.sets.queries.members == len(
        {(q.text, id) for c, q in model.queries.items() for id in model.set_of(c)}
    )


def test_what_was_stored_adds_nothing_to_a_producer_that_has_said_all_of_its_metadata() -> None:
    room, next_room = Room(), Room()
    room.book.publish("bus", "bus", Publication("a", {"Unit": "C"}, b"\1"), whole=True)
    assert room.book.restore("a", {"Room": "410", "Unit": "F"}, 1.0) == Outcome()
    room.book.leave("bus", 5.0)
    next_room.book.producers.inherit(room.book.producers, 6.0)
    for book in (room.book, next_room.book):
        assert book.restore("a", {"Room": "410"}, 1.0) == Outcome()
        found = book.producers.find("a")
        assert found is not None
        assert found.metadata == {"Unit": "C"}
