"""`python -m benchmarks.relayed`: what passes between a line and TCP: its cost, and how late it comes.

A pseudo-terminal stands for a line of 3 Mbaud, a socket of CAN frames for a bus. A frame is written when
it is due, at a share of what the line carries, and is there when its last byte is.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.command import run_as_command
from benchmarks.plan import plan
from benchmarks.relayed.ends import End, end_of
from benchmarks.relayed.report import page
from benchmarks.relayed.systems import GATEWAYS, Form, Gateway, LineLoad, Place
from benchmarks.run import Sample, in_turn
from benchmarks.systems import BenchError, System, build, started
from tests.helpers.ports import free_port

PATIENCE_S = 40.0


def _loads() -> Iterator[LineLoad]:
    for to_tcp, words in ((True, "line to TCP"), (False, "TCP to line")):
        for percent in (10, 50, 90):
            share = percent / 100
            name = f"{'up' if to_tcp else 'down'}-{percent}"
            title = f"{words}, {percent} % of the line"
            yield LineLoad(name, f"{title}, each frame alone", share, to_tcp)
            yield LineLoad(f"{name}-ms", f"{title}, once a millisecond", share, to_tcp, 0.001)
            yield LineLoad(f"can-{name}", f"CAN FD, {title}", share, to_tcp, 0.0, 60, "can")


LOADS = tuple(_loads())


def measure(load: LineLoad, gateway: Gateway, repeat: int, seconds: float) -> Sample:
    """Measure once, on a fresh process. Errors become the sample's `trouble`, never exceptions."""
    if reason := gateway.missing():
        return Sample(load.name, gateway.name, repeat, {}, reason)
    try:
        with TemporaryDirectory(prefix="relayed-") as name, end_of(load, Path(name)) as end:
            values = _measured(load, gateway, seconds, Path(name), end)
    except (BenchError, OSError, subprocess.TimeoutExpired) as error:
        return Sample(load.name, gateway.name, repeat, {}, str(error))
    return Sample(load.name, gateway.name, repeat, values)


def _measured(
    load: LineLoad, gateway: Gateway, seconds: float, directory: Path, end: End
) -> dict[str, float]:
    spare = free_port()

    def command(port: int) -> list[str]:
        return gateway.command(Place(end.path, port, spare, directory))

    form = gateway.form(load.size)
    with started(System(f"relayed-{gateway.name}", gateway.label, gateway.wire, command, str)) as running:
        fd = end.open()
        ends = [f"{end.kind}:{fd}", f"{gateway.wire}:{running.port}"]
        return _generated(load, form, ends, running.pid, seconds, directory, fd)


def _generated(
    load: LineLoad, form: Form, ends: list[str], pid: int, seconds: float, directory: Path, fd: int
) -> dict[str, float]:
    sides = (form.line, form.tcp) if load.to_tcp else (form.tcp, form.line)
    file = directory / "frames"
    file.write_bytes(b"".join(sides[0]))
    size_out = 1 if ends[0].startswith("cn") and not load.to_tcp else len(sides[1][0])
    words = [*(ends if load.to_tcp else ends[::-1]), str(file), len(sides[0][0]), size_out]
    command = [
        str(build("relayed/load")),
        *map(str, (*words, load.share * load.full_fps(form), load.tick_s, seconds, pid)),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S + seconds, pass_fds=[fd]
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
        return measure(load, gateway, repeat, todo.seconds) if gateway.line == load.line else None

    samples: list[Sample] = in_turn(([load] for load in todo.loads), todo.systems, todo.repeats, once, _tell)
    return todo.finished(
        samples, "relayed", lambda: page(samples, todo.loads, todo.systems, *todo.circumstances())
    )


if __name__ == "__main__":
    run_as_command(main)
