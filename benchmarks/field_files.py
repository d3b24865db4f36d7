"""Files of the field into Parquet: frames a second of the wall and of the processor, and the memory.

`python -m benchmarks.field_files [--frames N,M] [--format KEY ...]` makes logs of N and M frames, 2 ms apart
in the mean, on two channels, and imports each in a process of its own. `--output docs/performance.md` writes
a section of that page.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np

from benchmarks import sections
from benchmarks.report import machine
from bus.wire.identifier import EXTENDED
from capture.formats.table import BY_KEY
from capture.frames import Frames

DEFAULT: Final = ("candump", "can-pcapng", "pcap", "asc", "blf", "trc", "csv", "mcap")
_CHUNK: Final = 1 << 16
_BEGAN_NS: Final = 1_700_000_000 * 10**9


class Cost(NamedTuple):
    """The cost of an import: frames a second of the wall and of the processor; the most memory, in MiB."""

    wall: float
    cpu: float
    memory_mib: float


def frames(count: int, seed: int = 1) -> Iterator[Frames]:
    """Yield frames as a car has them: 8 bytes mostly, standard identifiers mostly."""
    random = np.random.default_rng(seed)
    when_ns = _BEGAN_NS
    for start in range(0, count, _CHUNK):
        some = min(_CHUNK, count - start)
        times = when_ns + np.cumsum(random.integers(0, 4000, some, np.int64) * 1000)
        when_ns = int(times[-1])
        ids = random.integers(0, 1 << 11, some, np.uint32)
        ids[random.random(some) < 0.2] |= np.uint32(EXTENDED)
        sizes = np.where(random.random(some) < 0.8, 8, random.integers(0, 8, some)).astype(np.uint8)
        data = random.integers(0, 256, (some, 8), np.uint8)
        data[np.arange(8) >= sizes[:, None]] = 0
        none = np.zeros(some, np.uint8)
        flags = none.astype(np.bool_)
        channel = random.integers(0, 2, some, np.int64)
        yield Frames(times, channel, flags, ids, sizes, none, flags, data, ["can0", "can1"])


def make(path: Path, key: str, parts: Iterable[Frames]) -> None:
    """Write frames as a file of a format."""
    with path.open("wb") as file:
        output = BY_KEY[key].output(file, {})
        for part in parts:
            output.add(part)
        output.close()


def measured(path: Path, directory: Path) -> Cost:
    """Import a file in a process of its own, and return what that cost."""
    words = [sys.executable, "-m", "benchmarks.field_files", "--import", str(path), str(directory)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout))


def imported_here(path: Path, directory: Path) -> Cost:
    """Import a file in this process, and return what that cost."""
    from capture.formats.imports import imported

    began_s, busy_s = time.perf_counter(), time.process_time()
    done = imported(path, directory, "car")
    assert done.told == [], done.told
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - busy_s
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(done.written / wall_s, done.written / cpu_s, memory_mib)


def table(keys: Sequence[str], counts: Sequence[int]) -> Iterator[str]:
    """Measure each format with each number of frames, and yield the lines of a table."""
    yield "| format | frames | frames/s | frames/s of processor | most memory, MiB | bytes a frame |"
    yield "|---|---:|---:|---:|---:|---:|"
    with TemporaryDirectory() as place:
        for key, count in product(keys, counts):
            path = Path(place, f"log{next(iter(BY_KEY[key].suffixes), '.pcapng')}")
            make(path, key, frames(count))
            cost, size = measured(path, Path(place, f"{key}-{count}")), path.stat().st_size / count
            rates = f"{cost.wall:,.0f} | {cost.cpu:,.0f} | {cost.memory_mib:.0f}"
            yield f"| {key} | {count:,} | {rates} | {size:.0f} |"
            path.unlink()


def numbers(text: str) -> list[int]:
    return list(map(int, text.split(",")))


def main() -> None:
    """Measure each format, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--frames", type=numbers, default=[1_000_000], metavar="N,M")
    parser.add_argument("--format", action="append", choices=DEFAULT)
    parser.add_argument("--output", type=Path, metavar="PATH", help="the page whose section is written")
    parser.add_argument("--import", nargs=2, type=Path, dest="paths", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.paths:
        print(json.dumps(imported_here(*options.paths)._asdict()))
        return
    lines = list[str]()
    for line in table(options.format or DEFAULT, options.frames):
        print(line, flush=True)
        lines.append(line)
    if options.output:
        sections.write("files", "benchmarks.field_files", "\n".join([machine(), "", *lines]), options.output)


if __name__ == "__main__":
    main()
