"""`python -m benchmarks.tap`: measure what a tap costs the raw device, and how many frames it records.

Under each load the device's tap goes on and off ten times a second, so that the machine is the same for both.
Then, without other load, a tap is fed as fast as it accepts frames. It writes a section of
docs/performance.md.
"""

import argparse
import asyncio
import itertools
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import sections
from benchmarks.command import Command, run_as_command
from benchmarks.report import machine
from benchmarks.run import generate
from benchmarks.systems import CACHE, BenchError
from bus.hub import Hub, Pipe
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from capture.schema import Direction
from devices.child import settle
from devices.raw import RawDevice
from devices.tap.recorder import Options, Recorder
from tests.helpers.ports import free_port

LOADS = (("64 B, batched", "64", "batched"), ("1 KiB, batched", "1024", "batched"),
         ("16 to 2048 B, batched", "mixed", "batched"), ("64 B, one a write", "64", "single"))  # fmt: skip
WINDOW_S = 0.1
WARMUP_S = 0.5
_READY = b"ready\n"
DISTINCT = 100_000  # different frames that a tap is fed before they repeat
BURST = 1000  # batches fed between two readings of the clock
FEEDS = (
    ("48 B, 100 in a batch", 48, 100),
    ("48 B, each alone", 48, 1),
    ("1 KiB, 30 in a batch", 1024, 30),
)


class Window(NamedTuple):
    """A short time of the device: whether its tap was on, the messages received, seconds and CPU seconds."""

    on: bool
    messages: int
    wall_s: float
    cpu_s: float


class Run(NamedTuple):
    """The windows of one load, alternately off and on, and the frames that the tap captured and lost."""

    windows: list[Window]
    captured: int
    lost: int


def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
    return "bus device", pipe.name if pipe else "", Direction.RX


class Alternating:
    """A raw device whose tap goes on and off every `WINDOW_S`. Its writer is stopped while it is off."""

    def __init__(self, port: int, idle: bool, directory: Path) -> None:
        self.device = RawDevice([f"tcp://127.0.0.1:{port}"])
        self.recorder = Recorder("bench", "here", directory, Options(idle=idle))
        self.windows: list[Window] = []
        self.on = False

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self.device.open(loop)
        self.recorder.open(loop)
        self.recorder.watch(self.device.hub, "bus device", locate)
        while not self.recorder.progress:
            await asyncio.sleep(0.01)
        self.taps, self.device.hub.taps = self.device.hub.taps, ()
        self._write(False)
        self._mark()
        self.flip(loop)

    def _mark(self) -> None:
        received = sum(pipe.stats.received for pipe in self.device.hub.pipes)
        self.mark = received, time.monotonic(), time.process_time()

    def _write(self, on: bool) -> None:
        writer = self.recorder.writer
        if writer is not None and writer.pid is not None:
            os.kill(writer.pid, signal.SIGCONT if on else signal.SIGSTOP)

    def flip(self, loop: asyncio.AbstractEventLoop) -> None:
        before = self.mark
        self._mark()
        gained = [now - then for now, then in zip(self.mark, before, strict=True)]
        self.windows.append(Window(self.on, int(gained[0]), gained[1], gained[2]))
        self.on = not self.on
        self.device.hub.taps = self.taps if self.on else ()
        self._write(self.on)
        loop.call_later(WINDOW_S, self.flip, loop)

    def close(self) -> None:
        self._write(True)
        self.recorder.close()
        self.device.close()


async def serve(port: int, idle: bool, directory: Path) -> None:
    """Run the device until SIGTERM, then print its windows and the tap's counts."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    device = Alternating(port, idle, directory)
    await device.open()
    os.write(1, _READY)
    await stop.wait()
    print(json.dumps([device.windows, device.recorder.captured, device.recorder.lost]), flush=True)
    device.close()


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start this module as the device, wait until it is ready, and kill it at the end if it still runs."""
    command = [sys.executable, "-m", "benchmarks.tap", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != _READY:
            raise BenchError(f"{' '.join(command)} did not start")
        yield process
    finally:
        process.kill()
        process.communicate()


def measure(size: str, writes: str, idle: bool, seconds: float) -> Run:
    """Measure one device under one load."""
    directory, port = Path(tempfile.mkdtemp(prefix="tap-", dir=CACHE)), free_port()
    try:
        with started("--serve", str(port), "idle" if idle else "equal", str(directory)) as process:
            generate("throughput", port, "sp", size, 3, 0, writes, WARMUP_S, seconds, process.pid)
            process.terminate()
            windows, captured, lost = json.loads(process.communicate(timeout=60)[0])
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    run = Run([window for window in itertools.starmap(Window, windows) if window.messages], captured, lost)
    print(f"  {size} {writes} {idle=}: {losses(run)}, {captured=}, {lost=}", file=sys.stderr, flush=True)
    return run


def speed(window: Window) -> float:
    return window.messages / window.wall_s


def losses(run: Run) -> tuple[float, float, float]:
    """Return three percentages: lost throughput, half its 95 % interval, and additional CPU for a message.

    Each window with the tap is compared with the mean of its two neighbours without.
    """
    ratios, costs = [], []
    for before, window, after in zip(run.windows, run.windows[1:], run.windows[2:], strict=False):
        if window.on and not before.on and not after.on:
            ratios.append(speed(window) / ((speed(before) + speed(after)) / 2))
            off = (before.cpu_s + after.cpu_s) / (before.messages + after.messages)
            costs.append(window.cpu_s / window.messages / off)
    spread = 1.96 * 1.253 * statistics.stdev(ratios) / len(ratios) ** 0.5  # of a median
    return 100 * (1 - statistics.median(ratios)), 100 * spread, 100 * (statistics.median(costs) - 1)


async def feed(directory: Path, seconds: float, data_bytes: int, per_batch: int) -> dict[str, float]:
    """Feed a tap exactly as much as it accepts. Return the frames a second in its files, and its CPU time."""
    hub = Hub("bench")
    recorder = Recorder("bench", "here", directory, Options(idle=False, keep_bytes=1 << 40))
    recorder.open(asyncio.get_running_loop())
    recorder.watch(hub, "bus bench", locate)
    while not recorder.progress:
        await asyncio.sleep(0.01)
    batches = itertools.cycle(
        from_payloads([pack(PUB, (1, 2, n), os.urandom(data_bytes)) for n in range(per_batch)])
        for _ in range(DISTINCT // per_batch)
    )
    spent_s, batch, start_s = 0.0, next(batches), time.monotonic()
    while time.monotonic() - start_s < seconds:
        for _ in range(BURST):  # a limit, because the writer may always keep up
            if not recorder.room(len(batch.data)):
                break
            before_s = time.thread_time()
            hub.publish(batch)
            spent_s += time.thread_time() - before_s
            batch = next(batches)
        await asyncio.sleep(0.001)
    recorder.close()
    settle(60)
    took_s = time.monotonic() - start_s
    return {"kept_per_s": recorder.captured / took_s, "hot_us": 1e6 * spent_s / recorder.captured,
            "captured": recorder.captured, "lost": recorder.lost}  # fmt: skip


def fed(seconds: float, data_bytes: int, per_batch: int) -> dict[str, float]:
    """Feed a tap, and add the writer's CPU in us and the bytes on disk for each frame."""
    directory = Path(tempfile.mkdtemp(prefix="tap-", dir=CACHE))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        values = asyncio.run(feed(directory, seconds, data_bytes, per_batch))
        size = sum(path.stat().st_size for path in directory.rglob("*.parquet"))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    kept = values["captured"]
    return values | {"file_bytes": size / kept, "writer_us": 1e6 * cpu_s / kept}


def feed_all(seconds: float) -> list[tuple[str, dict[str, float]]]:
    rows = []
    for title, data_bytes, per_batch in FEEDS:
        rows.append((title, fed(seconds, data_bytes, per_batch)))
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    return rows


HEAD = "`python -m benchmarks.tap` on {machine}, {seconds:g} s a load.\n\n"
FED = "\n"
LOAD_COLUMNS = (
    "load", "M messages/s in, without a tap", "loss, `yields: true`", "CPU", "recorded",
    "loss, `yields: false`", "CPU", "recorded",
)  # fmt: skip
FED_COLUMNS = (
    "frames", "kept a second", "data path's CPU a frame", "writer's CPU a frame",
    "bytes a frame on disk", "lost",
)  # fmt: skip


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def heading(columns: tuple[str, ...]) -> str:
    return line(columns) + "|---" * len(columns) + "|\n"


def page(
    options: argparse.Namespace, loads: list[tuple[str, list[Run]]], fed: list[tuple[str, dict[str, float]]]
) -> str:
    """Return the section of the page about the tap."""
    text = HEAD.format(machine=machine(), seconds=options.seconds) + heading(LOAD_COLUMNS)
    for title, runs in loads:
        off = statistics.median(speed(window) for run in runs for window in run.windows if not window.on)
        cells = [title, f"{off / 1e6:.2f}"]
        for run in runs:
            loss, spread, cpu = losses(run)
            share = run.captured / max(1, run.captured + run.lost)
            cells += [f"{loss:+.1f} ± {spread:.1f} %", f"{cpu:+.1f} %", f"{100 * share:.0f} %"]
        text += line(cells)
    text += FED + heading(FED_COLUMNS)
    for title, values in fed:
        cells = [title, f"{values['kept_per_s']:,.0f}", f"{values['hot_us']:.2f} us"]
        cells += [f"{values['writer_us']:.2f} us", f"{values['file_bytes']:.0f}", f"{values['lost']:.0f}"]
        text += line(cells)
    return text


def main() -> int:
    command = Command("benchmarks.tap", __doc__)
    command.add_seconds(20.0)
    command.add_output("the page", sections.PAGE)
    command.add_hidden("--serve", nargs=3, metavar=("PORT", "MODE", "DIR"))
    options: Any = command.parse_args()
    if options.serve:
        port, mode, directory = options.serve
        asyncio.run(serve(int(port), mode == "idle", Path(directory)))
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    fed = feed_all(options.seconds / 4)
    loads = [
        (title, [measure(size, writes, idle, options.seconds) for idle in (True, False)])
        for title, size, writes in LOADS
    ]
    sections.write("tap", "benchmarks.tap", page(options, loads, fed), options.output)
    return 0


if __name__ == "__main__":
    run_as_command(main)
