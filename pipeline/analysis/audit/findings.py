"""The audit: did every frame reach every other segment exactly once, and its own not at all?

All frames are summed up in one pass (`pipeline.analysis.shared.sums`). Their usual sums are learned
(`pipeline.analysis.shared.expected`); frames with any other sum are *suspects*. Only these, a few in a
thousand, are counted hub by hub (`suspects`, `episodes`). Suspects with equal counts have the same *fault
pattern*, which is explained once (`pipeline.analysis.audit.explain`). What else was the matter at the time
(`causes`) corrects the explanation of those that it concerns.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capture.schema import Kind
from pipeline.analysis.audit import (
    causes,
    comparison,
    coverage,
    due,
    labels,
    suspects,
    thinned,
    translated,
    uncovered,
    ways,
)
from pipeline.analysis.audit.excused import excused
from pipeline.analysis.audit.judgement import NONE, Judged, judge_few, judge_many
from pipeline.analysis.audit.labels import FaultPattern
from pipeline.analysis.audit.moved import Clocks, moved
from pipeline.analysis.audit.suspects import Looked, look
from pipeline.analysis.shared import inventory, sums, trunks
from pipeline.analysis.shared.expected import ENVELOPED_UNIT, Expected, kept, learn
from pipeline.analysis.shared.places import FILTERS, Places
from pipeline.analysis.shared.small import Small
from pipeline.cache import cached
from pipeline.input.span import MARGIN_NS, WHOLE, Span
from pipeline.input.unread import Unread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

WINDOW_MS: Final = 2000


class Audit(NamedTuple):
    """The tables of an audit.

    `totals`: frames, by how they were matched. `summary`: findings by kind, stage and place. `findings`: one
    row for each bad frame and segment. `ledger`: drops as the bridges' own ledgers have them. `agreement`:
    these beside the frames that are missing, for each bridge. `capture`: rows that the recorders themselves
    missed. `coverage`: what was not looked at. `translated`: sides with a protocol, by counts.
    """

    totals: Small
    summary: Small
    findings: "DataFrame | Small"
    ledger: Small
    agreement: Small
    capture: Small
    coverage: Small
    translated: Small


class _Asked(NamedTuple):
    """The question of an audit, and the files of its capture that cannot be read (`left_out`) or are not."""

    window_ms: int
    span: Span
    left_out: int
    journals: Sequence[Unread]
    margin_ns: int


class _Learned(NamedTuple):
    """A capture whose usual sums are known: its `rows` and inventory (`entries`, and `taken` with what trunks
    lead to), and how many of its frames are `wrong`."""

    rows: "DataFrame"
    entries: "list[Row]"
    taken: "list[Row]"
    at: Places
    frame_sums: "DataFrame"
    expected: Expected
    wrong: int

    def look(self) -> Looked | None:
        """Look at the suspects. None if nothing is wrong."""
        if not self.wrong:
            return None
        return look(self.rows, self.frame_sums, self.expected, self.at, self.taken, self.wrong)


def audit(
    rows: "DataFrame",
    window_ms: int = WINDOW_MS,
    span: Span = WHOLE,
    entries: "list[Row] | None" = None,
    left_out: int = 0,
    journals: Sequence[Unread] = (),
    margin_ns: int = MARGIN_NS,
) -> Audit:
    """Audit a capture. `entries` are its inventory, which is taken if it is not given; `left_out` of its
    files cannot be read, and `journals` beside them are not.

    Small tables are collected: the inventory, the sums of frames, the fault patterns, and their groups. If
    `span` has bounds, the frames are counted of which the first row is inside. `rows` then have a margin of
    `margin_ns`, in which others begin or end. Clocks are looked at once something is
    wrong: if one moved, the audit begins again with times that did not.
    """
    asked = _Asked(window_ms, span, left_out, journals, margin_ns)
    capture = _learned(rows, inventory.take(rows) if entries is None else entries, span)
    clocks: Clocks | None = None
    looked = capture.look()
    while looked and (timed := moved(capture.rows, capture.entries, capture.at, looked, clocks)):
        rows, clocks = timed
        capture = _learned(rows, told(inventory.counted(rows).collect(), capture.entries), span)
        looked = capture.look()
    judged, twice = (NONE, 0) if looked is None else _judged(capture, looked, asked)
    return _tables(capture, judged, twice, clocks or Clocks(), asked)


def _learned(rows: "DataFrame", entries: "list[Row]", span: Span) -> _Learned:
    """Sum up all frames, and learn which sums are usual."""
    rows, taken, at = trunks.whole(rows, entries)
    frame_sums = cached(sums.sums(sums.keyed(rows, at), at, span))
    known = sums.signatures(frame_sums, at).collect()
    is_due = due.due(kept(known, at.words, at.heard_in), taken, at)
    hearing = thinned.hubs(taken, at.segments) if thinned.refused(taken) else {}
    expected = learn(known, at.words, at.heard_in, is_due, hearing)
    wrong = sum(row["count"] for row in known) - sum(one.frames for one in expected.typical)
    return _Learned(rows, entries, taken, at, frame_sums, expected, wrong)


def _judged(capture: _Learned, looked: Looked, asked: _Asked) -> tuple[Judged, int]:
    """Judge the suspects. Return also how many whole frames were sent again, inside the span."""
    recorded = causes.Recorded(capture.rows, capture.taken, capture.at, journals=asked.journals)
    what = capture.expected, recorded, asked.window_ms * 1_000_000, asked.span
    judged = None if looked.pieces is None else judge_few(looked.pieces, *what)
    if judged is None:
        of_frames = sums.with_key(capture.rows, capture.at)
        judged = judge_many(suspects.picked(of_frames, looked, capture.wrong), *what)
    again = looked.again
    return judged, 0 if again is None else again.where("was_whole AND inside").count()


def _tables(capture: _Learned, judged: Judged, twice: int, clocks: Clocks, asked: _Asked) -> Audit:
    entries, at, span = capture.entries, capture.at, asked.span
    inside = inventory.counted(span.select(capture.rows)).collect() if span.is_bounded else entries
    ledger = inventory.ledger(inside)
    named = [dict(zip(inventory.LEDGER, row, strict=True)) for row in ledger]
    both = labels.agreement(judged.groups, named)
    compared = translated.translated(entries if inside is entries else told(inside, entries), span.is_bounded)
    faults = labels.summary(judged.groups)
    summary = _summary(faults, named, inside, capture)
    unseen = uncovered.coverage(
        entries,
        span,
        asked.left_out,
        clocks.stepped,
        clocks.drifted,
        at.cuts,
        asked.journals,
        judged.ahead,
        asked.margin_ns,
    )
    return Audit(
        totals(capture.expected, judged.patterns, at, twice),
        Small(labels.SUMMARY, summary),
        excused(judged.findings, faults, summary),
        Small(inventory.LEDGER, ledger),
        Small(labels.AGREEMENT, both),
        Small(inventory.CAPTURE, inventory.uncaptured(inside)),
        Small(coverage.COVERAGE, unseen),
        Small(comparison.TRANSLATED, compared),
    )


def _summary(
    faults: "list[tuple[Any, ...]]", named: "list[dict[str, Any]]", inside: "list[Row]", capture: _Learned
) -> "list[tuple[Any, ...]]":
    """Return the faults without those that ledgers, or what sides refused, explain."""
    summary = labels.with_nobody(labels.without_taken_back(faults, named), named, listening(capture.at))
    if refused := thinned.refused(inside):
        return thinned.without(summary, labels.SUMMARY, refused, all_ways(capture.taken, capture.at))
    return summary


def listening(at: Places) -> set[tuple[str, str]]:
    """Return the bridges and segments where sides wait for who dials them."""
    return {
        (name, side["segment"])
        for hubs in at.topologies
        for name, hub in hubs.items()
        for side in hub.get("sides", ())
        if side.get("listens")
    }


def all_ways(taken: "list[Row]", at: Places) -> ways.Ways:
    """Return the ways of all frames, by the traffic and by topologies, whatever filters say."""
    open_hubs = (
        {name: {**hub, "sides": [_open(side) for side in hub.get("sides", ())]} for name, hub in hubs.items()}
        for hubs in at.topologies
    )
    return ways.of_flow(ways.shown(taken), open_hubs, (), 0)


def _open(side: "Mapping[str, Any]") -> dict[str, Any]:
    return {name: value for name, value in side.items() if name not in FILTERS}


def told(inside: "list[Row]", entries: "list[Row]") -> "list[Row]":
    """Add what topologies told to the inventory of a span."""
    return [*inside, *(row for row in entries if row.kind == Kind.TOPOLOGY)]


def totals(expected: Expected, patterns: Iterable[FaultPattern], at: Places, moved: int = 0) -> Small:
    """Count the frames that entered: typical ones by how they were matched, and suspects one by one.

    So many typical ones are `moved` to the suspects: a stand-in sent them again, with another envelope.
    `crossed` are those that are due on another segment, or on another bus by a trunk; of suspects, those with
    a fault or that a bridge put somewhere.
    """
    wide = {at.segments.index(name) for name in at.paths.hearers}
    clean = sum(one.inside for one in expected.typical) - moved
    enveloped = sum(one.inside for one in expected.typical if one.is_enveloped()) - moved
    none = sum(one.inside for one in expected.typical if not one.rows // ENVELOPED_UNIT)
    crossed = sum(one.inside for one in expected.typical if one.sent() or one.home() in wide) - moved
    patterns = list(patterns)
    looked_at = sum(one.episodes * one.entered for one in patterns)
    stayed = sum(one.episodes * one.entered for one in patterns if not (wide or one.faults or one.passed))
    table = {
        "frames": looked_at + clean, "crossed": looked_at - stayed + crossed, "typical": clean,
        "looked_at": looked_at, "by_envelope": enveloped, "by_content": none,
        "by_both": clean - enveloped - none,
    }  # fmt: skip
    return Small(dict.fromkeys(table, int), [list(table.values())])
