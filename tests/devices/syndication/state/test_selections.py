"""Standing selections: the different values of a key, their equality, cost, bounds, and a plain recount."""

from collections.abc import Callable
from math import nan
from typing import Any

import msgpack
import pytest

from devices.syndication.state.selections import values_of
from tests.devices.syndication.fakes import FakeQuery
from tests.devices.syndication.state.selections_support import IDS, Rooms


@pytest.fixture
def rooms() -> Rooms:
    return Rooms()


def test_the_set_comes_first_then_changes_and_no_publications(rooms: Rooms) -> None:
    rooms.publish("p", "a", Room="410")
    rooms.publish("p", "b", Room="410")
    rooms.publish("p", "c", Unit="C")
    rooms.select("s", "Room")
    assert rooms.of("s") == [(["410"], [])]
    rooms.publish("p", "c", Room="12")
    rooms.publish("p", "a", Room="411")
    assert rooms.of("s") == [(["12"], []), (["411"], [])]
    rooms.publish("p", "b", Room="411")
    rooms.publish("p", "b")
    assert rooms.of("s") == [([], ["410"])]
    rooms.publish("p", "c", Room=None)
    assert rooms.of("s") == [([], ["12"])]
    assert rooms.heard == []


def test_an_empty_set_is_said(rooms: Rooms) -> None:
    rooms.publish("p", "a", Unit="C")
    rooms.select("s", "Room")
    assert rooms.of("s") == [([], [])]


def test_only_producers_that_match_count(rooms: Rooms) -> None:
    rooms.select("s", "Room", "has Thermostat")
    rooms.publish("p", "a", Room="410")
    rooms.publish("p", "b", Room="12", Thermostat=True)
    assert rooms.of("s") == [([], []), (["12"], [])]
    rooms.publish("p", "a", Thermostat=True)
    rooms.publish("p", "b", Thermostat=None, Room="13")
    assert rooms.of("s") == [(["410"], []), ([], ["12"])]


def test_a_change_of_both_the_query_and_the_value(rooms: Rooms) -> None:
    rooms.publish("p", "a", Room="410", Type="T")
    rooms.select("s", "Room", "Type = T| Type = U")
    rooms.publish("p", "a", Room="12", Type="U")
    rooms.publish("p", "a", Room="13", Type="V")
    assert rooms.of("s") == [(["410"], []), (["12"], ["410"]), ([], ["12"])]


def test_the_selected_key_may_be_that_of_the_query(rooms: Rooms) -> None:
    rooms.select("s", "Room", "Room != 410")
    for room in ("410", "12", "13", "410"):
        rooms.publish("p", "a", Room=room)
    assert rooms.of("s") == [([], []), (["12"], []), (["13"], ["12"]), ([], ["13"])]


def test_producers_that_leave_together_are_one_difference(rooms: Rooms) -> None:
    for id, room in {"a": "410", "b": "410", "c": "12", "d": "13"}.items():
        rooms.publish("q" if id == "d" else "p", id, Room=room)
    rooms.publish("q", "c")
    rooms.select("s", "Room")
    rooms.of("s")
    rooms.leave("p")
    assert rooms.of("s") == [([], ["410"])]
    rooms.leave("q")
    assert rooms.of("s") == [([], ["13", "12"])]


def test_a_producer_that_comes_back_brings_its_values_back(rooms: Rooms) -> None:
    rooms.publish("p", "a", Room="410")
    rooms.leave("p")
    rooms.select("s", "Room")
    rooms.publish("q", "a", Unit="C")
    assert rooms.of("s") == [([], []), (["410"], [])]


def test_of_a_list_each_element_is_a_value(rooms: Rooms) -> None:
    rooms.select("s", "Tags")
    rooms.publish("p", "a", Tags=["zone", "temp", "zone"])
    rooms.publish("p", "b", Tags="temp")
    rooms.publish("p", "a", Tags=["hvac"])
    rooms.publish("p", "a", Tags=[])
    assert rooms.of("s") == [([], []), (["zone", "temp"], []), (["hvac"], ["zone"]), ([], ["hvac"])]


EXTENSION = msgpack.ExtType(5, b"x")


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (1, 1.0, 1),
        (1.0, 1, 1),
        (-0.0, 0, 0),
        (2.0**64, 2.0**64, 2.0**64),
        (2.0**63, 2**63, 2**63),
        ([[1, "a"]], [[1.0, "a"]], [1, "a"]),
        ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}, {"a": 1, "b": [2]}),
        (EXTENSION, EXTENSION, EXTENSION),
        ([None], [None, None], None),
    ],
)
def test_equal_values_are_one(rooms: Rooms, one: Any, other: Any, said: Any) -> None:
    rooms.publish("p", "a", Level=one)
    rooms.select("s", "Level")
    rooms.publish("p", "b", Level=other)
    rooms.publish("p", "a", Level=other)
    assert rooms.of("s") == [([said], [])]
    rooms.select("t", "Level")
    (((new,), _),) = rooms.of("t")
    assert type(new) is type(said)
    rooms.publish("p", "a", Level=None)
    rooms.publish("p", "b", Level=None)
    assert rooms.of("s") == [([], [said])]


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0.0, False), ("1", 1), ({"a": 1}, {"a": True}), (["1"], [1]), (nan, 0)]
)
def test_different_values_are_two(one: Any, other: Any) -> None:
    assert values_of({"k": one}, "k").keys().isdisjoint(values_of({"k": other}, "k"))


def test_a_nan_is_one_value(rooms: Rooms) -> None:
    rooms.publish("p", "a", Level=nan)
    rooms.publish("p", "b", Level=[-nan, msgpack.unpackb(b"\xcb\x7f\xf8\0\0\0\0\0\1")])
    rooms.select("s", "Level")
    ((new, gone),) = rooms.of("s")
    assert (len(new), gone) == (1, [])
    assert new[0] != new[0]


# what a client is subscribed to


def test_queries_and_selections_replace_each_other(rooms: Rooms) -> None:
    rooms.publish("p", "a", Room="410", Floor=4)
    rooms.publish("p", "b", Room="a", Floor=4)
    rooms.select("s", None, "has Room")
    rooms.select("s", "Room", "has Room")
    rooms.publish("p", "b")
    rooms.select("s", "Floor", "has Room")
    rooms.select("s", None)
    assert rooms.of("s") == [
        (["a", "b"], []),
        (["410"], ["b"]),  # "a" is the id of one producer, and the room of the other
        ([4], ["410", "a"]),
        (["a", "b"], [4]),
    ]
    assert rooms.heard == []
    rooms.publish("p", "b")
    assert rooms.heard == [("s", "b")]


def test_equal_selections_are_one_and_a_selection_shares_its_query(rooms: Rooms) -> None:
    rooms.select("r", None, "has Room")
    for client in "stu":
        rooms.select(client, "Room" if client != "u" else "Floor", "has Room")
    assert (len(rooms.book.sets.queries), len(rooms.book.sets.selections)) == (1, 2)
    evaluations = FakeQuery.evaluations
    outcome = rooms.publish("p", "a", Room="410")
    assert FakeQuery.evaluations == evaluations + 1
    assert [said.to for said in outcome.deliveries] == [("r",), ("s", "t"), ("r",)]


def test_a_query_stays_while_a_selection_looks_at_it(rooms: Rooms) -> None:
    rooms.select("s", "Room", "has Room")
    rooms.select("t", None, "has Room")
    rooms.leave("t")
    rooms.publish("p", "a", Room="410")
    assert rooms.of("s") == [([], []), (["410"], [])]
    rooms.leave("s")
    assert vars(rooms.book.sets.selections) == {"members": 0, "_by_key": {}, "_at": {}}
    assert (len(rooms.book.sets.queries), rooms.book.sets.queries.members) == (0, 0)


# in steps


def filled(**bounds: Any) -> Rooms:
    rooms = Rooms(**bounds)
    for id in IDS:
        rooms.publish("p", id, x=f"of {id}", y="1")
    return rooms


def test_each_step_reads_the_values_of_one_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms, reads = filled(), counting(monkeypatch)
    rooms.select("r", None, "y = 1")
    rooms.begin("s", "x", "y = 1")
    assert [rooms.go_on("s") for _ in range(3)] == [False] * 3
    assert reads == ["x"] * 3
    assert "s" not in rooms.told
    assert rooms.go_on("s")
    assert rooms.of("s") == [(["of a", "of b", "of c"], [])]


def test_what_changes_between_two_steps_is_counted_once() -> None:
    rooms = filled()
    rooms.select("r", None)
    rooms.begin("s", "x")
    rooms.go_on("s")  # a is counted, b and c are not
    for id in IDS:
        rooms.publish("p", id, x=f"now of {id}")
    rooms.publish("q", "b")
    rooms.publish("q", "d", x="of d")
    rooms.leave("p")
    rooms.publish("p", "c")
    while not rooms.go_on("s"):
        pass
    assert rooms.of("s") == [(["of d", "now of c", "now of b"], [])]
    rooms.leave("q")
    rooms.leave("p")
    assert rooms.of("s") == [([], ["now of b", "of d"]), ([], ["now of c"])]


def test_clients_that_wait_for_one_selection_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms, reads = filled(), counting(monkeypatch)
    rooms.select("r", None)
    for client in ("s", "t"):
        rooms.begin(client, "x")
        rooms.go_on(client)
    rooms.leave("s")
    while not rooms.go_on("t"):
        pass
    assert reads == ["x"] * 3
    assert rooms.of("t") == [(["of a", "of b", "of c"], [])]
    rooms.leave("t")
    rooms.leave("r")
    assert len(rooms.book.sets.queries) == len(rooms.book.sets.selections) == 0


def test_one_that_finds_no_room_on_its_way_leaves_nothing() -> None:
    rooms = filled(members=5)
    rooms.begin("s", "x")
    while not rooms.go_on("s"):
        pass
    assert len(rooms.book.sets.queries) == len(rooms.book.sets.selections) == rooms.book.sets.members == 0
    assert rooms.select("s", "y").refused == "sets full"
    assert rooms.select("s", None).refused == ""
    assert rooms.book.sets.members == 3


# cost


def counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys whose values are read from now on, for a producer each."""
    reads = list[str]()

    def counted(metadata: dict[str, Any], key: str) -> dict[bytes, None]:
        reads.append(key)
        return values_of(metadata, key)

    monkeypatch.setattr("devices.syndication.state.selections.values_of", counted)
    return reads


def test_a_change_touches_only_the_selections_of_its_key(
    monkeypatch: pytest.MonkeyPatch, evaluations: Callable[[], int]
) -> None:
    rooms = Rooms(queries=20_000, queries_per_host=20_000)
    rooms.publish("p", "a", Room="0")
    for number in range(10_000):
        rooms.select(f"s{number}", f"Key{number % 1000}", f"has Other{number}")
    rooms.select("t", "Room")
    evaluations()
    reads = counting(monkeypatch)
    rooms.publish("p", "a", Room="1", Unit="C")
    assert (evaluations(), reads) == (0, ["Room", "Room"])  # before and after
    rooms.publish("p", "a")
    assert (evaluations(), reads) == (0, ["Room", "Room"])


# bounds


def test_a_set_that_is_too_long_is_refused_and_the_last_one_stays() -> None:
    rooms = Rooms(selection_bytes=20)
    rooms.select("s", "Room")
    rooms.publish("p", "a", Room="x" * 9)
    rooms.publish("p", "b", Room="y" * 9)
    assert rooms.select("t", "Room").refused == ""
    rooms.publish("p", "c", Room="z")
    assert rooms.select("u", None).refused == ""
    assert rooms.select("u", "Room").refused == "values of one selection"
    rooms.told.clear()
    rooms.publish("p", "c", Room="w")
    rooms.publish("p", "d")
    assert rooms.told == {"s": [(["w"], ["z"])], "t": [(["w"], ["z"])], "u": [(["d"], [])]}


def test_values_count_for_the_bound_of_all_sets() -> None:
    rooms = Rooms(members=5)
    rooms.publish("p", "a", Room="410")
    assert rooms.select("s", "Room").refused == ""  # one producer and one value
    assert rooms.publish("p", "a", Room=["410", "12", "13", "14"]).refused == ""
    assert rooms.publish("p", "a", Room=["410", "12", "13", "14", "15"]).refused == "sets full"
    assert rooms.publish("p", "b", Floor=1).refused == "sets full"
    assert rooms.publish("p", "a", Room="x" * 200).refused == ""
    assert rooms.book.sets.selections.members == 3
    assert rooms.select("t", "Room", "has Room").refused == "sets full"
    assert len(rooms.book.sets.queries) == len(rooms.book.sets.selections) == 1
    assert rooms.publish("p", "a", Room=None).refused == ""
    assert (rooms.book.sets.selections.members, rooms.book.sets.queries.members) == (0, 1)


def test_a_value_counts_once_for_each_producer_that_has_it_and_once_more_for_each_100_bytes() -> None:
    rooms = Rooms()
    rooms.select("s", "Room")
    rooms.publish("p", "a", Room=["410", "y" * 300])
    rooms.publish("p", "b", Room=["410", "410", "y" * 300])
    assert rooms.book.sets.selections.members == 2 + 2 + 3
    rooms.publish("p", "a", Room="410")
    assert rooms.book.sets.selections.members == 1 + 2 + 3
    rooms.publish("p", "b", Room="410")
    assert rooms.book.sets.selections.members == 2
    rooms.leave("s")
    assert rooms.book.sets.members == 0


@pytest.mark.parametrize(("packed_bytes", "members"), [(99, 1), (100, 2), (199, 2), (200, 3)])
def test_a_long_value_counts_once_more_for_each_whole_100_bytes(packed_bytes: int, members: int) -> None:
    rooms = Rooms()
    rooms.select("s", "Room")
    rooms.publish("p", "a", Room="x" * (packed_bytes - 2))
    assert rooms.book.sets.selections.members == members
    rooms.leave("s")
    assert rooms.book.sets.members == 0


def test_a_selection_gives_back_the_memory_of_its_query_and_of_its_key() -> None:
    rooms = Rooms(all_query_bytes=9)
    for _ in range(3):
        assert rooms.select("s", "Room", "has x").refused == ""
        assert rooms.select("t", None, "y").refused == "queries full"
        rooms.leave("s")
    assert rooms.select("s", "Room2", "has x").refused == "queries full"


def test_a_change_that_brings_values_to_too_many_selections_is_refused() -> None:
    rooms = Rooms(change_values=6)
    for number in range(3):
        rooms.select(f"s{number}", "Room", "all" if number else "has Room")
    rooms.select("s3", "Room", "all| has Unit")
    assert rooms.publish("p", "a", Room=["1", "2"]).refused == ""
    assert rooms.publish("p", "b", Room=["1", "2", "3"]).refused == "metadata too costly"
    assert rooms.publish("p", "a", Room=["2", "3", "4"]).refused == ""
    assert rooms.publish("p", "a", Room=None, Floor=["1", "2", "3"]).refused == ""


def test_a_refused_publication_changes_no_selection() -> None:
    rooms = Rooms(metadata_keys=1)
    rooms.publish("p", "a", Room="410")
    rooms.select("s", "Room")
    assert rooms.publish("p", "a", Room="12", Unit="C").refused == "metadata of one producer"
    assert rooms.publish("p", "b", Room="410", Unit="C").refused
    rooms.publish("p", "a", Room=None)
    assert rooms.of("s") == [(["410"], []), ([], ["410"])]
