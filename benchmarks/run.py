"""The measurements: the loads, and one measurement of one system under one load."""

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, product
from typing import Any, NamedTuple, TypeVar

from benchmarks.processes import memory_mib, peak_mib
from benchmarks.systems import BenchError, Running, System, build, raise_file_limit, started

L = TypeVar("L")
S = TypeVar("S")
IDLE_PEERS = 10_000
SPARE_FILES = 200
WARMUP_S = 0.5
PATIENCE_S = 60.0


class Load(NamedTuple):
    """A load on a device. `size` is bytes, "mixed", "uniform", "roundtrip" or "idle"."""

    name: str
    title: str
    size: str
    receivers: int = 3
    stuck: int = 0
    writes: str = "batched"


class Sample(NamedTuple):
    """The result of a measurement: `values` by field name with units last, or `trouble` if it failed."""

    load: str
    system: str
    repeat: int
    values: dict[str, float]
    trouble: str = ""


SIZES = (("64B", "64", "64 B"), ("1KiB", "1024", "1 KiB"), ("mixed", "mixed", "16 to 2048 B, octaves"))
STUCK, STUCK_SIZES = "-stuck", ("64B", "1KiB")
MORE_SIZES = (("uniform", "uniform", "16 to 2048 B, uniform"), ("64KiB", "65536", "64 KiB"))


def _loads() -> Iterable[Load]:
    for name, size, words in SIZES + MORE_SIZES:
        yield Load(name, f"{words}, batched, 3 receivers", size)
        if name in STUCK_SIZES:
            yield Load(name + STUCK, f"{words}, batched, 3 receivers and one that never reads", size, stuck=1)
    for name, size, words in SIZES + MORE_SIZES:
        yield Load(f"{name}-x16", f"{words}, batched, 16 receivers", size, 16)
    for name, size, words in SIZES:
        yield Load(f"{name}-single", f"{words}, one message a write, 3 receivers", size, writes="single")
    yield Load("64B-x16-single", "64 B, one message a write, 16 receivers", "64", 16, writes="single")
    yield Load("roundtrip", "Round trip, 64 B, one message in flight", "roundtrip", 1)
    yield Load("idle", f"{IDLE_PEERS} idle peers", "idle", IDLE_PEERS)


LOADS = tuple(_loads())


def generate(*arguments: object) -> dict[str, float]:
    """Run the load generator once and return its values. Its arguments are described in load.c.

    A protocol after `tls+` goes over TLS. Raises `BenchError` with its error output if it fails,
    `TimeoutExpired` if it hangs.
    """
    words = list(map(str, arguments))
    secure = words[2].startswith("tls+")
    words[2] = words[2].removeprefix("tls+")
    command = [str(build("secure_load" if secure else "load")), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        raise BenchError(done.stderr.strip() or f"the load generator ended with {done.returncode}")
    values: dict[str, float] = json.loads(done.stdout)
    return values


def _throughput(load: Load, protocol: str, device: Running, seconds: float) -> dict[str, float]:
    what = (load.size, load.receivers, load.stuck, load.writes, min(WARMUP_S, seconds), seconds)
    values = generate("throughput", device.port, protocol, *what, device.pid)
    return values | {"peak_rss_mib": peak_mib(device.pid)}


def _roundtrip(_: Load, protocol: str, device: Running, seconds: float) -> dict[str, float]:
    return generate("roundtrip", device.port, protocol, seconds, device.pid)


def _idle(load: Load, protocol: str, device: Running, _: float) -> dict[str, float]:
    before = memory_mib(device.pid)
    command = [str(build("load")), "idle", str(device.port), protocol, str(load.receivers)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as peers:
        assert peers.stdout
        assert peers.stderr
        assert peers.stdin
        if not peers.stdout.readline().startswith(b"READY"):
            raise BenchError(peers.stderr.read().decode().strip())
        after = memory_mib(device.pid)
        peers.stdin.close()
    return {"idle_mib": after - before, "rss_mib": after}


KINDS: dict[str, Callable[[Load, str, Running, float], dict[str, float]]] = {
    "roundtrip": _roundtrip,
    "idle": _idle,
}


def measure(load: Load, system: System, repeat: int, seconds: float) -> Sample:
    """Measure once, on a fresh process. Errors become the sample's `trouble`, never exceptions."""
    if reason := system.missing():
        return Sample(load.name, system.name, repeat, {}, reason)
    try:
        raise_file_limit(load.receivers + SPARE_FILES)
        with started(system) as device:
            values = KINDS.get(load.size, _throughput)(load, system.protocol, device, seconds)
    except (BenchError, subprocess.TimeoutExpired) as error:
        return Sample(load.name, system.name, repeat, {}, str(error))
    return Sample(load.name, system.name, repeat, values)


def run(
    loads: Iterable[Load],
    systems: Sequence[System],
    repeats: int,
    seconds: float,
    tell: Callable[[Sample], Any],
) -> list[Sample]:
    """Measure every load with every system. A load with a stuck peer alternates with the same one without."""

    def once(load: Load, system: System, repeat: int) -> Sample | None:
        return None if load.size == "idle" and repeat else measure(load, system, repeat, seconds)

    groups = (list(group) for _, group in groupby(loads, lambda load: load.name.removesuffix(STUCK)))
    return in_turn(groups, systems, repeats, once, tell)


def in_turn(
    groups: Iterable[Sequence[L]],
    systems: Sequence[S],
    repeats: int,
    once: Callable[[L, S, int], Sample | None],
    tell: Callable[[Sample], Any],
) -> list[Sample]:
    """Measure each group of loads. Each repeat takes all systems in turn, so that drift affects all alike."""
    samples = []
    for together in groups:
        for repeat, load, system in product(range(repeats), together, systems):
            if sample := once(load, system, repeat):
                samples.append(sample)
                tell(sample)
    return samples
