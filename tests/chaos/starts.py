"""`python -m tests.chaos.starts`: the gateway that forwards freezes soon after the start, in virtual time.

A line of JSON for each moment tells how long frames then waited, and whether a candidate said that it was
settling.
"""

import argparse
import json
import logging
import os
import sys

from tests.chaos import clock

MOMENTS_S = (0.25, 0.3, 0.35, 0.45, 0.6, 1.0)
FROZEN_S = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.starts", description=__doc__)
    parser.add_argument("--at", type=float, action="append", default=[], help="only then (repeatable)")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets have the same order in each run
        command = [sys.executable, "-m", "tests.chaos.starts", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    clock.install()
    # Now, because modules take the functions of `time` as they find them.
    from tests.chaos.takeovers import Drill

    class Start(Drill):
        def freeze_at(self, at_s: float, name: str) -> dict[str, object]:
            with self.plant.network.installed():
                self.start(load_s=0.0)
                self._go(at_s)
                asked = [one for program in self._gateways for one in program.candidacies()]
                settling = sum(one.candidate.settling for one in asked)
                self._said.clear()
                self.plant.programs[name].freeze(True)
                self._go(FROZEN_S)
                self.plant.programs[name].freeze(False)
                self._account("freeze")
                self.finish()
            sums = {word: sum(vars(one)[word] for one in self.outcomes) for word in ("lost", "doubled")}
            wait_ms = max(one.wait_ms for one in self.outcomes)
            return {"at_s": at_s, "frozen": name, "settling": settling, "wait_ms": wait_ms, **sums}

    logging.basicConfig(level=logging.CRITICAL)
    for at_s in options.at or MOMENTS_S:
        for name in ("gw-a", "gw-b"):
            print(json.dumps(Start(1, 40).freeze_at(at_s, name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
