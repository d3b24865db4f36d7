"""The report on gateways between a line and TCP: it turns samples into Markdown."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.relayed.systems import Gateway, LineLoad
from benchmarks.report import Results, machine, spread, table
from benchmarks.run import Sample

OTHER = "ser2net-now"


class Aim(NamedTuple):
    """At most `bound` times the figure `field` of a ser2net that forwards at once, at 90 % of the line."""

    text: str
    field: str
    bound: float


AIMS = (
    Aim("processor time: 1.2 times at most", "cores", 1.2),
    Aim("p50: 1.1 times at most", "p50_us", 1.1),
    Aim("p99: no worse", "p99_us", 1.0),
)
AIMED = {"up-90": "each frame alone", "up-90-ms": "once a millisecond"}


def page(
    samples: Sequence[Sample],
    loads: Sequence[LineLoad],
    systems: Sequence[Gateway],
    command: str,
    duration: str,
) -> str:
    """Return the section of the page about gateways between a line and TCP."""
    results = Results([sample for sample in samples if not sample.values.get("lost")])
    parts = [
        f"Command: `{command}` ({duration}).\nMachine: {machine()}.\n",
        table((f"Line to TCP at 90 %, ours ÷ {systems[-1].label}", "frames", "bytes", ""), _aims(results)),
        table(("Load", "Gateway", "of a core, %", "p50, µs", "p99, µs"), _rows(results, loads, systems)),
    ]
    return "\n".join(parts)


def _aims(results: Results) -> Iterator[tuple[str, ...]]:
    for name, words in AIMED.items():
        for aim in AIMS:
            found = [ratios(results, name, system, aim.field) for system in ("ours", "bytes")]
            word = "reached" if found[0] and median(found[0]) <= aim.bound else "**missed**"
            yield (f"{words}: {aim.text}", *map(spread, found), word)


def ratios(results: Results, load: str, system: str, field: str) -> list[float]:
    """Return our figure divided by that of ser2net, for each repeat that has both."""
    others = {sample.repeat: sample.values.get(field) for sample in results.of(load, OTHER)}
    found = ((one.values.get(field), others.get(one.repeat)) for one in results.of(load, system))
    return [ours / other for ours, other in found if ours is not None and other]


def _rows(
    results: Results, loads: Sequence[LineLoad], systems: Sequence[Gateway]
) -> Iterator[tuple[str, ...]]:
    for load in loads:
        for system in (one for one in systems if one.line == load.line):
            cores = [100 * cores for cores in results.values(load.name, system.name, "cores")]
            times = [results.values(load.name, system.name, field) for field in ("p50_us", "p99_us")]
            yield load.title, system.label, spread(cores), *map(spread, times)
