"""`python -m benchmarks.soak --hours 2`: two gateways as real processes for hours, under load and faults.

It has the rig of `benchmarks.takeovers`, and the faults that leave the gateways' processes alive, with quiet
times between. It prints frames, losses, and what the gateways hold at the start and the end; for each loss at
once the frames, what the gateways logged and counted, and how long the rig itself stood.
"""

import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.command import Command, run_as_command
from benchmarks.processes import memory_mib
from bus.transports.links import make_link
from tests.helpers.peers import until
from tests.rigs.takeovers.load import Load, Outcome
from tests.rigs.takeovers.rig import Rig
from tests.rigs.takeovers.stations import Station, far_link
from tests.rigs.takeovers.trial import Trial, latest_words, told

FAULTS = ("freeze", "link down", "broker down", "all brokers down", "partition")
_QUIET_S = 5.0
_WARM_S = 5.0


class Size(NamedTuple):
    """The memory and descriptors that a process holds."""

    memory_mb: float
    descriptors: int

    @classmethod
    def of(cls, process: int) -> "Size":
        return cls(memory_mib(process), len(os.listdir(f"/proc/{process}/fd")))


def sizes(rig: Rig) -> dict[str, Size]:
    """Return what the gateways hold now."""
    found = {name: rig.programs[name].process for name in ("gw-a", "gw-b")}
    return {name: Size.of(process.pid) for name, process in found.items() if process is not None}


async def soak(hours: float, seed: int, rate: float, quiet_s: float, envelopes: bool) -> list[str]:
    """Run for so long; return the lines of the report."""
    loop, chance = asyncio.get_running_loop(), random.Random(seed)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as directory:
        rig = Rig(Path(directory), "can", envelopes)
        await rig.open()
        near = Station(1, make_link(f"tcp://127.0.0.1:{rig.door}", "dial"), False)
        far = Station(2, far_link(rig), envelopes)
        load = Load(near, far, rate)
        try:
            await until(lambda: len(near.hub.pipes) == len(far.hub.pipes) == 2, what="the stations' links")
            load.start()
            await asyncio.sleep(_WARM_S)
            first, end_s = sizes(rig), loop.time() + 3600 * hours
            trial = Trial(rig, load, chance)
            while loop.time() < end_s:
                _note(rig, outcomes, await trial.run(chance.choice(FAULTS)))
                _note(rig, outcomes, await trial.rest(quiet_s))
            await load.stop()
            load.recount()
            last = sizes(rig)
        finally:
            near.close()
            far.close()
            await rig.close()
    unexplained = sum(one.unexplained for one in outcomes)
    words = [f"{unexplained} frames are lost and NOT counted"] if unexplained else []
    return [*_table(hours, outcomes), *_held(first, last), *_ledgers(rig), *words]


def _note(rig: Rig, outcomes: list[Outcome], outcome: Outcome) -> None:
    """Keep an outcome, and tell at once of what it lost."""
    outcomes.append(outcome)
    if outcome.lost:
        words = f"{outcome.fault}: lost {', '.join(outcome.missing)}{told(outcome)}"
        print(words, latest_words(rig), sep="\n", file=sys.stderr, flush=True)


def _table(hours: float, outcomes: list[Outcome]) -> list[str]:
    lines = [
        "| time | n | frames | lost | unexplained | doubled | echoed | longest wait, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in ("quiet", *FAULTS):
        some = [one for one in outcomes if one.fault == kind]
        wait_ms = max((one.wait_ms for one in some), default=0.0)
        counts = [(o.sent, o.lost, o.unexplained, o.doubled, o.strays) for o in some]
        sums = [sum(one[n] for one in counts) for n in range(5)]
        cells = [kind, len(some), *sums, f"{wait_ms:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [f"{hours:g} hours of real time:", "", *lines, ""]


def _held(first: dict[str, Size], last: dict[str, Size]) -> list[str]:
    return [
        f"{name}: {first[name].memory_mb:.1f} MB and {first[name].descriptors} descriptors at the start, "
        f"{last[name].memory_mb:.1f} MB and {last[name].descriptors} at the end"
        for name in first
    ]


def _ledgers(rig: Rig) -> list[str]:
    """Say whether offered = sent + dropped + queued for every link at every look, with a pipe or not."""
    found = {name: program.unbalanced for name, program in rig.programs.items() if program.unbalanced}
    looks = sum(program.looks for program in rig.programs.values())
    wrong = [f"{name}: does NOT balance: {', '.join(sorted(links))}" for name, links in found.items()]
    return [f"ledgers at {looks} looks: {'wrong' if wrong else 'balanced'}", *wrong]


def main() -> int:
    parser = Command("benchmarks.soak", __doc__)
    parser.add_argument("--hours", type=float, default=2.0, help="hours of real time (2)")
    parser.add_seed()
    parser.add_argument("--rate", type=float, default=50, help="frames a second each way (50)")
    parser.add_argument("--quiet-s", type=float, default=_QUIET_S, help=f"between faults ({_QUIET_S:g})")
    parser.add_argument("--plain", action="store_true", help="without envelopes")
    options = parser.parse_args()
    made = soak(options.hours, options.seed, options.rate, options.quiet_s, not options.plain)
    lines = asyncio.run(made)
    print(*lines, sep="\n")
    return int(any(" NOT " in line for line in lines))


if __name__ == "__main__":
    run_as_command(main)
