"""Standing selections against a plain recount of all that clients are told."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.syndication.fakes import FakeQuery
from tests.devices.syndication.state.selections_support import CLIENTS, IDS, KEYS, Rooms

QUERIES = ["all", "none", "has x", "no x", "x = 1", "x != 1", "has x| has y", "no x| y = 1", "y != 1| x = 2"]
scalars = st.sampled_from(["1", "2", 1, 1.0, True, 2.5, "a"])
values = scalars | st.none() | st.lists(scalars, max_size=3) | st.just({"a": 1})
wanted = st.sampled_from((*KEYS, None)), st.sampled_from(QUERIES)
steps = st.one_of(
    st.tuples(
        st.just("publish"), st.sampled_from(CLIENTS), st.sampled_from(IDS),
        st.dictionaries(st.sampled_from(KEYS), values),
    ),
    st.tuples(st.just("select"), st.sampled_from(CLIENTS), *wanted),
    st.tuples(st.just("begin"), st.sampled_from(CLIENTS), *wanted),
    st.tuples(st.just("go on"), st.sampled_from(CLIENTS)),
    st.tuples(st.just("leave"), st.sampled_from(CLIENTS)),
)  # fmt: skip


class Recount:
    """What is so after some steps, counted anew each time."""

    def __init__(self) -> None:
        self.metadata: dict[str, dict[str, Any]] = {}
        self.speakers: dict[str, set[str]] = {}
        self.selections: dict[str, tuple[str | None, FakeQuery]] = {}

    def publish(self, client: str, id: str, said: dict[str, Any]) -> None:
        merged = {**self.metadata.get(id, {}), **said}
        self.metadata[id] = {key: value for key, value in merged.items() if value is not None}
        self.speakers.setdefault(id, set()).add(client)

    def leave(self, client: str) -> None:
        self.selections.pop(client, None)
        for speakers in self.speakers.values():
            speakers.discard(client)

    def present(self) -> list[tuple[str, dict[str, Any]]]:
        return [(id, self.metadata[id]) for id, speakers in self.speakers.items() if speakers]

    def set_of(self, client: str) -> list[Any]:
        key, query = self.selections[client]
        found = list[Any]()
        for id, metadata in self.present():
            if query.matches(metadata):
                for value in [id] if key is None else listed(metadata.get(key, [])):
                    if not any(same(value, other) for other in found):
                        found.append(value)
        return found


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def same(one: Any, other: Any) -> bool:
    """As docs/query.md has it."""
    return one == other and (type(one) is bool) == (type(other) is bool)


def without(some: list[Any], others: list[Any]) -> list[Any]:
    return [value for value in some if not any(same(value, other) for other in others)]


@settings(max_examples=250)
@given(st.lists(steps, max_size=40))
def test_what_clients_are_told_adds_up_to_a_plain_recount(taken: list[tuple[Any, ...]]) -> None:
    rooms, recount = Rooms(), Recount()
    held, begun = dict[str, list[Any]](), dict[str, Any]()
    for step in taken:
        match step:
            case ("publish", client, id, metadata):
                rooms.publish(client, id, **metadata)
                recount.publish(client, id, metadata)
            case ("select", client, key, query):
                rooms.begun.pop(client, None)
                rooms.select(client, key, query)
                recount.selections[client] = key, FakeQuery(query)
            case ("begin", client, key, query):
                rooms.begin(client, key, query)
                begun[client] = key, FakeQuery(query)
            case ("go on", client):
                if client in rooms.begun and rooms.go_on(client):
                    recount.selections[client] = begun[client]
            case (_, client):
                rooms.leave(client)
                recount.leave(client)
                held.pop(client, None)
        for client, changes in rooms.told.items():
            ((new, gone),) = changes
            before = held.get(client, [])
            assert not without(gone, before)
            assert without(new, before) == new
            held[client] = without(before, gone) + new
        assert rooms.told.keys() <= recount.selections.keys()
        rooms.told.clear()
        for client in recount.selections:
            truth = recount.set_of(client)
            assert not without(held[client], truth)
            assert len(held[client]) == len(truth)
    for client in list(rooms.begun):
        while not rooms.go_on(client):
            pass
        recount.selections[client] = begun[client]
    assert rooms.book.sets.selections.members == len(contributions(recount))
    for client in CLIENTS:
        rooms.leave(client)
    assert len(rooms.book.sets.queries) == len(rooms.book.sets.selections) == rooms.book.sets.members == 0


def contributions(recount: Recount) -> set[tuple[str, str, str, str]]:
    """Each value of each producer, once for each different selection."""
    return {
        (key, query.text, id, repr((type(value) is bool, value if value != 1 else 1)))
        for key, query in recount.selections.values()
        for id, metadata in recount.present()
        if key in metadata and query.matches(metadata)
        for value in listed(metadata[key])
    }
