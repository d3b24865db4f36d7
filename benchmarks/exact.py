"""Whether the audit finds exactly the faults that were planted, at any size.

    python -m benchmarks.exact --rows 20000000 --engine sail

A capture of each sort is made: all rows have envelopes (all), none (none), or those on the trunk (trunk); or
30 % of the frames are one heartbeat without envelopes (heartbeat). The clocks of the gateways are up to a
minute apart, each segment has two bridges for frames of different kinds, and some frames come late.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.command import Command, run_as_command
from tests.rigs.planted import CAPTURES, Plan, Truth, generate, plan_of

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


def main() -> int:
    parser = Command("benchmarks.exact", __doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=("spark", "sail"), default="spark")
    options = parser.parse_args()
    from pipeline import cache
    from pipeline.engine import session
    from pipeline.engine.choice import Where
    from pipeline.input.read import read, root

    where, is_wrong = Where(options.engine), False
    with tempfile.TemporaryDirectory() as name, session.session(where, session.start(where)) as spark:
        for kind in CAPTURES:
            directory = Path(name) / kind
            truth = generate(directory, hard(options.rows, kind))
            begin = time.perf_counter()
            lines = wrong(read(spark, root(str(directory))), truth)
            cache.release()
            is_wrong |= bool(lines)
            faults = sum(counts.total() for counts in planted(truth).values())
            what = "\n  ".join(lines) or f"all {faults:,} faults of {truth.frames:,} frames, and no other"
            print(f"{kind}: {truth.rows:,} rows, {time.perf_counter() - begin:.1f} s: {what}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    run_as_command(main)
