"""Each job finds exactly the faults that were planted in a capture.

That Spark's tables are Sail's is held for all jobs in tests/pipeline/engine/test_elsewhere.py.
"""

from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import functions

from bus.events import PATTERN as EVENT
from bus.names import Names
from bus.wire.pattern import Pattern, token
from capture.names import read
from pipeline.analysis import failovers, last, latency, rates, tokens
from pipeline.analysis.audit import findings
from pipeline.analysis.shared import hops
from pipeline.analysis.shared.expected import SEGMENTS_A_WORD
from pipeline.cache import release
from pipeline.engine.choice import SAIL, SPARK
from pipeline.input import read as capture
from tests.pipeline.engines import compiled
from tests.rigs.planted import ENVELOPES, HEARTBEAT, KINDS, Plan, Truth, generate, maker
from tests.rigs.planted.exact import found, hard, wrong
from tests.rigs.planted.exact import planted as planted_in
from tests.rigs.planted.names import FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engines(SAIL)


class Planted(NamedTuple):
    directory: Path
    rows: "DataFrame"
    truth: Truth
    plan: Plan


FAULTY = Plan(rows=30_000, seed=7, lost=0.005, doubled=0.003, echoed=0.002, aged=0.002)
CASES = {
    "envelopes on the trunk": FAULTY,
    "envelopes": replace(FAULTY, envelope="all"),
    "holes in what recorders wrote": replace(FAULTY, rows=60_000, rate=400.0, holes=2, envelope="all"),
    "a filter that looks deep": replace(FAULTY, filtered=True),
    "two bridges beside each other": replace(FAULTY, beside=True),
    "one heartbeat among others": replace(FAULTY, rows=60_000, rate=400.0, heartbeat=0.3),
    "more segments than a word holds": replace(
        FAULTY, rows=60_000, gateways=40, rate=200.0, lost=0.04, doubled=0.02, echoed=0.02, aged=0.02
    ),
}

ROWS, MOST_ROWS = 200_000, 1_000_000
"""Of a large capture, and of the largest. What divides or adds up rows of so many is the same for both
engines."""
MIXED = "trunk"
"""The sort of capture in which some rows have envelopes and others none: what is done for each, is done."""


def make(directory: Path, spark: "SparkSession", plan: Plan) -> Planted:
    truth = generate(directory, plan)
    return Planted(directory, capture.read(spark, capture.root(str(directory))), truth, plan)


@pytest.fixture(scope="module")
def planted(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return make(tmp_path_factory.mktemp("planted"), spark, FAULTY)


@pytest.fixture(scope="module", params=list(CASES))
def case(
    request: pytest.FixtureRequest,
    planted: Planted,
    spark: "SparkSession",
    tmp_path_factory: pytest.TempPathFactory,
) -> Planted:
    plan: Plan = CASES[request.param]
    return planted if plan is FAULTY else make(tmp_path_factory.mktemp("case"), spark, plan)


@pytest.fixture(scope="module")
def audited(case: Planted) -> findings.Audit:
    return findings.audit(case.rows)


def test_the_cases_differ_in_what_they_are_to_show() -> None:
    assert CASES["more segments than a word holds"].gateways > SEGMENTS_A_WORD
    assert len({plan.envelope for plan in CASES.values()}) == 2


def test_the_audit_finds_every_fault_and_no_other(case: Planted, audited: findings.Audit) -> None:
    counts = found(audited.summary.collect())
    assert bool(counts.pop("not captured", None)) == bool(case.plan.holes)
    assert min(map(len, counts.values())) > 0
    assert counts == planted_in(case.truth)


def test_the_audit_counts_all_frames_and_says_how_they_were_matched(
    case: Planted, audited: findings.Audit
) -> None:
    (row,) = audited.totals.collect()
    assert row.frames == case.truth.frames
    assert (row.by_envelope > 0, row.by_both > 0) == (
        case.plan.envelope == "all",
        case.plan.envelope == "trunk",
    )


def test_events_of_gateways_are_no_traffic_that_is_audited(planted: Planted) -> None:
    strays = planted.rows.where("kind = 0").limit(40)
    tokens = functions.array(*map(functions.lit, Pattern(*EVENT, "link"))).cast("array<bigint>")
    events = strays.withColumns({"tokens": tokens, "origin": functions.lit(None).cast("bigint")})
    found, clean = findings.audit(planted.rows.unionByName(events)), findings.audit(planted.rows)
    assert found.summary.collect() == clean.summary.collect()
    assert found.totals.collect() == clean.totals.collect()


def test_the_ledgers_are_read_and_beside_the_traffic(case: Planted, audited: findings.Audit) -> None:
    drops, at_sender = Counter[str](), Counter[str]()
    for row in audited.ledger.collect():
        drops[f"{row.gateway} {row.bus} {row.reason}"] += row["count"]
    assert drops == case.truth.ledger
    for row in audited.agreement.collect():
        at_sender[f"{row.gateway} trunk queue full"] += row.at_sender
    assert at_sender == {name: case.truth.ledger[name] for name in at_sender}
    assert at_sender.total() > 0


def test_what_the_recorders_missed_is_counted(case: Planted, audited: findings.Audit) -> None:
    rows = audited.capture.collect()
    assert sum(row.rows for row in rows) == case.truth.rows
    missed = Counter({row.gateway: row.holes for row in rows})
    assert +missed == +case.truth.missed


def test_takeovers_and_gaps(planted: Planted) -> None:
    """A bridge was away from the last frame of any pattern until the first one of any."""
    found = [row for row in failovers.failovers(planted.rows).collect() if row["from"] != row.to]
    assert {row.hub for row in found} == {"bridge seg-0"}
    onto = sorted((row for row in found if row.bus == "seg-0"), key=lambda row: row.start_ns)
    times = [(pair, list(rows)) for pair, rows in groupby(onto, lambda row: (row["from"], row.to))]
    assert [("seg-0", *pair) for pair, _ in times] == [t[:3] for t in planted.truth.takeovers]
    gaps = [min(row.end_ns for row in rows) - max(row.start_ns for row in rows) for _, rows in times]
    spacing_ns = 20_000_000
    assert all(abs(gap - t[3]) < spacing_ns for gap, t in zip(gaps, planted.truth.takeovers, strict=True))


def test_takeovers_of_each_pattern_are_those_of_its_bridge(planted: Planted) -> None:
    found = failovers.failovers(planted.rows).collect()
    assert {(row.bus, row.token) for row in found if row["from"] != row.to} == {
        *(("seg-0", token(kind)) for kind in ("oven", "motor", "door")), ("trunk", token("fridge")),
    }  # fmt: skip
    others = {(row.bus, row.token) for row in found if row["from"] == row.to}
    assert others <= {(f"seg-{n}", token("fridge")) for n in (1, 2, 3)}  # of the first bus: all miss them
    assert others
    assert all(row.to is not None for row in found)


def test_rates_add_up_to_the_frames(planted: Planted) -> None:
    windows = rates.rates(planted.rows, seconds=1.0)
    brought: Counter[int] = Counter()
    for row in windows.where("bus <> 'trunk'").collect():
        brought[row.token1] += row.brought
    assert brought == {token(kind): planted.truth.by_kind[kind] for kind in KINDS}


def test_the_last_value_of_each_pattern(planted: Planted) -> None:
    found = {
        row.tokens[1]: (row.ts_ns, bytes(row.payload).decode()) for row in last.last(planted.rows).collect()
    }
    assert found == planted.truth.last


def test_clocks_are_put_right(planted: Planted) -> None:
    found = latency.latency(planted.rows)
    clocks = {row.gateway: row.ahead_ns for row in found.clocks.collect()}
    assert all(abs(clocks[name] - ns) < 20_000 for name, ns in planted.truth.offsets_ns.items())
    rows = found.summary.collect()
    assert all(row.least > 0 for row in rows)
    wires = [row for row in rows if row.kind == hops.WIRE]
    assert wires
    assert all(330 < row.p50 < 420 for row in wires)
    inside = [row for row in rows if row.kind == hops.BRIDGE and row["from"] == "trunk"]
    assert {row.p99 for row in inside} == {40.0}


def test_names_that_share_a_token_and_tokens_without_a_name(planted: Planted, spark: "SparkSession") -> None:
    given = read(planted.directory / FILE)
    assert len(given) == planted.plan.names
    names = Names(given)
    found = {row.token: row.names for row in tokens.collisions(spark, names).collect()}
    assert found == planted.truth.collisions
    unnamed = {row.token: row.rows for row in tokens.unknown(planted.rows, names).collect()}
    assert unnamed == planted.truth.unknown
    assert len(found) == planted.plan.collisions
    assert len(unnamed) == planted.plan.unknown


@pytest.mark.engines(SPARK)
@pytest.mark.parametrize("name", ["holes in what recorders wrote", "more segments than a word holds"])
def test_spark_finds_every_fault_and_no_other(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    made = make(tmp_path, spark, CASES[name])
    with compiled(spark):
        audited = findings.audit(made.rows)
        test_the_audit_finds_every_fault_and_no_other(made, audited)
        test_the_ledgers_are_read_and_beside_the_traffic(made, audited)
        test_what_the_recorders_missed_is_counted(made, audited)


@pytest.mark.slow
@pytest.mark.parametrize("sort", [*ENVELOPES, HEARTBEAT])
def test_many_rows_exactly(spark: "SparkSession", tmp_path: Path, sort: str) -> None:
    exactly(spark, tmp_path, hard(MOST_ROWS if sort == MIXED else ROWS, sort))


def test_a_standby_that_is_quiet_at_the_end(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "CHUNK", 1_000)  # in the last files it has only the end of its run
    exactly(spark, tmp_path, FAULTY)


@pytest.mark.engines(SPARK)
@pytest.mark.slow
def test_many_rows_exactly_on_spark(spark: "SparkSession", tmp_path: Path) -> None:
    with compiled(spark):
        exactly(spark, tmp_path, hard(ROWS, MIXED))


def exactly(spark: "SparkSession", directory: Path, plan: Plan) -> None:
    """Audit a capture, which must find what was planted."""
    release()  # what the cases kept, and the other kinds
    made = make(directory, spark, plan)
    assert wrong(made.rows, made.truth) == []
