"""`python -m benchmarks.tmq.side --frames 10000 --count 40`: measure the TMQ side of a bridge.

Numbered frames go both ways between a program on a TMQ client of 2015 and CAN, a serial line or a bus,
through two redundant gateways: first without a fault, then while processes are killed and frozen, and links
and brokers go down. It counts lost, doubled and echoed frames, and the longest wait (docs/tmq.md).
"""

import argparse
import asyncio
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.command import Command, run_as_command
from benchmarks.takeovers import percentile
from bus.leases.wire import LEASE_MS
from tests.rigs.takeovers.faults import FAULTS
from tests.rigs.tmq.program import ENVIRONMENT
from tests.rigs.tmq.trial import NONE, Result, title, trial

USUAL = tuple(fault for fault in FAULTS if fault != "all brokers down")
"""Without the one after which nobody remembers the clients of 2015."""
SETUPS = (("can", False, True), ("can", True, False), ("uart", False, False), ("bus", False, True))
"""Medium, envelopes there, and whether the TMQ side names its patterns."""


def table(results: dict[str, Result]) -> str:
    """Return a text table with a line for each setup and fault."""
    lines = [
        f"{'setup':22} {'fault':18}    n   frames  lost unexpl. twice  echo  p50 ms  worst ms",
    ]
    for setup, result in results.items():
        for fault in (NONE, *FAULTS):
            some = [outcome for outcome in result.outcomes if outcome.fault == fault]
            if some:
                waits = [outcome.wait_ms for outcome in some]
                lines.append(
                    f"{setup:22} {fault:18} {len(some):4} {sum(o.sent for o in some):8} "
                    f"{sum(o.lost for o in some):5} {sum(o.unexplained for o in some):7} "
                    f"{sum(o.doubled for o in some):5} "
                    f"{sum(o.strays for o in some):5} {percentile(waits, 0.5):7.0f} {max(waits):9.0f}"
                )
        lines.append(
            f"{setup:22} sends that failed: {result.failed}, for {result.blocked_ms:.0f} ms at most; frames "
            f"that came again because of that: {result.again}"
        )
        copies = [copy for outcome in result.outcomes for copy in outcome.copies[:20]]
        lines += [f"{setup:22} {line}" for line in (*copies, *result.trouble, *result.ledgers)]
    return "\n".join(lines)


def bad(result: Result) -> bool:
    """Return whether something was lost, doubled or echoed, or a program or a ledger had a fault."""
    wrong = any(o.lost or o.doubled or o.strays or o.note for o in result.outcomes)
    return wrong or bool(result.trouble) or any("NOT" in line for line in result.ledgers)


def plan(count: int, seed: int, kinds: Sequence[str], setups: Sequence[str]) -> list[list[str]]:
    """Return the faults for each setup, in a seeded order."""
    chance = random.Random(seed)
    faults = [kinds[number % len(kinds)] for number in range(count)]
    chance.shuffle(faults)
    return [faults[number :: len(setups)] for number in range(len(setups))]


async def run(options: argparse.Namespace) -> dict[str, Result]:
    results = {}
    chosen = [setup for setup in SETUPS if not options.setup or title(*setup) in options.setup]
    faults = plan(options.count, options.seed, options.fault or USUAL, [title(*setup) for setup in chosen])
    for number, setup in enumerate(chosen):
        results[title(*setup)] = await trial(
            setup,
            options.frames,
            faults[number],
            options.seed + number,
            options.rate,
            _say,
            options.lease_ms,
            os.environ.get(ENVIRONMENT, ""),
        )
    return results


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = Command("benchmarks.tmq.side", __doc__)
    parser.add_argument("--frames", type=int, default=5000, help="frames each way without a fault (5000)")
    parser.add_argument("--count", type=int, default=0, help="number of faults after that, in all (0)")
    parser.add_seed()
    parser.add_argument("--rate", type=float, default=100, help="frames a second each way (100)")
    parser.add_argument("--lease-ms", type=int, default=LEASE_MS, help=f"duration of a lease ({LEASE_MS})")
    names = [title(*setup) for setup in SETUPS]
    parser.add_argument("--setup", action="append", default=[], choices=names, help="only this (repeatable)")
    parser.add_argument("--fault", action="append", default=[], choices=FAULTS, help="only this (repeatable)")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    options = parser.parse_args()
    place = os.environ.get(ENVIRONMENT)
    print(f"clients of 2015: {f'the reference in {place}' if place else 'those of the tests'}", flush=True)
    results = asyncio.run(run(options))
    shown = {
        name: {**result._asdict(), "outcomes": [asdict(o) for o in result.outcomes]}
        for name, result in results.items()
    }
    print(json.dumps(shown) if options.json else table(results))
    return int(any(bad(result) for result in results.values()))


if __name__ == "__main__":
    run_as_command(main)
