"""What a tap costs the raw device, and how many frames it keeps: `python -m benchmarks.tap`.

Under each load the device runs without and with a tap, in turn, so that both meet the same machine. Then, with
no other load, a tap is fed as fast as it takes. Writes docs/performance-tap.md.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.run import generate
from benchmarks.systems import CACHE, BenchError, free_port
from bus.batch import from_payloads
from bus.frame import PUB, pack
from bus.hub import Hub, Pipe
from devices.raw import RawDevice
from devices.tap import Options, Recorder
from devices.tap_process import settle
from pipeline.schema import Direction

PAGE = Path(__file__).parent.parent / "docs" / "performance-tap.md"
LOADS = (("64 B, batched", "64", "batched"), ("1 KiB, batched", "1024", "batched"),
         ("16 to 2048 B, batched", "mixed", "batched"), ("64 B, one a write", "64", "single"))  # fmt: skip
MODES = ("off", "on", "on, not yielding")
WARMUP_S = 0.5
_READY = b"ready\n"
DISTINCT = 100_000  # frames that a tap is fed before they come again
FEEDS = (
    ("48 B, 100 in a batch", 48, 100),
    ("48 B, each alone", 48, 1),
    ("1 KiB, 30 in a batch", 1024, 30),
)


class Run(NamedTuple):
    """Messages delivered a second, CPU of the device in us a message; what the tap took and what it lost."""

    delivered_per_s: float
    cpu_us: float
    captured: int = 0
    lost: int = 0


def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
    return "bus device", pipe.name if pipe else "", Direction.RX


async def serve(port: int, mode: str, directory: Path) -> None:
    """The raw device, with a tap or without; at SIGTERM it prints what the tap did."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    device, recorder = RawDevice([f"tcp://127.0.0.1:{port}"]), None
    device.open(loop)
    if mode != "off":
        recorder = Recorder("bench", "here", directory, Options(idle=mode == "on"))
        recorder.open(loop)
        recorder.watch(device.hub, "bus device", locate)
        while not recorder.told:
            await asyncio.sleep(0.01)
    os.write(1, _READY)
    await stop.wait()
    told = {} if recorder is None else {"captured": recorder.captured, "lost": recorder.lost}
    os.write(1, json.dumps(told).encode())
    if recorder is not None:
        recorder.close()
    device.close()


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """This module's other half, when it is ready; killed if it is still there at the end."""
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


def measure(size: str, writes: str, mode: str, seconds: float) -> Run:
    """One device under one load."""
    directory, port = Path(tempfile.mkdtemp(prefix="tap-", dir=CACHE)), free_port()
    try:
        with started("--serve", str(port), mode, str(directory)) as process:
            values = generate("throughput", port, "sp", size, 3, 0, writes, WARMUP_S, seconds, process.pid)
            process.terminate()
            told = json.loads(process.communicate(timeout=30)[0] or b"{}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Run(values["delivered_per_s"], values["cpu_us"], told.get("captured", 0), told.get("lost", 0))


def compare(size: str, writes: str, seconds: float, rounds: int) -> dict[str, list[Run]]:
    """All modes in turn, so many times."""
    runs: dict[str, list[Run]] = {mode: [] for mode in MODES}
    for number in range(rounds):
        order = MODES if number % 2 else MODES[::-1]
        for mode in order:
            runs[mode].append(measure(size, writes, mode, seconds))
            print(f"  {size} {writes} {mode}: {runs[mode][-1]}", file=sys.stderr, flush=True)
    return runs


def losses(runs: dict[str, list[Run]], mode: str) -> list[float]:
    """In percent, what `mode` has less than `off`: the best round of each, the median of the rounds' ratios;
    and how much more CPU the device takes for a message, by the medians."""
    off, on = runs["off"], runs[mode]
    best = max(run.delivered_per_s for run in on) / max(run.delivered_per_s for run in off)
    pairs = [b.delivered_per_s / a.delivered_per_s for a, b in zip(off, on, strict=True)]
    cpu = statistics.median(run.cpu_us for run in on) / statistics.median(run.cpu_us for run in off)
    return [100 * (1 - best), 100 * (1 - statistics.median(pairs)), 100 * (cpu - 1)]


async def feed(directory: Path, seconds: float, data_bytes: int, per_batch: int) -> dict[str, float]:
    """A tap that is given as much as it takes and no more: frames a second that reach the files."""
    hub = Hub("bench")
    recorder = Recorder("bench", "here", directory, Options(idle=False, keep_bytes=1 << 40))
    recorder.open(asyncio.get_running_loop())
    recorder.watch(hub, "bus bench", locate)
    while not recorder.told:
        await asyncio.sleep(0.01)
    batches = cycle(
        from_payloads([pack(PUB, (1, 2, n), os.urandom(data_bytes)) for n in range(per_batch)])
        for _ in range(DISTINCT // per_batch)
    )
    spent_s, batch, start_s = 0.0, next(batches), time.monotonic()
    while time.monotonic() - start_s < seconds:
        while recorder.room(len(batch.data) + 4096):
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
    """One feeding, with the writer's CPU in us a frame and the bytes of a frame on disk."""
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


HEAD = """\
# What a tap costs, and what it keeps

`python -m benchmarks.tap` on {cores} cores, {system}, Python {python}, {rounds} rounds of {seconds:g} s. Only ratios
within one run mean anything elsewhere; this machine had other work to do as well.

## The device under its full load
One sender, three receivers: the load generator, the device and the tap share the cores. Each mode in turn. *Best*
compares the best round of each, *median* the rounds one by one, *CPU* what the device itself spends on a message.
The tap yields (`yields: true`, the default): it writes in processor time that nobody else wants, and where there
is none it records what fits in its queue, and says how much is missing.

| load | M delivered/s without | loss: best | median | CPU | recorded | `yields: false`: best | median | CPU | recorded |
|---|---|---|---|---|---|---|---|---|---|
"""
FED = """
## The tap given all that it takes
A hub in one process, the writer in its own, nothing else of ours. Frames with 3 tokens; data is noise, which does
not compress. A core that has nothing else to do keeps 1,000,000 / (writer's CPU in us) frames a second.

| frames | kept a second | data path's CPU a frame | writer's CPU a frame | bytes a frame on disk | lost |
|---|---|---|---|---|---|
"""


def page(
    options: argparse.Namespace,
    compared: list[tuple[str, dict[str, list[Run]]]],
    fed: list[tuple[str, dict[str, float]]],
) -> str:
    """docs/performance-tap.md."""
    text = HEAD.format(
        cores=os.cpu_count(), system=platform.system(), python=platform.python_version(),
        rounds=options.rounds, seconds=options.seconds,
    )  # fmt: skip
    for title, runs in compared:
        cells = [title, f"{max(run.delivered_per_s for run in runs['off']) / 1e6:.1f}"]
        for mode in MODES[1:]:
            shares = [run.captured / max(1, run.captured + run.lost) for run in runs[mode]]
            cells += [f"{value:+.1f} %" for value in losses(runs, mode)]
            cells.append(f"{100 * statistics.median(shares):.0f} %")
        text += f"| {' | '.join(cells)} |\n"
    text += FED
    for title, values in fed:
        text += (
            f"| {title} | {values['kept_per_s']:,.0f} | {values['hot_us']:.2f} us | {values['writer_us']:.2f} us "
            f"| {values['file_bytes']:.0f} | {values['lost']:.0f} |\n"
        )
    return text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tap", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--serve", nargs=3, metavar=("PORT", "MODE", "DIR"), help=argparse.SUPPRESS)
    options: Any = parser.parse_args(arguments)
    if options.serve:
        port, mode, directory = options.serve
        asyncio.run(serve(int(port), mode, Path(directory)))
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    taken = feed_all(4 * options.seconds)
    compared = [(title, compare(size, w, options.seconds, options.rounds)) for title, size, w in LOADS]
    options.output.write_text(page(options, compared, taken))
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
