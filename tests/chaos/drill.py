"""`python -m tests.chaos.drill --count 1000`: takeovers in virtual time, and what was lost and doubled."""

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.chaos import clock

if TYPE_CHECKING:
    from tests.chaos.takeovers import Outcome

EACH = 22
"""Faults on one plant, one after another."""


def table(outcomes: Sequence["Outcome"]) -> list[str]:
    """Return a line for each kind of fault and bridge, in Markdown."""
    lines = [
        "| fault | bridge | n | frames | lost | doubled | echoed | longest wait, ms: p50 | p99 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    names = dict.fromkeys((one.kind, one.bridge) for one in sorted(outcomes, key=lambda one: one.bridge))
    for kind, bridge in names:
        some = [one for one in outcomes if (one.kind, one.bridge) == (kind, bridge)]
        waits = sorted(one.wait_ms for one in some)
        words = "envelopes" if bridge == "motor" else "plain"
        lines.append(
            f"| {kind} | {words} | {len(some)} | {sum(o.sent for o in some)} | {sum(o.lost for o in some)} | "
            f"{sum(o.doubled for o in some)} | {sum(o.echoed for o in some)} | "
            f"{waits[len(waits) // 2]:.0f} | {waits[min(len(waits) - 1, int(0.99 * len(waits)))]:.0f} |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.drill", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="number of faults (1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=40, help="frames a second each way on each bridge (40)")
    parser.add_argument("--fault", action="append", default=[], help="only this kind (repeatable)")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON, a line for each")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets have the same order in each run
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.chaos.drill", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    clock.install()
    # Now, because modules take the functions of `time` as they find them.
    from tests.chaos.takeovers import KINDS, drills

    logging.basicConfig(level=logging.CRITICAL)
    kinds = tuple(options.fault) or KINDS
    outcomes = []
    for some in drills(options.count, options.seed, kinds, EACH, options.rate):
        outcomes += some
        if options.json:
            print(*(json.dumps(one.told()) for one in some), sep="\n", flush=True)
        else:
            print(f"{len(outcomes) // 2} faults", file=sys.stderr, flush=True)
    if not options.json:
        print(*table(outcomes), sep="\n")
    return 1 if any(one.lost or one.doubled or one.echoed for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
