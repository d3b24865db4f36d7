"""The episodes of suspects: rows of one time come in any order, and say the same."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from capture.schema import Direction
from pipeline.analysis.audit.episodes import numbered, summarised
from pipeline.analysis.audit.sights import divided, sights
from pipeline.analysis.shared.places import Paths, Places
from pipeline.engine.choice import SAIL, SPARK
from pipeline.input.span import WHOLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MS: Final = 1_000_000
_COUNTS: Final = (
    "key long, episode long, gateway string, hub string, bus string, dir int, first_ns long, last_ns long, "
    "first_at long, last_at long, n long, all long, enveloped long, origin long, seq long, token long, "
    "flow long, begun long"
)
_SUSPECTS: Final = (
    "key long, gateway string, hub string, bus string, dir int, peer long, n long, first_ns long, "
    "last_ns long, first_at long, last_at long, origin long, seq long, token long, flow long, begun long, "
    "stood_by boolean"
)
Rows = list[dict[str, Any]]


def orders(spark: "SparkSession", rows: Rows, schema: str) -> "list[DataFrame]":
    return [spark.createDataFrame(one, schema) for one in (rows, rows[::-1])]


def heard(bus: str, **fields: Any) -> dict[str, Any]:
    """Return the counts of a hub that heard a frame on a segment."""
    times = dict.fromkeys(("first_ns", "last_ns", "first_at", "last_at"), 5 * MS)
    whole = {"key": 1, "episode": 0, "gateway": "gw-a", "hub": f"bus {bus}", "bus": bus, **times, **fields}
    counts = {"dir": Direction.RX.value, "n": 1, "all": 1, "enveloped": 0, "origin": None, "seq": None}
    return {**counts, "token": 1, "flow": 1, "begun": 0, **whole}


@pytest.mark.engines(SPARK, SAIL)
@pytest.mark.parametrize(("known", "first"), [((), "left"), (("up", "right"), "right"), (("up",), "up")])
def test_of_segments_that_heard_a_frame_at_one_time_the_first_by_name_is_taken(
    spark: "SparkSession", known: Sequence[str], first: str
) -> None:
    rows = [heard(bus) for bus in ("up", "left", "right")]
    for counts in orders(spark, rows, _COUNTS):
        assert [row.first for row in summarised(counts, known).collect()] == [first]


def test_a_home_that_heard_it_later_is_taken_before_others(spark: "SparkSession") -> None:
    rows = [heard("left"), heard("right", first_at=9 * MS), heard("up", dir=Direction.TX.value, first_at=1)]
    (found,) = summarised(spark.createDataFrame(rows, _COUNTS), ["right", "up"]).collect()
    assert (found.first, found.opener_bus, found.ts_ns) == ("right", "left", 5 * MS)


def suspect(at_ms: int, gateway: str, number: int | None) -> dict[str, Any]:
    times = dict.fromkeys(("first_ns", "last_ns", "first_at", "last_at"), at_ms * MS)
    its = {"key": 1, "gateway": gateway, "hub": "bridge x", "bus": "wire", "dir": 0, "peer": 0, "n": 1}
    envelope = {"origin": None if number is None else 9, "seq": number}
    return {**its, **times, **envelope, "token": 1, "flow": 1, "begun": 0, "stood_by": False}


@pytest.mark.engines(SPARK, SAIL)
def test_a_row_without_an_envelope_is_as_late_as_the_latest_of_one_time(spark: "SparkSession") -> None:
    """Two envelopes come to a gateway at one time: one at once, one after 900 ms. What the gateway then puts
    without an envelope may be either: so it is in the episode of the later."""
    rows = [
        suspect(0, "gw-a", 1), suspect(900, "gw-b", 2), suspect(900, "gw-b", 1), suspect(901, "gw-b", None)
    ]  # fmt: skip
    at = Places((), (), Paths(frozenset(), frozenset(), frozenset()), by_envelope=False, has_envelopes=True)
    for suspects in orders(spark, rows, _SUSPECTS):
        episodes = numbered(suspects, at, 100 * MS).collect()
        assert {row.episode for row in episodes if row.origin is None} == {0}
        its, _ = sights(pa.Table.from_pylist([row.asDict() for row in suspects.collect()]), {}, [])
        plain = divided(its, at, 100 * MS, WHOLE)[~its.enveloped]
        assert plain.tolist() == [0]
