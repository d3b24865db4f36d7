"""Our journal beside SQLite (WAL, synchronous FULL) and LMDB: `python -m benchmarks.journals`.

Messages of 64 bytes are appended, 256 records to a commit that is on disk when it returns, and read back. A
record is one message, or 4 KiB of messages. All keep the records that a durable trunk sends, with their
checksums, which are looked at when they are read. Figures are messages a second and microseconds of the
processor for each; ratios to our files are taken in turns that follow each other. LMDB is measured if its
package is installed.
"""

import importlib.util
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from benchmarks.command import Command, run_as_command
from bus.journal.journal import Group, Journal
from bus.journal.record import encode, peek
from bus.wire.batch import from_payloads

SIZE, TOGETHER, EACH = 64, 256, 56
LOADS = {"one message a record": 1, "4 KiB a record": EACH}


class Store(Protocol):
    """A system that keeps records: `commit` returns when they are on disk, `read` yields them in order."""

    def commit(self, records: Sequence[bytes]) -> None: ...

    def read(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class Files:
    """Our journal. Groups of different times are records of their own."""

    def __init__(self, place: Path) -> None:
        self._journal = Journal(str(place), ("bench", "a", "b"), 1 << 40, consumers=["c"])
        self._journal.open()

    def commit(self, records: Sequence[bytes]) -> None:
        self._journal.append([Group(data, time_ms) for time_ms, data in enumerate(records)])

    def read(self) -> Iterator[bytes]:
        number = 1
        while number < self._journal.next:
            found = self._journal.read(number, 256 * 1024)
            yield from (record.messages for record in found.records)
            number = found.following

    def close(self) -> None:
        self._journal.close()


class Sqlite:
    """SQLite: a row for each record."""

    def __init__(self, place: Path) -> None:
        self._base = sqlite3.connect(place / "journal.db", isolation_level=None)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=FULL")
        self._base.execute("CREATE TABLE records (number INTEGER PRIMARY KEY, data BLOB)")
        self._number = 1

    def commit(self, records: Sequence[bytes]) -> None:
        self._base.execute("BEGIN")
        for time_ms, data in enumerate(records):
            (record,) = encode(data, self._number, time_ms)
            self._number += record.count
            self._base.execute("INSERT INTO records VALUES (?, ?)", (record.number, record.encoded))
        self._base.execute("COMMIT")

    def read(self) -> Iterator[bytes]:
        for row in self._base.execute("SELECT data FROM records ORDER BY number"):
            yield peek(row[0]).messages

    def close(self) -> None:
        self._base.close()


class Lmdb:
    """LMDB: a key for each record, appended."""

    def __init__(self, place: Path) -> None:
        self._base: Any = importlib.import_module("lmdb").open(str(place), map_size=1 << 33)
        self._number = 1

    def commit(self, records: Sequence[bytes]) -> None:
        with self._base.begin(write=True) as transaction:
            for time_ms, data in enumerate(records):
                (record,) = encode(data, self._number, time_ms)
                self._number += record.count
                transaction.put(record.number.to_bytes(8), record.encoded, append=True)

    def read(self) -> Iterator[bytes]:
        with self._base.begin() as transaction:
            yield from (peek(data).messages for _, data in transaction.cursor())

    def close(self) -> None:
        self._base.close()


SYSTEMS: dict[str, Callable[[Path], Store]] = {"files": Files, "SQLite": Sqlite, "LMDB": Lmdb}


class Sample(NamedTuple):
    """Messages a second, appended and read, and microseconds of the processor for each."""

    append_per_s: float
    append_us: float
    read_per_s: float
    read_us: float


def sample(make: Callable[[Path], Store], place: Path, each: int, commits: int) -> Sample:
    """Measure a system once, in an empty directory."""
    records = [from_payloads([bytes(SIZE)] * each).keep()] * TOGETHER
    total = each * TOGETHER * commits
    store = make(place)

    def append() -> None:
        for _ in range(commits):
            store.commit(records)

    def read() -> None:
        count = sum(1 for _ in store.read())
        assert count == TOGETHER * commits

    try:
        return Sample(*_timed(append, total), *_timed(read, total))
    finally:
        store.close()


def _timed(work: Callable[[], None], total: int) -> tuple[float, float]:
    began_s, used_s = time.perf_counter(), time.process_time()
    work()
    return total / (time.perf_counter() - began_s), 1e6 * (time.process_time() - used_s) / total


def available() -> list[str]:
    """Return the names of the systems that are installed."""
    return [name for name in SYSTEMS if name != "LMDB" or importlib.util.find_spec("lmdb")]


def measure(directory: Path, repeat: int, commits: int) -> dict[str, dict[str, list[Sample]]]:
    """Measure all systems under all loads, in turns."""
    found: dict[str, dict[str, list[Sample]]] = {}
    for load, each in LOADS.items():
        found[load] = {name: [] for name in available()}
        for _ in range(repeat):
            for name, samples in found[load].items():
                with tempfile.TemporaryDirectory(dir=directory) as place:
                    samples.append(sample(SYSTEMS[name], Path(place), each, max(1, commits // each)))
    return found


def lines(load: str, samples: dict[str, list[Sample]]) -> Iterator[str]:
    """Yield what was found under a load, a line for each system: medians, and ratios to our files."""
    for name, own in samples.items():
        middle = Sample(*(median(column) for column in zip(*own, strict=True)))
        pairs = list(zip(own, samples["files"], strict=True))
        ratios = [median(one[at] / ours[at] for one, ours in pairs) for at in range(len(Sample._fields))]
        figures = " ".join(
            f"{field} {value:,.2f} ({ratio:.2f})"
            for field, value, ratio in zip(Sample._fields, middle, ratios, strict=True)
        )
        yield f"{load:21} {name:7} {figures}"


def main() -> None:
    parser = Command("benchmarks.journals", __doc__)
    parser.add_argument("--directory", type=Path, default=Path(), help="a directory on the disk (here)")
    parser.add_argument("--commits", type=int, default=400, help="commits of 256 records of a message (400)")
    parser.add_repeat(5)
    options = parser.parse_args()
    for load, samples in measure(options.directory, options.repeat, options.commits).items():
        print(*lines(load, samples), sep="\n")


if __name__ == "__main__":
    run_as_command(main)
