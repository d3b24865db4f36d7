"""The page of `benchmarks.pipeline`: what was measured, beside the aims."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from benchmarks.report import machine
from pipeline.analysis.audit.few import MOST
from tests.rigs.planted import HEARTBEAT

ENGINES: Final = ("spark", "sail", "duckdb")
NAMES: Final = "Spark | Sail | DuckDB"
UNSKEWED: Final = "trunk"  # the sort of capture that `HEARTBEAT` is but for the heartbeat
WORDS: Final = {
    "all": "all rows have an envelope", "trunk": "those on the trunk", "none": "none",
    HEARTBEAT: "as `trunk`, and 30 % of the frames are equal and have none",
}  # fmt: skip


class Cold(NamedTuple):
    """A command from start to end: its seconds, and the peak memory of its largest process."""

    s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.s:.1f} ({self.peak_mb:.0f})"


class Warm(NamedTuple):
    """Jobs in one process: hashes of their `answers`, their best times, peak memory, and the work of Spark
    for an audit (`benchmarks.pipeline.work`)."""

    answers: Mapping[str, str]
    best_s: Mapping[str, float]
    peak_mb: float
    work: Mapping[str, int]


class Measured(NamedTuple):
    """A capture of a `sort` and size, the share of the heartbeat in its frames, and the times of engines."""

    sort: str
    millions: int
    rows: int
    heartbeat: float
    mb: float
    engines: Mapping[str, Warm]

    def s(self, engine: str, job: str = "audit") -> float:
        return self.engines[engine].best_s[job]

    @property
    def ratio(self) -> float:
        """Return how many times as long Spark takes as DuckDB."""
        return self.s("spark") / self.s("duckdb")

    @property
    def work(self) -> Mapping[str, int]:
        return self.engines["spark"].work

    @property
    def passes(self) -> float:
        """Rows that Spark read from files, over the rows of the capture, to a hundredth: it reads a few of
        topologies, too."""
        return round(self.work["read"] / self.rows, 2)


Results = Sequence[Measured]


def growth(results: Results, engine: str) -> dict[tuple[str, int], float]:
    """Compute how much more time a row takes than in the next smaller capture of the same sort: 1 is linear
    growth."""
    return {
        (larger.sort, larger.millions): larger.s(engine) / smaller.s(engine) / (larger.rows / smaller.rows)
        for smaller, larger in pairwise(results)
        if smaller.sort == larger.sort
    }


def skews(results: Results, engine: str) -> dict[int, float]:
    """Compare the heartbeat with the same without it, at each size."""
    times = {(one.sort, one.millions): one.s(engine) / one.rows for one in results}
    return {
        size: its / times[UNSKEWED, size]
        for (sort, size), its in times.items()
        if sort == HEARTBEAT and (UNSKEWED, size) in times
    }


class Aim(NamedTuple):
    """A number that must not be above `most`; `worst` is the worst that was measured, None if none was."""

    text: str
    most: float
    worst: float | None

    def __str__(self) -> str:
        if self.worst is None:
            return f"| {self.text} | not measured | |"
        return f"| {self.text} | {self.worst:,.4g} | {'yes' if self.worst <= self.most else 'no'} |"


def aims(results: Results) -> Iterator[Aim]:
    """Yield the aims, each with the worst that was measured."""

    def worst(of: Callable[[Measured], float], size: int | None = None) -> float | None:
        return max((of(one) for one in results if size in (None, one.millions)), default=None)

    yield Aim("jobs of Spark: at most 5", 5, worst(lambda one: one.work["jobs"]))
    yield Aim("passes over the rows: at most 2", 2, worst(lambda one: one.passes))
    yield Aim("at 1 M rows Spark takes at most 5 times as long as DuckDB", 5, worst(lambda one: one.ratio, 1))
    yield Aim(
        "at 20 M rows Spark takes at most 3 times as long as DuckDB", 3, worst(lambda one: one.ratio, 20)
    )
    yield Aim(
        "from one size to the next, time grows at most as rows do: at most 1", 1,
        max(growth(results, "spark").values(), default=None),
    )  # fmt: skip
    yield Aim(
        "30 % one heartbeat: at most 1.5 times as long as without", 1.5,
        max(skews(results, "spark").values(), default=None),
    )  # fmt: skip
    yield Aim(
        f"rows that the driver collects: at most {2 * MOST:,}",
        2 * MOST,
        worst(lambda one: one.work["collected"]),
    )


def markdown(
    results: Results, whole: Mapping[int, Mapping[str, Cold]], connect: Mapping[str, float], words: str
) -> str:
    """Return the section of the page about the jobs."""
    first = [one for one in results if "rates" in one.engines["spark"].best_s]
    lines = [
        f"`python -m benchmarks.pipeline {words}`".replace(" `", "`") + f" on {machine()}; "
        f"load average at the end {os.getloadavg()[0]:.1f}. Captures with planted faults. "
        "The engines found the same faults, which the benchmark checks.", "",
        *_audits(results), *_works(results), *_aims(results), *_rates(first),
        *of_commands(first[0].sort, whole, connect),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(head: str, rows: Sequence[str], texts: int = 1) -> list[str]:
    """Make a table, whose first columns are `texts` and the others numbers."""
    numbers = head.count("|") + 1 - texts
    return [f"| {head} |", f"|{'---|' * texts}{'---:|' * numbers}", *rows, ""]


def _audits(results: Results) -> list[str]:
    grown = {engine: growth(results, engine) for engine in ("spark", "duckdb")}
    rows = []
    for one in results:
        times = [f"{one.s(engine):.2f}" for engine in ENGINES]
        more = [grown[engine].get((one.sort, one.millions)) for engine in grown]
        growths = ["" if value is None else f"{value:.2f}" for value in more]
        peaks = [f"{one.engines[engine].peak_mb:.0f}" for engine in ENGINES]
        cells = [one.sort, f"{one.millions} M", f"{one.mb:.0f}", *times, f"{one.ratio:.1f}", *growths, *peaks]
        rows.append(f"| {' | '.join(cells)} |")
    head = f"envelopes | rows | files MB | {NAMES} | Spark / DuckDB | growth: Spark | DuckDB | MB: {NAMES}"
    sorts = "; ".join(f"`{sort}`: {text}" for sort, text in WORDS.items())
    return [
        "**The whole audit, warm**: seconds (best run), and peak memory of the process", "",
        *_table(head, rows),
        f"Envelopes: {sorts}. The heartbeat pauses around takeovers, so it is a smaller share of a short "
        f"capture{_shares(results)}. Growth is how much more time a row takes than in the next smaller "
        "capture: 1 is linear.", "",
    ]  # fmt: skip


def _shares(results: Results) -> str:
    shares = [f"{one.heartbeat:.0%} at {one.millions} M" for one in results if one.heartbeat]
    return f" ({', '.join(shares)})" if shares else ""


def _works(results: Results) -> list[str]:
    rows = [
        f"| {one.sort} | {one.millions} M | {one.work['jobs']} | {one.passes:.1f} "
        f"| {one.work['collected']:,} | {one.work['broadcast']:,} |"
        for one in results
    ]
    head = "envelopes | rows | jobs | passes | rows collected | rows broadcast"
    return [
        "**What Spark does for an audit**: passes are rows read over rows of the capture; rows collected came"
        " to Python, rows broadcast went to every worker.", "", *_table(head, rows),
    ]  # fmt: skip


def _aims(results: Results) -> list[str]:
    return ["**The aims**", "", *_table("aim | worst | reached", [str(aim) for aim in aims(results)])]


def _rates(results: Results) -> list[str]:
    rows = []
    for one in results:
        times = [one.s(engine, "rates") for engine in ENGINES]
        cells = [f"{one.millions} M", *(f"{time:.2f}" for time in times), f"{times[0] / times[-1]:.1f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return [
        f"**Rates of `{results[0].sort}`, warm**: seconds (best run)", "",
        *_table(f"rows | {NAMES} | Spark / DuckDB", rows, texts=0),
    ]  # fmt: skip


def of_commands(
    sort: str, whole: Mapping[int, Mapping[str, Cold]], connect: Mapping[str, float]
) -> list[str]:
    """Return the lines of the table of whole commands."""
    names = list(next(iter(whole.values())))
    rows = [f"| {name} | {' | '.join(str(one[name]) for one in whole.values())} |" for name in names]
    rows += [f"| {name} | {value:.1f} |{' |' * (len(whole) - 1)}" for name, value in connect.items()]
    return [
        f"**A command from start to end**, of `{sort}`: seconds, and peak memory of its largest process (MB)",
        "",
        *_table(f"command | {' | '.join(f'{size} M rows' for size in whole)}", rows),
    ]  # fmt: skip
