"""`python -m tests.fuzz [--inputs N] [NAME...]`: give each target inputs until it has had N, round by round.

Each round of a target is a process of its own (`tests.fuzz.engine`), so no parser spoils another, and a run
that is ended goes on later. Prints what broke; the exit status is then 1.
"""

import argparse
import subprocess
import sys
from typing import Final

from tests.fuzz.engine import inputs_of
from tests.fuzz.targets import TARGETS
from tests.helpers import ROOT

_ROUND: Final = 50_000
_SHOWN: Final = 4000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*TARGETS, []], metavar="NAME", help="these targets (all)"
    )
    parser.add_argument("--inputs", type=int, default=1_000_000, metavar="N", help="inputs of each (1000000)")
    options = parser.parse_args()
    left, broken = list(options.names or TARGETS), list[str]()
    while left:
        for name in tuple(left):
            wanted = min(_ROUND, options.inputs - inputs_of(name))
            if wanted > 0 and not _round(name, wanted):
                broken.append(name)
            if wanted < _ROUND or name in broken:
                left.remove(name)
    for name in options.names or TARGETS:
        print(f"{name:20} {inputs_of(name):12,} inputs{', BROKEN' if name in broken else ''}")
    return int(bool(broken))


def _round(name: str, inputs: int) -> bool:
    """Run one round. Return False, and print why, if an input broke the parser."""
    command = [sys.executable, "-m", "tests.fuzz.engine", name, str(inputs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    if done.returncode:
        print(f"{name}: broken; the input is in tests/fuzz/found/{name}\n{done.stderr[-_SHOWN:]}", flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main())
