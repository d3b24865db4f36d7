"""`python -m benchmarks.syndication`: measure the syndication broker and write a section of the page.

Latency under the load that the original's authors published, throughput and processor time of one producer
with ten subscribers beside two yardsticks, the cost of a change of metadata with more queries, and memory.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from benchmarks import sections
from benchmarks.command import Command, run_as_command
from benchmarks.report import machine, spread, table
from benchmarks.syndication.rig import (
    BATCHED,
    BUS,
    CHANGES,
    OURS,
    OURS_FIRST,
    PACED,
    PEERS,
    PLAIN,
    QUERIES,
    RATE,
    ROOMS,
    SINGLE,
    SUBSCRIBERS,
    changes_us,
    evaluation,
    fanout,
    memory,
)
from benchmarks.systems import System

HASTE: Final = 10
LENGTH: Final = 10  # of the evaluation, in measurements
ROUNDS: Final = 3  # of changes of metadata in a repeat, each a part as long
MEAN_US, P99_US, GROWTH = 1000.0, 2000.0, 1.5
WRITES: Final = {
    PACED: f"{RATE:,} publications a second, each alone",
    SINGLE: "as fast as it is read, one a write",
    BATCHED: "as fast as it is read, 64 KiB a write",
}

WAYS: Final = {OURS.name: "as it comes", OURS_FIRST.name: "before other processes"}

Runs = list[dict[str, float]]


class Results(NamedTuple):
    """Values of each repeat: the evaluation by system, fan-out by writes and system, changes by queries."""

    evaluation: dict[str, Runs]
    fanout: dict[tuple[str, str], Runs]
    changes: list[dict[int, float]]
    memory: Runs


def measured(repeats: int, seconds: float, tell: Callable[[object], None]) -> Results:
    """Measure everything; the compared take turns within a repeat."""
    found = Results({}, {}, [], [])
    for _ in range(repeats):
        for system in _ways():
            values = evaluation(system, seconds * LENGTH, HASTE)
            found.evaluation.setdefault(system.name, []).append(_told(tell, f"as {system.name}", values))
        for writes, system in _pairs():
            values = _told(tell, f"{writes} {system.name}", fanout(system, writes, seconds))
            found.fanout.setdefault((writes, system.name), []).append(values)
    found.memory.append(_told(tell, "memory", memory()))
    for us in changes_us(repeats * ROUNDS, seconds / ROUNDS):
        _told(tell, "change, us", {f"of {queries}:": value for queries, value in us.items()})
        found.changes.append(us)
    return found


def _told(tell: Callable[[object], None], what: str, values: dict[str, float]) -> dict[str, float]:
    tell(f"{what:16} " + "  ".join(f"{name} {value:.5g}" for name, value in values.items()))
    return values


def _ways() -> list[System]:
    return [system for system in (OURS, OURS_FIRST) if not system.missing()]


def _pairs() -> Iterable[tuple[str, System]]:
    """Return what is measured of one producer. The load of the bus has no pace."""
    for writes in WRITES:
        yield from ((writes, s) for s in (OURS, PLAIN, BUS) if s is not BUS or writes != PACED)


def of(runs: Runs, field: str) -> list[float]:
    return [run[field] for run in runs]


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(over, under, strict=True) if b]


def _targets(found: Results) -> str:
    paced = found.fanout[PACED, OURS.name]
    delivered, core = of(paced, "delivered_per_s"), of(paced, "core")
    growth = [us[QUERIES[-1]] / us[QUERIES[0]] for us in found.changes]
    enough = median(delivered) > 0.99 * RATE * SUBSCRIBERS and median(core) < 1
    rows = [
        (f"{RATE * SUBSCRIBERS:,} deliveries a second: one core", f"{spread(core)} of it", _word(enough)),
        (f"A change, {QUERIES[0]} to {QUERIES[-1]:,} queries: 1.5 times at most", spread(growth),
         _word(median(growth) <= GROWTH)),
    ]  # fmt: skip
    for name, runs in found.evaluation.items():
        way = "" if name == OURS.name else ", before other processes"
        for field, words, bound in (("mean_us", "mean", MEAN_US), ("p99_us", "p99", P99_US)):
            values = of(runs, field)
            what = f"Evaluation{way}, {words}: less than {bound / 1000:g} ms"
            rows.append((what, f"{spread(values)} µs", _word(median(values) < bound)))
    return table(("Target", "Measured", ""), rows)


def _word(good: bool) -> str:
    return "reached" if good else "**missed**"


def _evaluation(found: dict[str, Runs]) -> str:
    fields = {"mean_us": "mean", "p50_us": "p50", "p95_us": "p95", "p99_us": "p99", "worst_us": "worst",
              "late_p50_us": "load late, p50", "late_p99_us": "load late, p99"}  # fmt: skip
    rows = [
        [WAYS[name], *(f"{run[field]:,.0f}" for field in fields), f"{run['core']:.2f}"]
        for name, runs in found.items()
        for run in runs
    ]
    return table(("µs, of each run", *fields.values(), "cores"), rows)


def _counts(found: dict[str, Runs]) -> str:
    """Say what the runs of the evaluation had, and what was wrong."""
    runs = [run for each in found.values() for run in each]
    sent, changes, differences = (of(runs, field) for field in ("sent", "changes", "differences"))
    wrong = sum(of(runs, "errors")) + sum(sent) - sum(of(runs, "delivered"))
    return (
        f"A run had {median(sent):,.0f} publications, {median(changes):,.0f} changes of rooms, and "
        f"{median(differences):,.0f} differences. Lost, doubled, out of order or at the wrong subscriber: "
        f"{wrong:.0f} in all runs together.\n"
    )


def _fanout(found: Results) -> str:
    rows = []
    for writes, system in _pairs():
        runs, ours = found.fanout[writes, system.name], found.fanout[writes, OURS.name]
        faster = ratios(of(ours, "delivered_per_s"), of(runs, "delivered_per_s"))
        dearer = ratios(of(ours, "cpu_us"), of(runs, "cpu_us"))
        compared = ("", "") if system is OURS else (spread(faster), spread(dearer))
        name = WRITES[writes] if system is OURS else ""
        cells = (f"{median(of(runs, 'delivered_per_s')):,.0f}", f"{median(of(runs, 'cpu_us')):.2g}")
        rows.append((name, system.label, *cells, *compared, f"{median(of(runs, 'loss')):.1%}"))
    head = (
        "The producer writes",
        "system",
        "delivered/s",
        "CPU µs",
        "delivered: ours ÷ it",
        "CPU: ours ÷ it",
        "lost",
    )
    return table(head, rows)


def _changes(rounds: list[dict[int, float]]) -> str:
    rows = []
    for queries in QUERIES:
        us, base = [each[queries] for each in rounds], [each[QUERIES[0]] for each in rounds]
        rows.append((f"{queries:,}", f"{median(us):.0f}", spread(ratios(us, base))))
    return table(("Queries", "CPU µs a change", f"÷ with {QUERIES[0]}"), rows)


def _memory(runs: Runs) -> str:
    fields = {"producers_mib": f"{PEERS} producers", "queries_mib": f"{PEERS} subscribers"}
    rows = [
        (words, f"{median(of(runs, field)):.1f}", f"{median(of(runs, field)) * 1024 / PEERS:.1f}")
        for field, words in fields.items()
    ]
    rows.append(("the whole process", f"{median(of(runs, 'all_mib')):.1f}", ""))
    return table(("Resident size", "MiB", "KiB each"), rows)


TEXT = """\
Command: `{command}` (repeats: {repeats}, of {seconds:g} s each, the evaluation {length:g} s).
Machine: {machine}.

{targets}
**The original's evaluation**, with rooms that change {haste} times as often:

{evaluation}
{counts}
**One producer, {subscribers} subscribers**:

{fanout}
**A change of metadata**, {changes_a_second} times a second, which makes {subscribers} differences each:

{changes}
**Memory**, with 8 keys for each producer and a different query for each subscriber,
which matches one room of {rooms}:

{memory}"""


def page(found: Results, repeats: int, seconds: float) -> str:
    """Return the section of the page about the syndication broker."""
    return TEXT.format(
        command=shlex.join(["python", "-m", "benchmarks.syndication", *sys.argv[1:]]),
        repeats=repeats,
        seconds=seconds,
        length=seconds * LENGTH,
        machine=machine(),
        haste=HASTE,
        subscribers=SUBSCRIBERS,
        rooms=ROOMS,
        changes_a_second=f"{CHANGES:,}",
        targets=_targets(found),
        evaluation=_evaluation(found.evaluation),
        counts=_counts(found.evaluation),
        fanout=_fanout(found),
        changes=_changes(found.changes),
        memory=_memory(found.memory),
    )


def main() -> int:
    command = Command("benchmarks.syndication", __doc__)
    command.add_seconds(3.0)
    command.add_repeat(3)
    command.add_output("the page", sections.PAGE)
    options = command.parse_args()
    with TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state  # brokers store metadata, and a run leaves none to the next
        found = measured(options.repeat, options.seconds, lambda line: print(line, flush=True))
    output: Path = options.output
    text = page(found, options.repeat, options.seconds)
    sections.write("syndication", "benchmarks.syndication", text, output)
    return 0


if __name__ == "__main__":
    run_as_command(main)
