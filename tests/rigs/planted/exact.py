"""What an audit of a planted capture has to find, and what it finds instead."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from tests.rigs.planted.plan import Plan, Truth, plan_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Counts = dict[str, Counter[str]]
_OFFSETS_NS: Final = (0, 47_000_000_000, -13_000_000_000, 300_000)


def hard(rows: int, sort: str) -> Plan:
    """Plan a capture with everything that makes it hard to audit."""
    return plan_of(sort, rows, filtered=True, beside=True, late=0.001, offsets_ns=_OFFSETS_NS)


def found(summary: Iterable[Any]) -> Counts:
    """Count an audit's `summary` by kind and place, in the words of `Truth`."""
    counts: Counts = {"lost": Counter(), "duplicate": Counter(), "echo": Counter()}
    for row in summary:
        words = (row.stage, row.gateway, row.segment) if row.kind == "lost" else (row.segment,)
        counts.setdefault(row.kind, Counter())[" ".join(filter(None, words))] += row["count"]
    return counts


def planted(truth: Truth) -> Counts:
    """Return what an audit has to find."""
    return {"lost": +truth.missing, "duplicate": +truth.duplicates, "echo": +truth.echoes}


def wrong(rows: "DataFrame", truth: Truth) -> list[str]:
    """Audit a capture. Return what is not as planted, a line each."""
    from pipeline.analysis.audit.findings import audit

    tables = audit(rows)
    (totals,) = tables.totals.collect()
    counts, due = found(tables.summary.collect()), planted(truth)
    lines = [] if totals.frames == truth.frames else [f"{totals.frames} frames, of {truth.frames}"]
    for kind in sorted(counts.keys() | due.keys()):
        both = counts.get(kind, Counter[str]()), due.get(kind, Counter[str]())
        places = sorted(both[0].keys() | both[1].keys())
        lines += [f"{kind} {p}: {both[0][p]}, not {both[1][p]}" for p in places if both[0][p] != both[1][p]]
    return lines
