"""`python -m benchmarks.bridges`: measure bridges that change each frame; write the section of the page."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from appliance.status.client import ask, status_socket
from benchmarks.bridges.report import page
from benchmarks.bridges.systems import (
    OUT_OF_SCOPE,
    SYSTEMS,
    BridgeLoad,
    BridgeSystem,
    Ports,
    generator,
    pinned,
)
from benchmarks.command import run_as_command
from benchmarks.plan import plan
from benchmarks.run import Sample, in_turn
from benchmarks.systems import BenchError, System, started
from tests.helpers.ports import free_port

MARGIN_S = 40.0

LOADS = (
    BridgeLoad("trunk", "TCP to a TCP trunk, 64 B, a tenth outside of the prefix", "trunk"),
    BridgeLoad(
        "trunk-deny",
        "The same, the tenth denied by five patterns under the prefix",
        "trunk",
        refused="inside",
    ),
    BridgeLoad("trunk-single", "The same as the first, one frame a write", "trunk", writes="single"),
    BridgeLoad("trunk-mixed", "TCP to a TCP trunk, 16 to 2048 B (octaves)", "trunk", "mixed"),
    BridgeLoad(
        "trunk-bus", "TCP to the trunk side of a second bus (two bridges in a row), 64 B", "trunk-bus"
    ),
    BridgeLoad("multicast", "TCP to multicast as a trunk, 64 B, a tenth outside of the prefix", "multicast"),
    BridgeLoad(
        "multicast-deny", "The same, the tenth denied under the prefix", "multicast", refused="inside"
    ),
    BridgeLoad("multicast-plain", "TCP to multicast without envelopes, 64 B", "multicast-plain"),
)


@contextmanager
def generating(command: list[str], seconds: float) -> Iterator[dict[str, float]]:
    """Run a load generator and yield its values; it stays connected until the block ends.

    Raises `BenchError` with its error output if it fails or prints nothing in time.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    alarm = _after(seconds + MARGIN_S, process.kill)
    try:
        assert process.stdout
        line = process.stdout.readline()
        alarm.cancel()
        if not line:
            raise BenchError(process.communicate()[1].strip() or "the load generator printed nothing")
        yield json.loads(line)
    finally:
        alarm.cancel()
        process.communicate("")


def _after(seconds: float, do: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()
    return timer


def ledger(directory: Path) -> dict[str, float]:
    """Return the running appliance's ledger over all pipes: unbalanced ones, and lost messages by reason."""
    found: dict[str, float] = {"unbalanced": 0}
    for hub in ask(directory / status_socket(()))["hubs"]:
        for pipe in hub["pipes"]:
            found["unbalanced"] += pipe["balance"] != 0
            for kind in ("dropped", "rejected"):
                for reason, count in pipe[kind].items():
                    key = f"{kind} {reason}"
                    found[key] = found.get(key, 0) + count
    return found


def measure(load: BridgeLoad, system: BridgeSystem, repeat: int, seconds: float) -> Sample:
    """Measure once, on fresh processes. Errors become the sample's `trouble`, never exceptions."""
    if reason := system.unfit(load):
        return Sample(load.name, system.name, repeat, {}, reason)
    try:
        with TemporaryDirectory(prefix="bridge-bench-") as directory:
            return Sample(load.name, system.name, repeat, _measured(load, system, seconds, Path(directory)))
    except (BenchError, OSError) as error:
        return Sample(load.name, system.name, repeat, {}, str(error))


def _measured(load: BridgeLoad, system: BridgeSystem, seconds: float, directory: Path) -> dict[str, float]:
    outlet = free_port()

    def command(intake: int) -> list[str]:
        return pinned(0) + system.command(load, Ports(intake, outlet, directory))

    with started(System(f"bridge-{system.name}", system.label, system.protocol, command, str)) as running:
        ports = Ports(running.port, outlet)
        words = pinned(1) + generator(load, system, ports, seconds, running.pid)
        with generating(words, seconds) as values:
            return values | (ledger(directory) if system.name == "ours" else {})


def run(
    loads: Sequence[BridgeLoad],
    systems: Sequence[BridgeSystem],
    repeats: int,
    seconds: float,
    tell: Callable[[Sample], Any],
) -> list[Sample]:
    """Measure every load with every system that supports it."""

    def once(load: BridgeLoad, system: BridgeSystem, repeat: int) -> Sample | None:
        sample = measure(load, system, repeat, seconds)
        return None if sample.trouble == OUT_OF_SCOPE else sample

    return in_turn(([load] for load in loads), systems, repeats, once, tell)


def _tell(sample: Sample) -> None:
    text = sample.trouble or "  ".join(
        f"{name} {value:.4g}" for name, value in sample.values.items() if value
    )
    print(f"{sample.load:16} {sample.system:6} {text}", flush=True)


def main() -> int:
    """Return the exit status: 0, 1 if our own bridge could not be measured everywhere, 2 for wrong use."""
    todo = plan("benchmarks.bridges", __doc__, SYSTEMS, LOADS, sys.argv[1:])
    samples = run(todo.loads, todo.systems, todo.repeats, todo.seconds, _tell)
    return todo.finished(
        samples, "bridges", lambda: page(samples, todo.loads, todo.systems, *todo.circumstances())
    )


if __name__ == "__main__":
    run_as_command(main)
