"""A catalog that comes back, with its records and without."""

from typing import Any

import pytest

from devices.dbp.catalog import wire
from devices.dbp.catalog.outcomes import Ask
from tests.devices.dbp.catalog import original
from tests.devices.dbp.catalog.room import DISCONNECT, ELSEWHERE, HOST, Room, denied, word


def restarted(room: Room) -> Room:
    other = Room()
    for record in room.registry.snapshot():
        assert other.registry.restore(record, other.now_s) == ""
    return other


def test_services_are_listed_at_once_after_a_restart(room: Room) -> None:
    for n in range(5):
        room.register(f"s{n}", n + 1, peer=b"%d" % n, liveliness=1000 * n or 1)
    room.hear(b"x", original.REGISTRATION)
    other = restarted(room)
    assert other.registry.services.every() == room.registry.services.every()
    assert list(other.registry.snapshot()) == list(room.registry.snapshot())
    assert Ask("Rohan", (HOST, 5247), b"", True, HOST) in other.wait(1)
    other.wait(6)
    assert other.listed().keys() == {"s2", "s3", "s4"}  # with longer intervals


def test_a_service_registers_again_after_the_catalog_returns(room: Room) -> None:
    room.register("a", 1, peer=b"a", liveliness=1000)
    other = restarted(room)
    assert other.say(b"a", wire.ACKNOWLEDGED).reply == DISCONNECT
    assert denied(other.register("a", 1, host=ELSEWHERE)) == "name taken"
    assert word(other.register("a", 1, peer=b"b", liveliness=1000)) == wire.APPROVED
    assert other.listed() == room.listed()


def test_a_beat_is_enough_after_the_catalog_returns(room: Room) -> None:
    room.register("a", 1, liveliness=1000)
    other = restarted(room)
    for _ in range(10):
        assert other.wait(1.75) == []
        assert other.registry.beat("a", HOST, other.now_s) == ""


def test_what_a_service_has_said_since_holds(room: Room) -> None:
    room.register("a", 1, more=1)
    (record,) = room.registry.snapshot()
    room.register("a", 1, more=2)
    assert room.registry.restore(record, room.now_s) == ""
    assert room.listed()["a"]["more"] == 2


def test_the_deepest_and_the_largest_service_is_restored(room: Room) -> None:
    deep: Any = 1
    for _ in range(room.bounds.depth - 1):
        deep = [deep]
    room.register("deep", 1, deep=deep)
    room.register("wide", 2, wide=[1] * (room.bounds.items - 10))
    room.register("long", 3, long="é" * 1200)
    assert restarted(room).listed() == room.listed()
    assert len(room.listed()) == 3


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", "record"),
        (b"[]", "record"),
        (b"{}", "record"),
        (b'{"name": "a", "host": "", "binary_time": 1, "fields": {}}', "record"),
        (b'{"name": "a", "host": null, "binary_time": true, "fields": {}}', "record"),
        (b'{"name": "a", "host": "", "binary_time": true, "fields": {}}', "interfaces"),
        (b'{"name": "a", "host": "", "binary_time": true, "fields": {"x": NaN}}', "record"),
    ],
)
def test_a_record_that_is_no_service(room: Room, record: bytes, reason: str) -> None:
    assert room.registry.restore(record, 0.0) == reason
    assert room.listed() == {}


def record(depth: int = 4, items: int = 10) -> bytes:
    """Return a record with so many containers within each other, and so many containers and commas."""
    deep = "[" * (depth - 2) + "]" * (depth - 2)
    head = '{"name": "a", "host": "", "binary_time": true, "fields": '
    head += '{"interfaces": {"x": {"ip": "10.1.1.1", "port": 1}}, "deep": ' + deep + ', "wide": [0'
    wide = ",0" * (items - sum(map(head.count, ",{[")))
    return (head + wide + "]}}").encode()


def test_a_record_may_be_one_level_deeper_than_a_message(room: Room) -> None:
    depth = room.bounds.depth + 1
    assert room.registry.restore(record(depth + 1), 0.0) == "record"
    assert room.registry.restore(record(depth), 0.0) == ""


def test_what_many_updates_have_made_is_restored(room: Room) -> None:
    """Each of them has fewer items than a message may have, and all together more."""
    room.register("Rohan")
    for field in ("one", "two"):
        assert word(room.req(wire.UPDATE, {"name": "Rohan", field: [0] * 1000})) == wire.ACKNOWLEDGED
    assert restarted(room).listed() == room.listed()
