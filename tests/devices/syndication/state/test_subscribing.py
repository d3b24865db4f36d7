"""Subscribing in steps: whatever happens between two of them, sets and order are those of a plain model."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bus.steps import Steps
from devices.syndication.state.book import Outcome
from tests.devices.syndication.fakes import FakeQuery
from tests.devices.syndication.state.model import CLIENTS, IDS, QUERIES, Model, Room, in_order, said

steps = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(CLIENTS), st.sampled_from(IDS), said),
    st.tuples(st.just("begin"), st.sampled_from(CLIENTS), st.sampled_from(QUERIES)),
    st.tuples(st.just("go on"), st.sampled_from(CLIENTS)),
    st.tuples(st.just("leave"), st.sampled_from(CLIENTS)),
)


class SlowRoom(Room):
    """A room in which a query takes effect by and by."""

    def __init__(self, **bounds: Any) -> None:
        super().__init__(**bounds)
        self.begun: dict[str, tuple[str, Steps[Outcome[str]]]] = {}

    def begin(self, client: str, query: str) -> None:
        self.begun[client] = query, self.book.subscribing(client, "", FakeQuery(query))

    def go_on(self, client: str) -> str | None:
        """Take one step. Return the query, if it holds now."""
        query, taken = self.begun.get(client, ("", None))
        try:
            if taken is not None:
                next(taken)
        except StopIteration as end:
            if end.value is not None:  # it was given up
                self.tell(end.value)
                return query
        return None

    def leave(self, client: str) -> None:
        self.begun.pop(client, None)
        super().leave(client)


@settings(max_examples=400)
@given(st.lists(steps, max_size=40))
def test_what_happens_between_two_steps_is_seen(taken: list[tuple[Any, ...]]) -> None:
    room, model = SlowRoom(), Model()
    for step in taken:
        match step:
            case ("publish", client, id, metadata):
                room.publish(client, id, **metadata)
            case ("begin", client, query):
                room.begin(client, query)
                continue
            case ("go on", client):
                query = room.go_on(client)
                if query is None:
                    assert not room.heard
                    continue
                step = "subscribe", client, query
            case (_, client):
                room.leave(client)
        heard = {client: list(map(in_order, messages)) for client, messages in room.heard.items()}
        room.heard.clear()
        assert heard == model.step(step)
    for client in CLIENTS:
        room.leave(client)
    counts = room.book.counts
    assert (counts["subscriptions"], counts["queries"], room.book.sets.queries.members) == (0, 0, 0)


def filled(**bounds: Any) -> SlowRoom:
    room = SlowRoom(**bounds)
    for id in IDS:
        room.publish("p", id, x="1")
    return room


def test_each_step_is_one_evaluation() -> None:
    room = filled()
    room.begin("s", "x = 1")
    before = FakeQuery.evaluations
    assert [room.go_on("s") for _ in range(3)] == [None] * 3
    assert FakeQuery.evaluations - before == 4  # with the one of no metadata
    assert not room.heard
    assert room.go_on("s") == "x = 1"
    assert room.of("s") == [(["a", "b", "c"], [])]


def test_queries_that_begin_together_share_the_list_of_producers() -> None:
    room = filled()
    before = room.book.producers.present
    room.publish("p", "a", x="2")
    room.publish("p", "b")
    assert room.book.producers.present is before
    room.leave("p")
    assert room.book.producers.present == ()
    room.publish("q", "a")
    assert len(room.book.producers.present) == 1
    room.publish("q", "new")
    assert len(room.book.producers.present) == 2


def test_a_query_gives_up_the_one_that_has_no_set_yet_whoever_holds_its_steps() -> None:
    room = filled()
    first = room.book.subscribing("s", "", FakeQuery("x = 1"))
    next(first)
    assert room.book.counts["queries"] == 1
    room.begin("s", "x = 2")
    assert room.book.counts["queries"] == 0
    assert next(first, None) is None


def test_the_last_query_stands_until_the_next_has_its_set() -> None:
    room = filled()
    room.subscribe("s", "x = 1")
    room.of("s")
    room.begin("s", "x = 2")
    room.go_on("s")
    room.publish("p", "b")
    room.publish("p", "a", x="2")
    assert room.of("s") == ["b", ([], ["a"])]
    while room.go_on("s") is None:
        pass
    assert room.of("s") == [(["a"], ["b", "c"])]


def test_equal_queries_share_the_work_of_the_first() -> None:
    room = filled()
    before = FakeQuery.evaluations
    for client in ("s", "t"):
        room.begin(client, "x = 1")
        room.go_on(client)
    room.leave("s")
    while room.go_on("t") is None:
        pass
    assert FakeQuery.evaluations - before == 4
    assert room.of("t") == [(["a", "b", "c"], [])]


def test_one_without_room_leaves_nothing_behind_and_the_last_stands() -> None:
    room = filled(members=5)
    room.subscribe("s", "x = 1")
    room.of("s")
    assert room.subscribe("s", "has x").refused == "sets full"
    assert room.subscribe("t", "has x").refused == "sets full"
    assert (len(room.book.sets.queries), room.book.sets.queries.members) == (1, 3)
    room.publish("p", "a")
    assert room.of("s") == ["a"]
    room.leave("s")
    assert room.subscribe("t", "has x").refused == ""


def test_a_query_beside_the_last_takes_memory_until_it_is_there() -> None:
    room = filled(all_query_bytes=12)
    assert room.subscribe("s", "x = 1").refused == ""
    room.begin("s", "x = 2")
    room.go_on("s")
    assert room.subscribe("t", "x = 3").refused == "queries full"
    while room.go_on("s") is None:
        pass
    assert room.subscribe("t", "x = 3").refused == ""
    assert room.subscribe("t", "x = 4").refused == "queries full"
    room.leave("t")
    assert room.subscribe("t", "x = 4").refused == ""


def test_producers_that_change_come_or_go_before_they_are_seen() -> None:
    room = filled()
    room.publish("q", "d", x="1")
    room.begin("s", "x = 1")
    room.go_on("s")
    room.publish("p", "b", x="2")  # was not seen, and will not match
    room.publish("p", "c", y="1", x="3")
    room.publish("p", "c", x="1")  # is in the set before it is seen
    room.leave("q")
    room.publish("q", "e", x="1")  # is new
    while room.go_on("s") is None:
        pass
    assert [(sorted(new), gone) for new, gone in room.of("s")] == [(["a", "c", "e"], [])]
    assert room.book.sets.queries.members == 3


def test_the_key_of_a_subscription_takes_memory_too() -> None:
    room = filled(all_query_bytes=12)
    assert room.book.subscribe("s", "", FakeQuery("has x"), "k" * 8).refused == "queries full"
    assert room.book.subscribe("s", "", FakeQuery("has x"), "k" * 7).refused == ""


def test_sets_may_have_exactly_as_many_members_as_the_bound() -> None:
    assert filled(members=3).subscribe("s", "x = 1").refused == ""
    assert filled(members=2).subscribe("s", "x = 1").refused == "sets full"
