"""Parts of a capture: what is found in parts that follow each other adds up to what is found in all of it."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from capture import files
from pipeline.analysis.audit.coverage import apart_ns
from pipeline.analysis.audit.findings import Audit, audit
from pipeline.analysis.audit.verdict import judge
from pipeline.analysis.shared.small import Small
from pipeline.cache import release
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.input import read as capture
from pipeline.input import span
from pipeline.input.sound import look
from pipeline.input.span import LATE_NS, Span, time_ns
from pipeline.jobs.audit import audited
from pipeline.jobs.record import OpenCapture
from pipeline.output.tables import Progress
from tests.pipeline.analysis import hand_made
from tests.pipeline.analysis.hand_made import MS, RX, TX, Capture, frame
from tests.rigs.planted import START_NS, Plan, Truth, generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engines(SAIL)
PLAN = Plan(rows=45_000, rate=200.0, lost=0.01, doubled=0.006, echoed=0.004, aged=0.004, holes=1)
LENGTH_NS = int(PLAN.frames / PLAN.rate * 1e9)
MARGIN_NS = 3_000_000_000
CUT_NS = START_NS + LENGTH_NS // 3 + 1_234_567
SPANS = [Span(None, CUT_NS), Span(CUT_NS, None)]


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Each test lets go of what it kept: an audit of each part is much."""
    yield
    release()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    directory = tmp_path_factory.mktemp("planted")
    return directory, generate(directory, PLAN)


def part(rows: "DataFrame", one: Span) -> Audit:
    return audit(one.widened(MARGIN_NS).select(rows), span=one)


def summed(tables: Iterable[Small], keys: tuple[str, ...], *values: str) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for table in tables:
        for row in table.collect():
            for value in values:
                found[(*(row[key] for key in keys), value)] += row[value]
    return +found


def test_parts_of_an_audit_add_up_to_the_whole(spark: "SparkSession", planted: tuple[Path, Truth]) -> None:
    rows = capture.read(spark, capture.root(str(planted[0])))
    whole, parts = audit(rows), [part(rows, one) for one in SPANS]
    assert min(one.findings.count() for one in parts) > 0
    where = ("kind", "stage", "segment", "gateway", "hub")
    assert summed((one.summary for one in parts), where, "count") == summed([whole.summary], where, "count")
    counts = ("frames", "crossed")
    totals = summed((one.totals for one in parts), (), *counts)
    assert totals == summed([whole.totals], (), *counts)
    assert totals[("frames",)] == planted[1].frames
    link = ("gateway", "hub", "bus", "reason")
    assert summed((one.ledger for one in parts), link, "count") == summed([whole.ledger], link, "count")
    assert summed((one.capture for one in parts), ("gateway",), "rows") == summed(
        [whole.capture], ("gateway",), "rows"
    )


def test_a_heartbeat_that_never_pauses_is_looked_at_in_each_part(spark: "SparkSession") -> None:
    made = Capture()
    for beat in range(200):
        content, at = frame("heart", "beat"), 1000 * beat
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 1, "gw-a", "bridge a", "bus a", RX, content)
        if beat not in (20, 150):
            made.seen(at + 2, "gw-a", "bridge a", "bus b", TX, content)
        other = frame("door", str(beat))
        made.seen(at + 100, "gw-a", "bridge a", "bus a", RX, other)
        made.seen(at + 101, "gw-a", "bridge a", "bus b", TX, other)
    cut = hand_made.START_NS + int(100_001.5 * MS)  # in the middle of a frame
    parts = [part(made.rows(spark), one) for one in (Span(None, cut), Span(cut, None))]
    lost = [[(row.kind, row["count"]) for row in one.summary.collect()] for one in parts]
    assert lost == [[("lost", 1)]] * 2
    assert sum(row.frames for one in parts for row in one.totals.collect()) == 400


@pytest.mark.engines(SPARK, SAIL)
def test_each_row_is_in_one_of_the_parts(spark: "SparkSession", planted: tuple[Path, Truth]) -> None:
    rows = capture.read(spark, capture.root(str(planted[0])))
    counts = [one.select(rows).where("kind < 3").count() for one in SPANS]
    assert min(counts) > 0
    assert sum(counts) == rows.where("kind < 3").count()
    one = Span(gateways=("gw-1",)).select(rows)
    assert {row.gateway for row in one.select("gateway").distinct().collect()} == {"gw-1"}


def test_only_files_of_its_days_and_gateways_are_opened(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        for gateway in ("a", "b"):
            path = files.capture_file(tmp_path, day, gateway, files.name_of(1, 0))
            path.parent.mkdir(parents=True)
            path.touch()
    one = Span(time_ns("2026-01-02"), time_ns("2026-01-03") - LATE_NS)
    assert len(look(tmp_path, thorough=False).bad) == 6
    assert len(look(tmp_path, False, one).bad) == 2
    assert len(look(tmp_path, False, one._replace(gateways=("b",))).bad) == 1
    assert len(look(tmp_path, False, Span(from_ns=time_ns("2026-01-02T23:59:59"))).bad) == 4
    assert len(look(tmp_path, False, one._replace(to_ns=time_ns("2026-01-03"))).bad) == 4  # recorded late


@pytest.mark.parametrize(
    ("word", "ns"),
    [
        ("1970-01-02", 86_400_000_000_000),
        ("1970-01-01T00:00:01", 1_000_000_000),
        ("1970-01-01T00:00:01.000001", 1_000_001_000),
        ("1970-01-01T01:00:01+01:00", 1_000_000_000),
        ("1970-01-01T00:00:01Z", 1_000_000_000),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(word: str, ns: int) -> None:
    assert time_ns(word) == ns


@pytest.mark.parametrize("word", ["0001-01-01", "0001-01-01T00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_no_row_can_have_is_the_nearest_that_one_can(word: str) -> None:
    span = Span(from_ns=time_ns(word)) if word[0] == "0" else Span(to_ns=time_ns(word))
    assert span.widened(MARGIN_NS) == span
    assert span.has_day("2026-11-20")
    assert span.touches(1, 1)


@pytest.mark.parametrize("word", ["", "yesterday", "2026-13-01", "12:00", "1795281426"])
def test_what_is_no_time_is_wrong_use(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no time"):
        time_ns(word)


def test_a_span_that_is_empty_is_refused() -> None:
    parser = argparse.ArgumentParser()
    span.arguments(parser)
    with pytest.raises(PipelineError, match="--from is not before --to"):
        span.of(parser.parse_args(["--from", "2026-01-02", "--to", "2026-01-02"]))


def apart(ahead_ms: int) -> Capture:
    """Frames that cross two gateways, one a second for 40 minutes. One of the clocks is ahead."""
    made = Capture()
    for second in range(2400):
        content, at = frame("door", str(second)), 1000 * second
        made.seen(at, "gw-a", "bus left", "left", RX, content)
        made.seen(at + 1, "gw-a", "bridge a", "left", RX, content)
        made.seen(at + 2, "gw-a", "bridge a", "wire", TX, content)
        made.seen(at + 3 + ahead_ms, "gw-b", "bridge b", "wire", RX, content)
        made.seen(at + 4 + ahead_ms, "gw-b", "bridge b", "right", TX, content)
    return made


ASKED = Span(hand_made.START_NS + 900_000 * MS, hand_made.START_NS + 1_800_000 * MS)


@pytest.mark.parametrize("minutes", [0, -10, 10])
def test_clocks_further_apart_than_the_margin_are_no_faults(spark: "SparkSession", minutes: int) -> None:
    """By a clock that is ahead, what a gateway heard of frames in a span lies beyond the span."""
    rows = apart(60_000 * minutes).rows(spark)

    class Made(OpenCapture):
        def rows(self, margin_ns: int = 0) -> "DataFrame":
            return self.span.widened(margin_ns).select(rows)

    found = audited(Made(spark, "", Progress(quiet=True), span=ASKED), 2000)
    tables = {name: table.collect() for name, table in found._asdict().items() if name != "findings"}
    assert (judge(tables).color, tables["totals"][0]["frames"]) == ("green", 900)


def test_a_margin_that_is_too_short_for_the_clocks_is_told(spark: "SparkSession") -> None:
    rows = apart(600_000).rows(spark)
    found = audit(ASKED.widened(span.MARGIN_NS).select(rows), span=ASKED)
    tables = {name: table.collect() for name, table in found._asdict().items() if name != "findings"}
    assert "the clock of gw-b is +600.0 s from others, so rows of it were not" in judge(tables).text
    assert apart_ns(tables["coverage"]) == pytest.approx(600 * 10**9, abs=10 * MS)
