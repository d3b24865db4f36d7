"""A long drive: what commands cost for many CAN frames, and whether memory depends on how many.

`python -m benchmarks.long_drive DIRECTORY --millions 100` writes a log of so many frames, in pieces, and
imports it by the command that users give. Memory is that of all its processes, each page once: the most until
a tenth, half and all of the log is read. `--parts 25,50,100` then asks the first files of what it wrote, so
many million frames, by each job on each engine. Each frame has four signals (`benchmarks.signals`). All that
is in the directory (10 GB for 100 M frames) stays; a log that is there is not written again.
"""

import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from benchmarks import sections, signals, trees
from benchmarks.command import Command, run_as_command
from benchmarks.field_files import make
from benchmarks.report import machine
from benchmarks.trees import Used
from capture.files import listed
from capture.frames import Frames

FORMATS: Final = {"candump": ".log", "can-pcapng": ".pcapng"}
MARKS: Final = (0.1, 0.5, 1.0)
JOBS: Final = ("signals", "values", "quality", "rates")
"""`values` are those of all signals, written as a table."""
ENGINES: Final = ("spark", "sail")
_CHUNK: Final = 1 << 17
_COMMAND: Final = (sys.executable, "-m", "buscoupler")


def frames(count: int) -> Iterator[Frames]:
    """Yield frames of a bus at a third of a millisecond each, of `benchmarks.signals`."""
    for first in range(0, count, _CHUNK):
        some = min(_CHUNK, count - first)
        identifiers, data = signals.frames(first, some)
        none = np.zeros(some, np.uint8)
        sizes, flags = np.full(some, 8, np.uint8), none.astype(np.bool_)
        times = signals.START_NS + np.arange(first, first + some) * signals.EVERY_NS
        yield Frames(times, none.astype(np.int64), flags, identifiers, sizes, none, flags, data, ["can0"])


def imported(log: Path, root: Path) -> Used:
    """Import a log, and return the cost. Its marks are parts of the log."""
    words = [*_COMMAND, "capture", "import", str(log), "--directory", str(root)]
    return trees.run(words, MARKS, lambda pid: trees.part_read(pid, log))


def first_files(root: Path, target: Path, count: int) -> None:
    """Link the first files of a capture, which have at least `count` rows."""
    from pyarrow.parquet import ParquetFile

    found = 0
    for path in listed(root / "capture"):
        if found < count:
            place = target / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                os.link(path, place)
            found += ParquetFile(path).metadata.num_rows


def asked(root: Path, job: str, engine: str, database: Path) -> Used:
    """Ask a capture, and return the cost."""
    words = {"quality": ["pipeline", "quality"], "values": ["signals"]}.get(job, [job])
    more = ["--dbc", str(database)] if words == ["signals"] else []
    with TemporaryDirectory(dir=root.parent, prefix="values-") as name:
        more += ["--output", name] if job == "values" else []
        return trees.run([*_COMMAND, *words, str(root), *more, "-q", "--engine", engine, "--no-resident"])


def measure(where: Path, options: Any) -> Iterator[str]:
    """Yield the lines of a table."""
    key, millions = options.format, options.millions
    log, root, database = where / f"drive{FORMATS[key]}", where / f"of-{key}", where / "drive.dbc"
    database.write_text(signals.source())
    if not log.exists():
        make(log, key, frames(1_000_000 * millions))
    yield "| what | M frames | M frames/s | of processor | most memory, MiB |"
    yield "|---|---:|---:|---:|---:|"
    if not root.exists():
        used = imported(log, root)
        for mark, mib in used.until.items():
            yield line(f"import of {key}", mark * millions, used if mark == 1 else None, mib)
    for part in options.parts:
        first_files(root, where / f"{key}-{part}", 1_000_000 * part)
    for job, engine, part in product(options.jobs, options.engines, options.parts):
        used = asked(where / f"{key}-{part}", job, engine, database)
        yield line(f"{job}, {engine}", part, used, used.most_mib)


def line(what: str, millions: float, used: Used | None, mib: float) -> str:
    rates = f"{millions / used.wall_s:.2f} | {millions / used.cpu_s:.2f}" if used else " | "
    return f"| {what} | {millions:g} | {rates} | {mib:.0f} |"


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


def words(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = Command("benchmarks.long_drive", __doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--millions", type=int, default=100, help="frames of the log (100)")
    parser.add_argument("--format", choices=FORMATS, default="candump", help="of the log (candump)")
    parser.add_argument("--parts", type=numbers, default=[], metavar="N,M", help="millions that jobs read")
    parser.add_argument("--jobs", type=words, default=JOBS, help=",".join(JOBS))
    parser.add_argument("--engines", type=words, default=ENGINES, help=",".join(ENGINES))
    parser.add_output("the page whose section is written")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    lines = list[str]()
    for one in measure(options.directory, options):
        print(one, flush=True)
        lines.append(one)
    if options.output:
        load = f"{machine()}; load average at the end {os.getloadavg()[1]:.1f}."
        sections.write("drive", "benchmarks.long_drive", "\n".join([load, "", *lines]), options.output)


if __name__ == "__main__":
    run_as_command(main)
