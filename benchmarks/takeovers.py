"""`python -m benchmarks.takeovers --count 200 --seed 1`: measure takeovers under load (docs/failover.md).

Numbered frames go both ways through two redundant gateways, while processes are killed and frozen, links and
brokers go down, and partitions come and go. It counts lost and duplicated frames, and the longest wait.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import NamedTuple

from benchmarks.command import Command, run_as_command
from bus.leases.wire import LEASE_MS
from tests.rigs.takeovers.faults import FAULTS
from tests.rigs.takeovers.load import Outcome
from tests.rigs.takeovers.rig import PROTOCOLS
from tests.rigs.takeovers.trial import title, trial


class Setup(NamedTuple):
    """The medium beyond the gateways, whether frames have envelopes there, and whether both forward."""

    medium: str
    envelopes: bool
    parallel: bool = False

    @property
    def word(self) -> str:
        """The name of the setup on the command line."""
        if self.medium in PROTOCOLS:
            return self.medium
        return f"{self.medium}-{'parallel' if self.parallel else 'envelopes' if self.envelopes else 'plain'}"


SETUPS = (
    Setup("can", True),
    Setup("can", False),
    Setup("can", True, True),
    Setup("uart", True),
    Setup("uart", False),
    Setup("uart", True, True),
    Setup("raw", False),
    Setup("lines", False),
)


def percentile(values: list[float], part: float) -> float:
    """Return the nearest-rank percentile."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(part * len(ranked)))] if ranked else 0.0


def table(results: dict[str, list[Outcome]]) -> str:
    """Return a text table with a line for each setup and fault."""
    head = f"{'setup':22} {'fault':18} " + "   n   frames  lost unexpl. given up twice  echo  p50 ms  p99 ms"
    lines = [head]
    for setup, outcomes in results.items():
        for fault in FAULTS:
            some = [outcome for outcome in outcomes if outcome.fault == fault]
            if some:
                waits = [outcome.wait_ms for outcome in some]
                lines.append(
                    f"{setup:22} {fault:18} {len(some):4} {sum(o.sent for o in some):8} "
                    f"{sum(o.lost for o in some):5} {sum(o.unexplained for o in some):7} "
                    f"{sum(o.given_up for o in some):8} "
                    f"{sum(o.doubled for o in some):5} "
                    f"{sum(o.strays for o in some):5} "
                    f"{percentile(waits, 0.5):7.0f} {percentile(waits, 0.99):7.0f}"
                )
    return "\n".join(lines)


def plan(
    count: int, seed: int, kinds: Sequence[str], setups: Sequence[Setup]
) -> list[tuple[Setup, list[str]]]:
    """Return the faults in a seeded order, spread evenly over the setups."""
    chance = random.Random(seed)
    faults = [kinds[number % len(kinds)] for number in range(count)]
    chance.shuffle(faults)
    share = -(-count // len(setups))
    return [(setup, faults[n * share : (n + 1) * share]) for n, setup in enumerate(setups)]


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Run programs that never wait, with ordinary priority, beside the block."""
    words = ["chrt", "--other", "0", sys.executable, "-c", "while True: pass"]
    programs = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def run(options: argparse.Namespace, results: dict[str, list[Outcome]]) -> bool:
    """Put the outcomes into `results`, one by one. Return whether all faults came; where one hangs, its setup
    breaks off."""
    whole = True
    say = _say if options.verbose else (lambda line: None)
    setups = [setup for setup in SETUPS if not options.setup or setup.word in options.setup]
    planned = plan(options.count, options.seed, options.fault or FAULTS, setups)
    for number, (setup, faults) in enumerate(planned):
        if faults:
            lease_ms = None if options.real_time else options.lease_ms
            rest = options.seed + number, options.rate, say, lease_ms, setup.parallel
            outcomes = results[title(*setup)] = []
            try:
                await trial(setup.medium, setup.envelopes, faults, *rest, outcomes, options.settled)
            except TimeoutError as error:
                whole = False
                _say(f"{title(*setup)}: broke off after {len(outcomes)} of {len(faults)} faults: {error}")
    return whole


def main() -> int:
    parser = Command("benchmarks.takeovers", __doc__)
    parser.add_argument("--count", type=int, default=200, help="number of faults in all (200)")
    parser.add_seed()
    parser.add_argument("--rate", type=float, default=200, help="frames a second each way (200)")
    parser.add_argument("--lease-ms", type=int, default=LEASE_MS, help=f"duration of a lease ({LEASE_MS})")
    parser.add_argument(
        "--real-time",
        action="store_true",
        help="all programs with real-time priority, and the leases of that",
    )
    parser.add_argument("--hogs", type=int, default=0, help="programs that never wait, beside all that (0)")
    parser.add_argument("--settled", action="store_true", help="the first fault waits for settled gateways")
    parser.add_argument("--short", action="store_true", help="only eight faults")
    parser.add_argument(
        "--setup",
        action="append",
        default=[],
        choices=[setup.word for setup in SETUPS],
        help="only this (repeatable)",
    )
    parser.add_argument("--fault", action="append", default=[], choices=FAULTS, help="only this (repeatable)")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--verbose", action="store_true", help="print a line for each fault")
    options = parser.parse_args()
    if options.short:
        options.count = 8
    if options.real_time:  # the relays between the programs are here, and programs ask for themselves
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    results, whole = dict[str, list[Outcome]](), False
    try:
        with hogs(options.hogs):
            whole = asyncio.run(run(options, results))
    finally:  # also what came before it was ended by hand
        print(
            json.dumps({s: [asdict(o) for o in r] for s, r in results.items()})
            if options.json
            else table(results)
        )
    bad = sum(o.lost + o.doubled + o.strays + bool(o.note) for outcomes in results.values() for o in outcomes)
    return 1 if bad or not whole else 0


if __name__ == "__main__":
    run_as_command(main)
