"""A year of `buscoupler pipeline watch`, simulated: `python -m benchmarks.watch_year`.

The files of a year are put into a recorder's directory as fast as a watch takes them, while retention
deletes old days. After each simulated month, its memory, its files and the seconds that its batches took are
measured. The verdict: whether memory in the last month is within 20 % of that in the second. A year is
simulated by its files and days, not by its batches: one in five seconds would be 6 million. It needs jcmd.

The status is 1 if memory grew by more, or if rows are missing or doubled in the rates at the end.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.command import Command, run_as_command
from benchmarks.watch_year.files import DAY_H, VALUE_MOST, Year
from benchmarks.watch_year.rig import Memory, Watch, memory, size
from pipeline.analysis import watched

MONTHS: Final = 12
WITHIN: Final = 0.2
_PAUSE_S: Final = 0.1  # between batches of the watch, instead of five seconds
_MB: Final = 1e6


class Sample(NamedTuple):
    """The memory and times of a watch at the end of a month; `batches` since the start, `batches_s` of the
    month."""

    month: int
    batches: int
    memory: Memory
    checkpoint: tuple[int, int]
    output: tuple[int, int]
    scratch: tuple[int, int]
    batches_s: Sequence[float]


HEAD: Final = ("month", "batches", "heap MB", "metaspace MB", "Java MB", "Python driver MB", "workers MB",
               "checkpoint files", "MB", "output files", "MB", "scratch files", "MB", "s a batch, median",
               "most")  # fmt: skip


def line(one: Sample) -> str:
    """Return a sample as a line of the table."""
    sizes = [f"{number:,} | {size_bytes / _MB:.1f}"
             for number, size_bytes in (one.checkpoint, one.output, one.scratch)]  # fmt: skip
    its = one.memory
    memories = [f"{value / _MB:.1f}" for value in (its.heap, its.metaspace, its.java, its.driver, its.worker)]
    times = [f"{made:.2f}" for made in (median(one.batches_s), max(one.batches_s))]
    return f"| {' | '.join([str(one.month), f'{one.batches:,}', *memories, *sizes, *times])} |"


def simulate(year: Year, watch: Watch, days: int, step_h: int, keep: Path | None) -> Iterator[Sample]:
    """Put the files of a year of so many days, `step_h` hours for each batch; measure after each month."""
    month_days = days // MONTHS
    for month in range(1, MONTHS + 1):
        watch.batches_s.clear()
        for hour in range((month - 1) * month_days * DAY_H, month * month_days * DAY_H, step_h):
            before = watch.newest("tables", "offsets")
            for one in range(hour, hour + step_h):
                year.put(one)
            watch.until_planned(before)
        if month == MONTHS:
            year.end()
        watch.until_still()
        yield sample(month, watch, keep)


def sample(month: int, watch: Watch, keep: Path | None) -> Sample:
    held = memory(watch, keep / f"month-{month:02d}.txt" if keep else None)
    checkpoint = size(watch.output / "checkpoint")
    output = tuple(all_ - its for all_, its in zip(size(watch.output), checkpoint, strict=True))
    batches = watch.newest("tables", "commits") + 1
    return Sample(
        month, batches, held, checkpoint, (output[0], output[1]), size(watch.scratch), [*watch.batches_s]
    )


def counted(output: Path) -> int:
    """Count the rows in the rates of a watch, as another reader does."""
    tables = (pq.read_table(path, columns=["n"]) for path in watched.parts(output / "rates").values())
    return sum(pc.sum(table["n"]).as_py() or 0 for table in tables)


def verdict(samples: Sequence[Sample]) -> tuple[list[str], bool]:
    """Compare the last month with the second. Return lines, and whether all is within bounds."""
    early, late = samples[1].memory, samples[-1].memory
    pairs = [
        ("live heap", early.heap, late.heap),
        ("Java, heap and all", early.java, late.java),
        ("Python driver", early.driver, late.driver),
        *([("Python workers", early.worker, late.worker)] if early.worker else []),  # by URL there is none
    ]
    lines = [f"{name}: {now / _MB:.1f} MB, {now / before - 1:+.1%} of month 2" for name, before, now in pairs]
    count = samples[-1].batches - samples[1].batches
    lines.append(
        f"{count:,} batches since month 2: {(late.heap - early.heap) / count:,.0f} bytes of heap each"
    )
    return lines, all(now <= before * (1 + WITHIN) for _, before, now in pairs)


def main() -> int:
    parser = Command("benchmarks.watch_year", __doc__)
    parser.add_argument("--days", type=int, default=360, help="of the year, 12 months of equal length (360)")
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--rows", type=int, default=60, help="of each hourly file (60)")
    parser.add_argument("--step-h", type=int, default=12, help="hours of files for each batch (12)")
    parser.add_argument("--keep-days", type=int, default=30, help="that retention keeps (30)")
    parser.add_argument("--by-url", action="store_true", help="follow it as Spark follows an object store")
    parser.add_output("a new directory for what is in the heap each month, and the watch's log")
    options = parser.parse_args()
    if shutil.which("jcmd") is None:
        parser.error("no jcmd on the PATH: it comes with a JDK")
    if options.output:
        options.output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        return run(Path(name), options.days, options.step_h, options.by_url, options.output,
                   Year(Path(name) / "root", options.gateways, options.rows, options.keep_days))  # fmt: skip


def run(directory: Path, days: int, step_h: int, by_url: bool, keep: Path | None, year: Year) -> int:
    where = f"file://{year.root}/capture" if by_url else str(year.root)
    words = [where, "--alert", f"value > {VALUE_MOST - 0.05}", "--every-s", str(_PAUSE_S)]
    samples = list[Sample]()
    print(f"| {' | '.join(HEAD)} |\n|{'---:|' * len(HEAD)}", flush=True)
    with Watch(words, directory) as watch:
        for one in simulate(year, watch, days, step_h, keep):
            samples.append(one)
            print(line(one), flush=True)
    if keep:
        shutil.copy(watch.log, keep)
    lines, is_within = verdict(samples)
    rows = counted(watch.output)
    print(f"\n{year.files:,} files of {year.put_rows:,} rows; {rows:,} in the rates", *lines, sep="\n")
    return int(not is_within or rows != year.put_rows)


if __name__ == "__main__":
    run_as_command(main)
