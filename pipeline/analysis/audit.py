"""The audit: did every frame reach every other segment exactly once, and its own not at all?

All frames are summed up in one pass (`pipeline.analysis.sums`). Their usual sums are learned
(`pipeline.analysis.expected`); frames with any other sum are *suspects*. Only these, a few in a thousand, are
counted hub by hub. Suspects with equal counts have the same *fault pattern*, which is explained once
(`pipeline.analysis.explain`); the answer is joined back.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis import events, holes, inventory, trunks, ways
from pipeline.analysis.clocks import at_one_clock, clocks_of
from pipeline.analysis.episodes import counted, episodes, narrow, summarised
from pipeline.analysis.expected import ENVELOPED_UNIT, Expected, learn
from pipeline.analysis.explain import AT_SENDER, IN_BRIDGE, LOST, NO_BRIDGE, ON_THE_WAY, Fault, Seen, explain
from pipeline.analysis.frames import local_table
from pipeline.analysis.gaps import Pause, gaps
from pipeline.analysis.inventory import Places
from pipeline.analysis.silent import Need, blamed, silences
from pipeline.analysis.sums import keyed, signatures, sums, suspects, with_key
from pipeline.cache import cached
from pipeline.input.span import WHOLE, Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

WINDOW_MS: Final = 2000
BROADCAST_MOST: Final = 2_000_000
"""Suspects of which a hash table in each worker is small."""

_FAULT_PATTERN: Final = ("fault_pattern", "first", "flow", "begun")
_FAULT: Final = {
    "fault_pattern": int, "first": str, "flow": int, "begun": int, "segment": str, "kind": str, "stage": str,
    "gateway": str, "hub": str, "count": int,
}  # fmt: skip
_FINDING: Final = (
    "ts_ns", "kind", "stage", "segment", "gateway", "hub", "count", "matched", "origin", "seq", "token",
    "key", "episode", "last_ns",
)  # fmt: skip


class Audit(NamedTuple):
    """The tables of an audit.

    `totals`: frames, by how they were matched. `summary`: findings by kind, stage and place. `findings`: one
    row for each bad frame and segment. `ledger`: drops as the bridges' own ledgers have them. `capture`: rows
    that the recorders themselves missed.
    """

    totals: "DataFrame"
    summary: "DataFrame"
    findings: "DataFrame"
    ledger: "DataFrame"
    capture: "DataFrame"


class FaultPattern(NamedTuple):
    """Counts that went wrong alike: the `episodes` that have them, the frames that `entered`, the faults.

    `begun` are the patterns that the frames start with (`pipeline.analysis.filters.begun`)."""

    fault_pattern: int
    first: str
    flow: int
    begun: int
    episodes: int
    entered: int
    faults: list[Fault]


def fault_patterns(episode_rows: "DataFrame") -> "DataFrame":
    """Reduce episodes to fault patterns, a few dozen as a rule: hub by hub, with the `episodes` of each that
    are inside the span."""
    return episode_rows.groupBy(*_FAULT_PATTERN, "gateway", "hub", "bus", "dir").agg(
        F.max("n").alias("n"), F.count(F.when(F.col("inside"), 1)).alias("episodes")
    )


def explained(found: "Iterable[Row]", expected: Expected, at: Places) -> list[FaultPattern]:
    """Explain each fault pattern, from the rows of `fault_patterns`."""
    name = at.segments
    routes = {(name[h], flow): frozenset(name[s] for s in to) for (h, flow), to in expected.routes.items()}
    result = []
    for (number, first, flow, begun), rows in inventory.grouped(found, *_FAULT_PATTERN).items():
        counts = [Seen((row.gateway, row.hub), row.bus, row.dir, row.n) for row in rows]
        found_out = explain(counts, first, flow, routes, at.paths)
        result.append(FaultPattern(number, first, flow, begun, rows[0].episodes, *found_out))
    return result


def named(episode_rows: "DataFrame", explanations: list[FaultPattern]) -> "DataFrame":
    """Make the findings that users read: one for each episode and fault."""
    table = [
        (w.fault_pattern, w.first, w.flow, w.begun, f.segment, f.kind, f.stage, *(f.hub or (None, None)), f.n)
        for w in explanations
        for f in w.faults
    ]
    faults = local_table(episode_rows.sparkSession, _FAULT, table)
    episode = episode_rows.where("lead").drop("gateway", "hub", "bus", "dir", "n")
    return episode.join(F.broadcast(faults), list(_FAULT_PATTERN)).select(
        *_FINDING, "first", "flow", "from_at", "to_at", "inside"
    )


def in_gaps(findings: "DataFrame", dead: list[Pause], slack_ns: int = 10_000_000) -> "DataFrame":
    """Blame losses on a gap in the service of the segment where there is one: their stage becomes
    NO_BRIDGE."""
    if not dead:
        return findings
    table = [(one.segment, one.start_ns - slack_ns, one.end_ns + slack_ns) for one in dead]
    when = local_table(findings.sparkSession, {"dead": str, "from_ns": int, "to_ns": int}, table)
    inside = F.expr("segment = dead AND ts_ns <= to_ns AND last_ns >= from_ns")
    is_lost = (F.col("kind") == LOST) & F.col("stage").isin(ON_THE_WAY, AT_SENDER)
    within = inside & is_lost
    nobody = F.lit(None).cast("string")
    paused = findings.join(F.broadcast(when), within, "left_semi")  # once, in however many gaps it is
    renamed = paused.withColumns({"gateway": nobody, "hub": nobody, "stage": F.lit(NO_BRIDGE)})
    rest = findings.join(F.broadcast(when), within, "left_anti")
    return rest.unionByName(renamed)


def summary(findings: "DataFrame") -> "DataFrame":
    """Sum up findings by kind, stage, segment, bridge and way of matching, with first and last time."""
    keys = ("kind", "stage", "segment", "gateway", "hub", "matched")
    times = F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns")
    return findings.groupBy(*keys).agg(F.sum("count").alias("count"), *times).orderBy(*keys)


def agreement(findings: "DataFrame", ledgers: "DataFrame") -> "DataFrame":
    """Compare, for each bridge, the frames missing in the traffic with those that its ledger dropped.

    Missing are those lost in the bridge on the way to the segment, or at the sender (nobody heard what it
    sent). A queue's drops after the hand-over are in the ledger alone if nobody listens behind it.
    """
    lost = findings.where((F.col("kind") == LOST) & F.col("stage").isin(AT_SENDER, IN_BRIDGE))
    of_frame = lost.groupBy("gateway", "hub", "stage", "key", "ts_ns").agg(
        F.max("count").alias("once"), F.sum("count").alias("all")
    )
    none = F.lit(0).cast("bigint")
    missed = of_frame.select(
        "gateway", "hub", none.alias("ledger"),
        F.when(F.col("stage") == AT_SENDER, F.col("once")).otherwise(none).alias("at_sender"),
        F.when(F.col("stage") == IN_BRIDGE, F.col("all")).otherwise(none).alias("in_bridge"),
    )  # fmt: skip
    dropped = ledgers.where("dir = 1").select(
        "gateway", "hub", F.col("count").alias("ledger"), none.alias("at_sender"), none.alias("in_bridge")
    )
    sums = (F.sum(name).alias(name) for name in ("ledger", "at_sender", "in_bridge"))
    return dropped.unionByName(missed).groupBy("gateway", "hub").agg(*sums).orderBy("gateway", "hub")


def audit(rows: "DataFrame", window_ms: int = WINDOW_MS, span: Span = WHOLE) -> Audit:
    """Audit a capture. Small tables are collected: the inventory, the sums of frames, the fault patterns.

    If `span` has bounds, the frames are counted of which the first row is inside. `rows` then have a margin
    (`pipeline.input.span.MARGIN_NS`), in which others begin or end.
    """
    spark = rows.sparkSession
    recorded = inventory.take(rows)
    rows, taken, at = trunks.whole(rows, recorded)
    frame_rows = keyed(rows, at)
    frame_sums = cached(sums(frame_rows, at, span))
    known = signatures(frame_sums, at).collect()
    expected = learn(known, at.words)
    wrong = sum(row["count"] for row in known) - sum(one.frames for one in expected.typical)
    suspect = suspects(frame_sums, expected, at)
    if wrong < BROADCAST_MOST:
        suspect = F.broadcast(suspect)
    homes = {at.segments[home] for home, _ in expected.routes}
    ahead = clocks_of(frame_rows, frame_sums, expected, at) if wrong else {}
    timed = at_one_clock(with_key(rows, at), ahead)
    suspect_rows = cached(narrow(episodes(timed, suspect, window_ms * 1_000_000, span), at.filters))
    counts = counted(suspect_rows)
    episode_rows = cached(summarised(counts, homes, span))
    explanations = explained(fault_patterns(episode_rows).collect() if wrong else [], expected, at)
    unsure = holes.holes(rows, taken, ahead) if explanations else None
    found = holes.excused(named(episode_rows, explanations), unsure)
    lost = _lost(explanations)
    known_ways = _ways(lost, taken, at)
    need = list(_needed(lost, known_ways))
    if need:
        silent = silences(rows, ahead, _end_ns(taken), events.are_recorded(taken))
        found = blamed(found, suspect_rows, silent, need)
    dead = gaps(rows, taken) if any(map(ways.are_parallel, known_ways.values())) else []
    findings = cached(in_gaps(found, dead).where("inside").select(*_FINDING))
    inside = inventory.counted(span.select(rows)).collect() if span.is_bounded else recorded
    return Audit(
        totals(rows, expected, explanations, at),
        summary(findings),
        findings,
        local_table(spark, inventory.LEDGER, inventory.ledger(inside)),
        local_table(spark, inventory.CAPTURE, inventory.uncaptured(inside)),
    )


_Lost = Mapping[tuple[str, int, int], set[str]]
"""The segments that frames did not reach, by `first`, `flow` and `begun`."""


def _lost(explanations: list[FaultPattern]) -> _Lost:
    segments: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for one in explanations:
        if names := {fault.segment for fault in one.faults if fault.kind == LOST}:
            segments[one.first, one.flow, one.begun] |= names
    return segments


def _ways(lost: _Lost, taken: "list[Row]", at: Places) -> dict[int, ways.Ways]:
    """Find the ways that lost frames could have gone, by `begun`."""
    traffic, told = ways.shown(taken), list(inventory.topologies(taken))
    every = {begun for _, _, begun in lost}
    return {begun: ways.of_flow(traffic, told, at.filters, begun) for begun in every}


def _needed(lost: _Lost, known: Mapping[int, ways.Ways]) -> Iterator[Need]:
    """Yield the bridges that lost frames had to pass."""
    pairs = {(first, begun) for first, _, begun in lost}
    bridges = {(first, begun): ways.needed(first, known[begun]) for first, begun in pairs}
    for (first, flow, begun), segments in sorted(lost.items()):
        for segment in sorted(segments):
            for bridge in bridges[first, begun].get(segment, ()):
                yield Need(first, flow, segment, bridge)


def _end_ns(taken: "list[Row]") -> int:
    return max((row.last_ns for row in taken), default=0)


def totals(
    rows: "DataFrame", expected: Expected, explanations: list[FaultPattern], at: Places
) -> "DataFrame":
    """Count the frames that entered: typical ones by how they were matched, and suspects one by one.

    `crossed` are those that are due on another segment, or on another bus by a trunk.
    """
    wide = {at.segments.index(name) for name in at.paths.hearers}
    clean = sum(one.inside for one in expected.typical)
    enveloped = sum(one.inside for one in expected.typical if one.is_enveloped())
    none = sum(one.inside for one in expected.typical if not one.rows // ENVELOPED_UNIT)
    crossed = sum(one.inside for one in expected.typical if one.sent() or one.home() in wide)
    looked_at = sum(one.episodes * one.entered for one in explanations)
    table = {
        "frames": looked_at + clean, "crossed": looked_at + crossed, "typical": clean, "looked_at": looked_at,
        "by_envelope": enveloped, "by_content": none, "by_both": clean - enveloped - none,
    }  # fmt: skip
    return local_table(rows.sparkSession, dict.fromkeys(table, int), [list(table.values())])
