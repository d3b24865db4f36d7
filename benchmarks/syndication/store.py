"""A measurement of what it costs the loop of a syndication broker to store metadata.

    python -m benchmarks.syndication.store

An event loop takes publications that change the metadata of 1000 producers in turn, 100 at a time, at 10,000
a second, without the store and with it, in turn. One standing query names the key. It prints the processor's
time of the loop's thread and of the process for each change, how late the loop was, and how many entries were
written: medians of the rounds. The times of the process have those of the store's thread in them. The file is
in the directory for temporary files, or where --directory says.
"""

import asyncio
import tempfile
import time
from asyncio import AbstractEventLoop
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from benchmarks.command import Command
from devices.syndication.bounds import Bounds
from devices.syndication.query import parse
from devices.syndication.state.book import Book
from devices.syndication.storage.memory import Memory
from devices.syndication.wire.messages import Publication

PRODUCERS: Final = 1000
BURST: Final = 100
ROUNDS: Final = 5
_STABLE: Final = {"Room": "410", "Type": "Temperature Sensor", "Unit": "C", "Tags": ["zone", "floor-4"]}


class Cost(NamedTuple):
    """Of one change, in microseconds: the loop's thread, and the process. `late_us`: 99th percentile."""

    thread_us: float
    process_us: float
    late_us: float
    stored: int


async def measured(path: Path | None, rate: int, seconds: float) -> Cost:
    """Change metadata at a rate, for some seconds."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    memory = Memory(path, Bounds(), "benchmark", print)
    book: Book[str] = Book(Bounds(), memory)
    memory.open(loop, book, list, ready.set)
    await ready.wait()
    book.subscribe("s", "", parse("has Level and Room = '410'"))
    _change(book, range(PRODUCERS), 0)
    cost = await _run(loop, book, rate, seconds)
    memory.close()
    return cost._replace(stored=memory.counts.get("stored", 0))


def _change(book: Book[str], numbers: range, level: int) -> None:
    for number in numbers:
        metadata = {"Level": level} if level else {**_STABLE, "Level": level}
        book.publish("p", "", Publication(f"producer {number % PRODUCERS}", metadata, b"\1"))


async def _run(loop: AbstractEventLoop, book: Book[str], rate: int, seconds: float) -> Cost:
    bursts, late = round(seconds * rate / BURST), list[float]()
    begin_s = loop.time()
    process_ns, thread_ns = time.process_time_ns(), time.thread_time_ns()
    for burst in range(bursts):
        due_s = begin_s + burst * BURST / rate
        await asyncio.sleep(max(0.0, due_s - loop.time()))
        late.append(loop.time() - due_s)
        _change(book, range(burst * BURST, (burst + 1) * BURST), burst + 1)
    changes = bursts * BURST
    thread_us = (time.thread_time_ns() - thread_ns) / 1000 / changes
    process_us = (time.process_time_ns() - process_ns) / 1000 / changes
    return Cost(thread_us, process_us, 1e6 * quantiles(late, n=100)[-1], 0)


def report(directory: Path, rate: int, seconds: float) -> str:
    """Return a table of both, and the ratio."""
    costs: dict[str, list[Cost]] = {"off": [], "on": []}
    for number in range(ROUNDS):
        for store, found in costs.items():
            path = directory / f"{number}.db" if store == "on" else None
            found.append(asyncio.run(measured(path, rate, seconds)))
    middle = {store: Cost(*map(median, zip(*found, strict=True))) for store, found in costs.items()}
    rows = [
        f"| {store} | {c.thread_us:.2f} | {c.process_us:.2f} | {c.late_us:,.0f} | {c.stored:,.0f} |"
        for store, c in middle.items()
    ]
    head = "| store | us of the loop | us of the process | us late, p99 | stored |\n|---|---|---|---|---|"
    ratio = middle["on"].thread_us / middle["off"].thread_us
    return "\n".join([head, *rows, f"\nThe loop with the store takes {ratio:.2f} times as long."])


def main() -> None:
    """Print the table."""
    options = Command("benchmarks.syndication.store", __doc__)
    options.add_seconds(3.0)
    options.add_argument("--rate", type=int, default=10_000, help="changes of metadata a second (10000)")
    options.add_argument("--directory", type=Path, help="where the file is")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        print(report(Path(directory), given.rate, given.seconds))


if __name__ == "__main__":
    main()
