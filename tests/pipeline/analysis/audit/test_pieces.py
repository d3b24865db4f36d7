"""What the driver sees by pieces alone: a step of a clock, a drift, a silence. No engine runs."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from capture.schema import Direction, Kind
from pipeline.analysis.audit.pieces import Pieces
from pipeline.analysis.shared.drifts import LONG_NS
from pipeline.analysis.shared.inventory import Run

MS: Final = 1_000_000
BIN_NS: Final = 100 * MS
_TYPES: Final = {name: pa.string() for name in ("gateway", "hub", "bus")} | {"stood_by": pa.bool_()}
_ROW: Final[dict[str, Any]] = {
    "key": None, "home": None, "kind": Kind.FRAME.value, "gateway": "gw-a", "boot": 1, "hub": "bridge x",
    "bus": "left", "dir": Direction.RX.value, "stood_by": None, "peer": None, "n": 1,
}  # fmt: skip


def pieces(*rows: Mapping[str, Any]) -> Pieces:
    whole = [{**_ROW, "last_ns": row["first_ns"], "last_seq": row["first_seq"], **row} for row in rows]
    columns = {
        name: pa.array([row[name] for row in whole], _TYPES.get(name, pa.int64())) for name in whole[0]
    }
    return Pieces(pa.table(columns), BIN_NS)


def at(*times_ms: int, **fields: Any) -> Iterator[dict[str, Any]]:
    """A piece of one row at each time, numbered in this order."""
    return ({"first_ns": ms * MS, "first_seq": n, **fields} for n, ms in enumerate(times_ms))


@pytest.mark.parametrize(
    ("times_ms", "found"),
    [
        ((0, 1000, 2000, 3000), []),
        ((10_000, 11_000, 2000, 3000), [("gw-a", 1, 1, 2)]),
        ((0, 1000, 9000, 10_000), [("gw-a", 1, 1, 2)]),
        ((10_000, 9900, 10_100), []),  # rows of several hubs are not in order
    ],
)
def test_jumps_of_a_run_are_seen_by_numbers(times_ms: tuple[int, ...], found: list[Any]) -> None:
    assert pieces(*at(*times_ms)).jumps() == found


def test_a_clock_that_went_back_into_a_time_with_rows_is_seen() -> None:
    both = {"first_ns": 2000 * MS, "first_seq": 2, "last_seq": 50}
    assert pieces(*at(0, 1000), both, {"first_ns": 30_000 * MS, "first_seq": 49}).jumps()


def test_frames_of_can_that_waited_are_no_jump() -> None:
    late = {"first_ns": 0, "first_seq": 2, "bus": "can socketcan:can0 of 10.0.0.11"}
    assert not pieces(*at(9000, 9100), late).jumps()
    assert pieces(*at(9000, 9100), {**late, "dir": Direction.TX.value}).jumps()


def test_runs_are_looked_at_one_by_one() -> None:
    assert not pieces(*at(0, 1000), *at(900_000, 901_000, boot=2)).jumps()


RUNS: Final = [Run(name, 1, 0, 0, LONG_NS, True, 1000) for name in ("gw-a", "gw-b")]


def crossings(ahead_ms: int, at_ends: bool = False, **fields: Any) -> list[dict[str, Any]]:
    """Frames that two gateways had; the second clock is ahead by so much more at the end than before."""
    times = range(0, LONG_NS // MS, 1000)
    some = [ms for ms in times if not at_ends or ms < 5000 or ms > LONG_NS // MS - 5000]
    return [
        {"key": ms, "home": 0, "gateway": gateway, "first_seq": n, **fields,
         "first_ns": (ms + (gateway == "gw-b") * ahead_ms * ms // some[-1]) * MS}
        for n, ms in enumerate(some) for gateway in ("gw-a", "gw-b")
    ]  # fmt: skip


OTHERS: Final = list(at(*range(0, LONG_NS // MS, 1000), gateway="gw-b"))
"""Frames of the second gateway that are in no sample."""


@pytest.mark.parametrize(
    ("rows", "is_even"),
    [
        (crossings(100), True),
        (crossings(2000), False),
        (crossings(100, at_ends=True), True),  # it stood by meanwhile
        ([*crossings(100, at_ends=True), *OTHERS], False),  # nobody knows of the time between
        (crossings(100, n=2), False),  # equal frames: which of them it was, nobody knows
    ],
    ids=["even", "drifts", "stood by", "hardly compared", "equal"],
)
def test_frames_of_the_sample_show_that_no_clock_drifted(rows: list[dict[str, Any]], is_even: bool) -> None:
    assert pieces(*rows).are_even(RUNS) is is_even


def test_a_silence_lasts_from_the_last_row_of_any_candidate_to_the_next() -> None:
    one = at(0, 50, 120, 900)
    other = at(400, 450, gateway="gw-b", bus="right")
    found = pieces(*one, *other).silences({"bridge x"}, {"gw-b": 100 * MS}, 1000 * MS)
    assert found == [
        ("bridge x", 120 * MS, 300 * MS, "gw-a"), ("bridge x", 350 * MS, 900 * MS, "gw-b")
    ]  # fmt: skip


def test_a_short_silence_counts_at_whose_end_a_candidate_took_over() -> None:
    told = at(70, kind=Kind.EVENT.value, gateway="gw-b")
    short = Pieces(pieces(*at(0, 75), *told).table, 10 * MS)
    assert short.silences({"bridge x"}, {}, 80 * MS) == [("bridge x", 0, 75 * MS, "gw-a")]
    assert not Pieces(pieces(*at(0, 75)).table, 10 * MS).silences({"bridge x"}, {}, 80 * MS)


def test_a_pause_is_of_what_bridges_put() -> None:
    put = {"dir": Direction.TX.value}
    rows = [*at(0, 500, **put), *at(200), *at(300, hub="bus left", **put)]
    assert pieces(*rows).pauses({"left"}, {}, 600 * MS) == [("left", 0, 500 * MS, "gw-a")]


def test_a_suspect_that_was_put_and_never_received_is_told() -> None:
    put = {"key": 1, "first_ns": 0, "first_seq": 0, "dir": Direction.TX.value, "bus": "right"}
    came = {"key": 1, "first_ns": 0, "first_seq": 1, "stood_by": False}
    assert not pieces(put, came).are_sent_again()
    assert pieces(put).are_sent_again()
    assert pieces(put, {**came, "stood_by": True}).are_sent_again()
