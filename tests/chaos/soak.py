"""`python -m tests.chaos.soak --hours 24`: one plant for hours of virtual time, with faults now and then.

It counts frames, faults, what was lost and doubled, and looks at memory and descriptors (docs/testing.md).
"""

import argparse
import gc
import logging
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.chaos import clock

if TYPE_CHECKING:
    from tests.chaos.trial import Trial

_real = time.perf_counter
_QUIET_S = 240.0  # between two storms, on average
_PAUSE_S = 2.0  # between two frames of one station, on average
_KEPT_S = 60.0


class Size(NamedTuple):
    """What the whole process holds, with all gateways, wires and stations in it."""

    memory_mb: float
    descriptors: int

    @classmethod
    def now(cls) -> "Size":
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir("/proc/self/fd")))


class Soak:
    """Quiet and storms in turn. Only frames of quiet times must arrive."""

    def __init__(self, trial: "Trial", seed: int) -> None:
        self.trial, self.chance = trial, Random(f"soak {seed}")
        self.quiet = self.lost = self.doubled = self.faults = 0
        self.silent_s = 0.0
        self.failures: list[str] = []

    def run(self, hours: float) -> tuple[Size, Size]:
        """Run for so long. Return the sizes after the start and at the end, both in a quiet time."""
        trial, end_s = self.trial, clock.clock.now_s + 3600 * hours
        with trial.plant.network.installed():
            trial.start()
            self._settle()
            trial.go(30.0)
            first = Size.now()
            while clock.clock.now_s < end_s:
                self._rest(self.chance.expovariate(1 / _QUIET_S) + 2)
                self._storm()
                self._settle()
            self._rest(30.0)
            last = Size.now()
            trial.finish()
        self.failures += trial.verdict.failures
        return first, last

    def _rest(self, time_s: float) -> None:
        """Let quiet time pass: every frame of it arrives once."""
        trial = self.trial
        trial.said.clear()
        trial.go(time_s)
        said = list(trial.said)
        trial.go(1.0)
        found = trial.crossed(said)
        self.quiet += len(said)
        self.lost += found.lost
        self.doubled += found.doubled
        if not found.perfect:
            self.failures.append(f"quiet: {found.lost} lost and {found.doubled} doubled, as {found.first}")
        trial.forget(_KEPT_S)

    def _storm(self) -> None:
        from tests.chaos.faults import draw

        faults = draw(self.chance.getrandbits(32))[:3]
        self.faults += len(faults)
        self.trial.storm(faults)

    def _settle(self) -> None:
        from tests.chaos.trial import BOUND_S

        silent_s = self.trial.until_calm(BOUND_S)
        self.silent_s = max(self.silent_s, BOUND_S if silent_s is None else silent_s)
        if silent_s is None:
            self.failures.append("silence")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=24, help="virtual hours (24)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets have the same order in each run
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.chaos.soak", *sys.argv[1:]], environment)
    clock.install()
    # Now, because modules take the functions of `time` as they find them.
    from tests.chaos.trial import Trial

    logging.basicConfig(level=logging.CRITICAL)
    began = _real()
    soak = Soak(Trial(options.seed, (), pause_s=_PAUSE_S, step_s=5.0), options.seed)
    first, last = soak.run(options.hours)
    print("| hours | frames | in quiet times | faults | restarts | lost | doubled | longest silence, s |")
    print("|---|---|---|---|---|---|---|---|")
    verdict = soak.trial.verdict
    print(
        f"| {options.hours:g} | {verdict.frames} | {soak.quiet} | {soak.faults} | {verdict.restarts} | "
        f"{soak.lost} | {soak.doubled} | {soak.silent_s:.1f} |\n"
    )
    print(
        f"Memory {first.memory_mb:.0f} MB after the start, {last.memory_mb:.0f} MB at the end; descriptors "
        f"{first.descriptors} and {last.descriptors}; {_real() - began:.0f} s of real time."
    )
    print(*soak.failures, sep="\n")
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
