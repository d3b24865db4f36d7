"""`python -m benchmarks.idle`: what a gateway with five media costs while nothing comes, and what it weighs.

Wake-ups are the voluntary context switches of all its threads. Memory is that of the gateway with two media
of benchmarks.startup: resident, and its proportional share (PSS), which counts a page of a library that
several processes share for each in part. Ends with 1 if a figure is above its limit.
Frames on the CAN buses that other programs make of multicast (UDP port 43113) wake it too.
"""

import os
import tempfile
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks import sections
from benchmarks.command import Command, run_as_command
from benchmarks.processes import memory_mib, processor_s
from benchmarks.report import machine, spread, table
from benchmarks.startup import MEDIA, gateway

WAKES: Final = 5.0
PERCENT: Final = 0.3
PSS_MIB: Final = 30.0
SETTLE_S: Final = 2.0
_PORT: Final = 25_291
FIVE: Final = (
    MEDIA
    + """\
      - multicast: {{group: 239.255.77.11, port: 25292, interface: lo, hops: 0}}
      - tcp: {{host: 127.0.0.1, port: 25293, mode: listen}}
      - udp: {{host: 127.0.0.1, port: 25294, own_port: 25295}}
        protocol: {{cannelloni: {{}}}}
"""
)


class Idle(NamedTuple):
    """The cost of a gateway while nothing comes: wake-ups a second, and the percent of a core."""

    wakes: float
    percent: float


def wakes_of(pid: int) -> int:
    """Return how often the threads of a process have waited so far."""
    return sum(map(_waits, Path(f"/proc/{pid}/task").iterdir()))


def _waits(task: Path) -> int:
    lines = (task / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


@contextmanager
def running(text: str, settle_s: float = SETTLE_S) -> Iterator[int]:
    """Run a gateway whose serial line is a pseudo-terminal. Yield its process id once it has settled."""
    ends = os.openpty()
    for end in ends:
        tty.setraw(end)
    try:
        with tempfile.TemporaryDirectory(prefix="bc-") as name:
            (Path(name) / "line").symlink_to(os.ttyname(ends[1]))
            with gateway(text, Path(name), _PORT) as (process, _):
                time.sleep(settle_s)
                yield process.pid
    finally:
        for end in ends:
            os.close(end)


def idle(pid: int, seconds: float, pause: Callable[[float], None] = time.sleep) -> Idle:
    """Measure a process for some seconds."""
    wakes, spent_s = wakes_of(pid), processor_s(pid)
    pause(seconds)
    return Idle((wakes_of(pid) - wakes) / seconds, 100 * (processor_s(pid) - spent_s) / seconds)


def page(found: list[Idle], memory: list[tuple[float, float]]) -> str:
    """Return the section of the page."""
    rss, pss = ([one[n] for one in memory] for n in (0, 1))
    rows = [
        _row(f"Five media: at most {WAKES:g} wake-ups a second", [one.wakes for one in found], WAKES),
        _row(f"Five media: at most {PERCENT:g} % of a core", [one.percent for one in found], PERCENT),
        _row(f"Two media: at most {PSS_MIB:g} MiB (PSS)", pss, PSS_MIB),
        ("Two media: resident, MiB", spread(rss), ""),
    ]
    return f"Machine: {machine()}.\n\n{table(('Target', 'Measured', ''), rows)}"


def _row(text: str, values: list[float], most: float) -> tuple[str, str, str]:
    return text, spread(values), "reached" if median(values) <= most else "**missed**"


def main() -> int:
    command = Command("benchmarks.idle", __doc__)
    command.add_seconds(30.0)
    command.add_repeat(3)
    command.add_output("the page", sections.PAGE)
    options = command.parse_args()
    found, memory = list[Idle](), list[tuple[float, float]]()
    for _ in range(options.repeat):
        with running(FIVE) as pid:
            found.append(idle(pid, options.seconds))
        with running(MEDIA) as pid:
            memory.append((memory_mib(pid), memory_mib(pid, "Pss")))
    text = page(found, memory)
    print(text)
    sections.write("idle", "benchmarks.idle", text, options.output)
    return int("missed" in text)


if __name__ == "__main__":
    run_as_command(main)
