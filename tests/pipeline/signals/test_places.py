"""A value that several hubs saw is decoded once, where it entered."""

from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from pipeline.signals.places import RowPlace, chosen

S = 1_000_000_000


class Row(NamedTuple):
    hub: str
    bus: str
    dir: int = 0
    rows: int = 10
    kind: int = 0
    reason: str = ""
    gateway: str = "gw-a"
    first_ns: int = 0
    last_ns: int = 10 * S


def places(*rows: Any, by_wire: bool = False) -> set[RowPlace]:
    return set(chosen(rows, by_wire).get("gw-a", ()))


def test_messages_count_where_they_enter() -> None:
    """A bridge takes from CAN to a bus, whose hub hears it, too; and a program sends on the bus."""
    rows = (
        Row("bridge x", "can can0"),
        Row("bridge x", "bus hall", 1),
        Row("bus hall", "bus hall", 1),
        Row("bus hall", "bus hall", 0, 5),
    )
    assert places(*rows) == {("bridge x", "can can0", 0, 0), ("bus hall", "bus hall", 0, 0)}


def test_of_hubs_that_heard_one_segment_that_with_most_rows_counts() -> None:
    assert places(Row("bridge x", "bus hall", 0, 7), Row("bus hall", "bus hall", 0, 9)) == {
        ("bus hall", "bus hall", 0, 0)
    }
    assert places(Row("bridge x", "bus hall", 0, 9), Row("bus hall", "bus hall", 0, 7)) == {
        ("bridge x", "bus hall", 0, 0)
    }


def test_hubs_with_equally_many_rows_give_one_choice_in_any_order() -> None:
    rows = Row("bus hall", "bus hall"), Row("bridge x", "bus hall")
    assert places(*rows) == places(*reversed(rows)) == {("bridge x", "bus hall", 0, 0)}


@pytest.mark.parametrize(("kind", "reason"), [(0, ""), (7, "frames")])
def test_of_hubs_that_heard_one_segment_at_different_times_each_counts(kind: int, reason: str) -> None:
    """Files of a log that was divided, of which frames at the seam are not in order."""
    times = {"a": (0, 10 * S), "b": (10 * S - 3_000_000, 15 * S), "c": (20 * S, 20 * S)}
    rows = [
        Row(f"file {name}.log", "can can0", 0, 10, kind, reason, "gw-a", *its) for name, its in times.items()
    ]
    beside = Row("file b2.log", "can can0", 0, 9, kind, reason, "gw-a", 9 * S, 14 * S)
    found = {place.hub for place in places(*rows, beside, by_wire=bool(kind))}
    assert found == {"file a.log", "file b.log", "file c.log"}


def test_where_no_bridge_was_recorded_what_the_gateway_sent_counts() -> None:
    assert places(Row("bus hall", "bus hall", 1), Row("bridge x", "can can0", gateway="gw-b")) == {
        ("bus hall", "bus hall", 1, 0)
    }


def test_with_a_database_frames_on_a_wire_count_instead_of_messages() -> None:
    rows = [
        Row("bridge x", "can can0"),
        *(Row("bridge x", "can can0", way, kind=7, reason="frames") for way in (0, 1)),
    ]
    rows += [Row("bridge x", "uart a", kind=7, reason="bytes"), Row("bridge x", "uart a")]
    assert places(*rows, by_wire=True) == {
        ("bridge x", "can can0", 0, 7),
        ("bridge x", "can can0", 1, 7),
        ("bridge x", "uart a", 0, 0),
    }
    assert places(*rows) == {("bridge x", "can can0", 0, 0), ("bridge x", "uart a", 0, 0)}


def test_a_place_is_what_rows_have_in_common() -> None:
    assert RowPlace("hub", "bus", 0, 0)._fields == ("hub", "bus", "dir", "kind")
