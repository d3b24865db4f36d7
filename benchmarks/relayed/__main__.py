"""`python -m benchmarks.relayed`: what passes between a serial line and TCP: its cost, and how late it comes.

A pseudo-terminal stands for a line of 3 Mbaud. A frame is written when it is due, at a share of what the line
carries, and is there when its last byte is.
"""

import json
import os
import subprocess
import sys
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.command import run_as_command
from benchmarks.plan import plan
from benchmarks.relayed.report import page
from benchmarks.relayed.systems import BAUD, GATEWAYS, Form, Gateway, LineLoad, Place
from benchmarks.run import Sample, in_turn
from benchmarks.systems import BenchError, System, build, started
from tests.helpers.ports import free_port

PATIENCE_S = 40.0


def _loads() -> Iterator[LineLoad]:
    for to_tcp, words in ((True, "line to TCP"), (False, "TCP to line")):
        for percent in (10, 50, 90):
            name = f"{'up' if to_tcp else 'down'}-{percent}"
            title = f"{words}, {percent} % of the line"
            yield LineLoad(name, f"{title}, each frame alone", percent / 100, to_tcp)
            yield LineLoad(f"{name}-ms", f"{title}, once a millisecond", percent / 100, to_tcp, 0.001)


LOADS = tuple(_loads())


@contextmanager
def terminal() -> Iterator[tuple[int, str]]:
    """Yield our end of a pseudo-terminal, and the name of the other."""
    ours, other = os.openpty()
    for end in (ours, other):
        tty.setraw(end)
    try:
        yield ours, os.ttyname(other)
    finally:
        os.close(ours)
        os.close(other)


def measure(load: LineLoad, gateway: Gateway, repeat: int, seconds: float) -> Sample:
    """Measure once, on a fresh process. Errors become the sample's `trouble`, never exceptions."""
    if reason := gateway.missing():
        return Sample(load.name, gateway.name, repeat, {}, reason)
    try:
        with TemporaryDirectory(prefix="relayed-") as name, terminal() as (end, path):
            values = _measured(load, gateway, seconds, Path(name), end, path)
    except (BenchError, OSError, subprocess.TimeoutExpired) as error:
        return Sample(load.name, gateway.name, repeat, {}, str(error))
    return Sample(load.name, gateway.name, repeat, values)


def _measured(
    load: LineLoad, gateway: Gateway, seconds: float, directory: Path, end: int, path: str
) -> dict[str, float]:
    spare = free_port()

    def command(port: int) -> list[str]:
        return gateway.command(Place(path, port, spare, directory))

    form = gateway.form(load.size)
    with started(System(f"relayed-{gateway.name}", gateway.label, gateway.wire, command, str)) as running:
        ends = [f"fd:{end}", f"{gateway.wire}:{running.port}"]
        return _generated(load, form, ends, running.pid, seconds, directory, end)


def _generated(
    load: LineLoad, form: Form, ends: list[str], pid: int, seconds: float, directory: Path, end: int
) -> dict[str, float]:
    sides = (form.line, form.tcp) if load.to_tcp else (form.tcp, form.line)
    file = directory / "frames"
    file.write_bytes(b"".join(sides[0]))
    rate = load.share * BAUD / 10 / len(form.line[0])
    words = [*(ends if load.to_tcp else ends[::-1]), str(file), len(sides[0][0]), len(sides[1][0])]
    command = [str(build("relayed/load")), *map(str, (*words, rate, load.tick_s, seconds, pid))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S + seconds, pass_fds=[end]
    )
    if done.returncode:
        raise BenchError(done.stderr.strip() or f"the load generator ended with {done.returncode}")
    values: dict[str, float] = json.loads(done.stdout)
    return values


def _tell(sample: Sample) -> None:
    text = sample.trouble or "  ".join(f"{name} {value:.4g}" for name, value in sample.values.items())
    print(f"{sample.load:8} {sample.system:11} {text}", flush=True)


def main() -> int:
    """Return the exit status: 0, 1 if our own gateway could not be measured everywhere, 2 for wrong use."""
    todo = plan("benchmarks.relayed", __doc__, GATEWAYS, LOADS, sys.argv[1:])

    def once(load: LineLoad, gateway: Gateway, repeat: int) -> Sample | None:
        return measure(load, gateway, repeat, todo.seconds)

    samples: list[Sample] = in_turn(([load] for load in todo.loads), todo.systems, todo.repeats, once, _tell)
    return todo.finished(
        samples, "relayed", lambda: page(samples, todo.loads, todo.systems, *todo.circumstances())
    )


if __name__ == "__main__":
    run_as_command(main)
