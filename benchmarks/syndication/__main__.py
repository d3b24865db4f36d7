"""`python -m benchmarks.syndication`: measure the syndication broker and write performance-syndication.md.

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

from benchmarks.command import DOCS, Command, run_as_command, written
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

PAGE: Final = DOCS / "performance-syndication.md"
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
# Performance of the syndication broker

Written by `python -m benchmarks.syndication` (`make bench` runs it too); do not edit.
Command: `{command}` (repeats: {repeats}, of {seconds:g} s each, the evaluation {length:g} s).
Machine: {machine}.

{targets}
Figures are medians, with the smallest and largest in brackets; a ratio is taken within a repeat. Broker
and load share the machine and loopback, and no process is pinned to a core. The clients are one thread in
C (`benchmarks/syndication/load.c`). Processor time is that of the whole broker, with the kernel's part.

## The original's evaluation
Its authors measured three brokers with 30 subscribers and 360 producers, each on a connection of its own,
with 5 publications a second each. A producer says where it is, `Bucket` and `Room`, and goes to the next
room every 30 to 59 s. Here it is one broker, and rooms change {haste} times as often, because the runs are
shorter than their 5 minutes. Latency counts from the time when a publication was due until it has been
read at its subscriber, from the first one on. "Load late" is how long after that time the load itself came
to send it: what the machine's other work costs is in there, and once more in the broker. "Before other
processes" runs both with real-time priority, so that they wait for none of it. They report a mean of 129.6
ms and a p95 of 7.59 ms, but over a network with a round trip of 4.5 ms and on smaller machines of 2016:
that is where the load comes from, not a comparison.

{evaluation}
{counts}
## One producer, {subscribers} subscribers
All have the same query. A publication is an id of 36 characters, no metadata and a float: 49 bytes. Two
yardsticks stand beside: some 30 lines of asyncio and msgpack that send each publication to all who sent
any string, and the raw device, a bus that knows no messages but their length ([figures](performance.md)).

{fanout}
## A change of metadata
One producer changes its room {changes_a_second} times a second, each time in a message of its own. So it
enters the sets of {subscribers} different queries, or leaves them: each change makes {subscribers}
differences. All other queries name other keys; each is that of a client of its own, also connected.

{changes}
## Memory
Each producer and each subscriber has a connection of its own. A producer has 8 keys, as in the original's
load generator; each query is different, and matches one room of {rooms}. The kernel's memory for the
sockets is not in it. It is measured once.

{memory}"""


def page(found: Results, repeats: int, seconds: float) -> str:
    """Return the page docs/performance-syndication.md."""
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
    command.add_argument("--repeat", type=int, default=3, help="measurements of each, for medians (3)")
    command.add_output("the page", PAGE)
    options = command.parse_args()
    with TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state  # brokers store metadata, and a run leaves none to the next
        found = measured(options.repeat, options.seconds, lambda line: print(line, flush=True))
    output: Path = options.output
    written(output).write_text(page(found, options.repeat, options.seconds))
    return 0


if __name__ == "__main__":
    run_as_command(main)
