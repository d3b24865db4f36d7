"""How much metadata fit, to the byte, and for how long they are remembered."""

from typing import Any

from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import NOWHERE, Change, Entry, Producers
from devices.syndication.state.queries import Producer
from devices.syndication.wire.messages import pack
from tests.devices.syndication.fakes import Kept
from tests.devices.syndication.state.model import Room


def fault(metadata: dict[str, Any], **bounds: Any) -> str:
    return Change({}, b"", metadata, Bounds(**bounds)).fault


def test_metadata_of_exactly_each_bound_of_one_producer_fit() -> None:
    metadata = {"a": [1, 2], "b": [3], "c": "x"}
    exact = {"metadata_keys": 3, "metadata_bytes": len(pack(metadata)), "metadata_elements": 3}
    assert fault(metadata, **exact) == ""
    for name, most in exact.items():
        assert fault(metadata, **{**exact, name: most - 1}) == "metadata of one producer"


def test_only_a_changed_key_is_a_change() -> None:
    change = Change(
        {"a": 1, "b": 2}, pack({"a": 1, "b": 2}), {"a": 1, "b": None, "c": 3, "d": None}, Bounds()
    )
    assert (change.keys, change.metadata) == (["b", "c"], {"a": 1, "c": 3})
    assert change.packed == pack({"a": 1, "c": 3})
    same = Change({"a": 1}, b"packed", {"a": 1}, Bounds())
    assert (same.keys, same.metadata, same.packed) == ([], {"a": 1}, b"packed")


def test_an_entry_by_another_clock() -> None:
    assert Entry("a", b"", 7.0).by(100.0) == Entry("a", b"", 107.0)
    assert Entry("a", b"", None).by(100.0) == Entry("a", b"", None)


SIZE = len(pack({"k": "0123456789"}))


def test_all_metadata_together_may_have_exactly_as_many_bytes_as_the_bound() -> None:
    room = Room(all_metadata_bytes=2 * SIZE)
    for id in "ab":
        assert room.publish("p", id, k="0123456789").refused == ""
    assert room.publish("p", "a", k="0123456789a").refused == "metadata full"
    assert room.publish("p", "a", k="9876543210").refused == ""
    assert room.publish("p", "a", k="").refused == ""
    assert room.publish("p", "b", k="0123456789" + "x" * 9).refused == ""
    assert room.publish("p", "b", k="0123456789" + "x" * 11).refused == "metadata full"
    room.leave("p")
    room.now_s = 10**7
    room.book.producers.expire(room.now_s)
    assert len(room.book.producers) == 0
    for id in "ab":
        assert room.publish("p", id, k="0123456789").refused == ""
    assert room.publish("p", "c", k="").refused == "metadata full"


def test_who_makes_room_is_taken_into_account_once() -> None:
    room = Room(all_metadata_bytes=3 * SIZE)
    for id in "abc":
        room.publish(id, id, k="0123456789")
        room.leave(id)
    assert room.publish("p", "d", k="0123456789").refused == ""
    assert room.book.counts["remembered"] == 2
    assert room.publish("p", "e", k="0123456789").refused == ""
    assert room.publish("p", "f", k="0123456789").refused == ""
    assert room.book.producers.forgotten == {"age": 0, "room": 3}
    assert room.publish("p", "g", k="0123456789").refused == "metadata full"


def test_what_a_gone_producer_said_is_forgotten_at_the_end_of_its_time() -> None:
    producers: Producers[str] = Producers(Bounds(kept_s=10), NOWHERE)
    for id, gone_s in (("a", 5.0), ("b", 6.0)):
        producer: Producer[str] = Producer(id)
        producers.hold(producer, {"k": 1}, pack({"k": 1}))
        producers.went(producer, gone_s)
    assert producers.expire(14.99) == []
    assert producers.expire(15.0) == ["a"]
    assert producers.forgotten == {"age": 1, "room": 0}
    assert producers.expire(99.0) == ["b"]
    assert producers.forgotten == {"age": 2, "room": 0}


def present(room: Room) -> list[str]:
    return [producer.id for producer in room.book.producers.present]


def test_one_that_comes_back_is_present_again() -> None:
    room = Room()
    room.publish("p", "a")
    room.leave("p")
    assert present(room) == []
    room.publish("p", "a")
    assert present(room) == ["a"]


def test_what_another_broker_remembers_is_gone_here_since_it_was_there_or_since_now() -> None:
    there = Room()
    there.publish("p", "present", k=1)
    there.now_s = 3.0
    there.publish("q", "gone", k=2)
    there.leave("q")
    kept = Kept()
    here: Producers[str] = Producers(Bounds(), kept)
    here.inherit(there.book.producers, 8.0)
    assert here.entries() == [Entry("gone", pack({"k": 2}), 3.0), Entry("present", pack({"k": 1}), 8.0)]
    assert (here.present_count, kept.changes) == (0, 0)


def test_what_has_no_room_is_not_inherited() -> None:
    there = Room()
    for id in "abc":
        there.publish(id, id, k=1)
        there.leave(id)
    here: Producers[str] = Producers(Bounds(producers=2), NOWHERE)
    here.inherit(there.book.producers, 0.0)
    assert [entry.id for entry in here.entries()] == ["b", "c"]
