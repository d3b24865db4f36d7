"""`python -m benchmarks.catalog`: measure the catalog with a thousand services; write a section of the page.

Each way in which services live: heartbeats by UDP, heartbeats over TCP, and none, so that they are asked.
"""

import asyncio
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import sections
from benchmarks.catalog.rig import INTERVAL_S, SERVICES, Life, catalog, echo, echoed, lives, running
from benchmarks.command import Command, run_as_command
from benchmarks.report import machine, spread, table

CORE: Final = 0.10
LIVES: Final[dict[Life, str]] = {
    "udp": "heartbeats by UDP, each answered by one",
    "tcp": "heartbeats over TCP, each acknowledged",
    "ping": "no heartbeats, as the package of Hermes: a ping in each interval, each answered",
}
ECHO: Final = "echo"
TARGET: Final[Life] = "udp"

Runs = list[dict[str, float]]


def measured(repeats: int, services: int, seconds: float, tell: Callable[[object], None]) -> dict[str, Runs]:
    """Measure each way of life, and the yardstick, in turns."""
    found: dict[str, Runs] = {}
    for _ in range(repeats):
        for life in LIVES:
            with TemporaryDirectory() as directory, running(*catalog(Path(directory) / "records")) as target:
                found.setdefault(life, []).append(asyncio.run(lives(target, life, services, seconds)))
            tell(f"{life}: {found[life][-1]}")
        with running(*echo()) as target:
            found.setdefault(ECHO, []).append(asyncio.run(echoed(target, services, seconds)))
        tell(f"{ECHO}: {found[ECHO][-1]}")
    return found


def of(runs: Runs, field: str) -> list[float]:
    return [run[field] for run in runs]


def _rows(found: dict[str, Runs]) -> Sequence[Sequence[str]]:
    rows = []
    for life, words in LIVES.items():
        runs = found[life]
        over = [
            run["core"] / base["core"] for run, base in zip(runs, found[ECHO], strict=True) if base["core"]
        ]
        good = median(of(runs, "core")) < CORE and min(of(runs, "listed")) == 1
        verdict = "reached" if good else "**missed**"
        rows.append(
            (
                words,
                spread([100 * core for core in of(runs, "core")]) + " %",
                spread(over) if over else "",
                f"{median(of(runs, 'answered_per_s')):,.0f}",
                f"{min(of(runs, 'listed')):.1%}",
                f"{median(of(runs, 'mib')):.0f}",
                verdict if life == TARGET else "",
            )
        )
    return rows


TEXT = """\
Command: `{command}` (repeats: {repeats}, of {seconds:g} s each). Machine: {machine}.
{services:,} services are registered, with an interval of {interval:g} s.
The target is less than {core:.0%} of one core.

{table}"""
HEAD = ("Services", "of a core", "÷ yardstick", "answered/s", "listed", "MiB", "")


def page(found: dict[str, Runs], repeats: int, services: int, seconds: float) -> str:
    """Return the section of the page about the catalog."""
    return TEXT.format(
        command=shlex.join(["python", "-m", "benchmarks.catalog", *sys.argv[1:]]),
        repeats=repeats,
        seconds=seconds,
        machine=machine(),
        services=services,
        interval=INTERVAL_S,
        core=CORE,
        table=table(HEAD, _rows(found)),
    )


def main() -> int:
    command = Command("benchmarks.catalog", __doc__)
    command.add_seconds(10.0)
    command.add_repeat(3)
    command.add_argument("--services", type=int, default=SERVICES, help=f"registered services ({SERVICES})")
    command.add_output("the page", sections.PAGE)
    options = command.parse_args()
    found = measured(options.repeat, options.services, options.seconds, lambda line: print(line, flush=True))
    output: Path = options.output
    text = page(found, options.repeat, options.services, options.seconds)
    sections.write("catalog", "benchmarks.catalog", text, output)
    return 0


if __name__ == "__main__":
    run_as_command(main)
