"""`python -m tests.chaos.oneway`: partitions in one direction, in virtual time.

Each link between two machines of a plant is cut in each direction, for a while and flapping, under the load
of `tests.chaos.takeovers`. A line of JSON tells the outcome for each bridge.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from tests.chaos import clock

if TYPE_CHECKING:
    from tests.chaos.takeovers import Outcome

_GATEWAYS = ("gw-a", "gw-b", "gw-c")
_BROKERS = ("br-1", "br-2")
HELD_S = (0.2, 0.7, 3.0)
FLAPS = 6
STARTED_S = 1.5


class Cut(NamedTuple):
    """One direction of a link: nothing comes from `source` to `sink`, one machine or several."""

    kind: str
    source: str
    sink: str


def _both(kind: str, one: str, other: str) -> tuple[Cut, Cut]:
    return Cut(kind, one, other), Cut(kind, other, one)


CUTS = (
    *(
        cut
        for n, one in enumerate(_GATEWAYS)
        for other in _GATEWAYS[n + 1 :]
        for cut in _both("trunk", one, other)
    ),
    *(cut for one in _GATEWAYS[:2] for other in _BROKERS for cut in _both("broker", one, other)),
    *(cut for one in _GATEWAYS[:2] for cut in _both("brokers", one, " ".join(_BROKERS))),
    *_both("medium", "gw-a", "gw-b"),
)


def outcomes(
    cuts: list[Cut], seed: int, rate: float, held_s: Sequence[float]
) -> Iterator[tuple[Cut, str, "Outcome"]]:
    """Yield what each cut costs on each bridge: for some lengths of time, and flapping."""
    # Now, because modules take the functions of `time` as they find them.
    from tests.chaos.takeovers import Drill

    class OneWay(Drill):
        def bring(self, cut: Cut) -> list[tuple[Cut, str, "Outcome"]]:
            ways = ["flapping", *(f"{one:g} s" for one in held_s)]
            self.chance.shuffle(ways)  # the first hits who forwards, later ones perhaps no more
            with self.plant.network.installed():
                self.start()
                self._go(STARTED_S)
                for way in ways:
                    self.calm(way)
                    self._bring(cut, way)
                    self._account(way)
                self.finish()
            return [(cut, one.kind, one) for one in self.outcomes]

        def _bring(self, cut: Cut, way: str) -> None:
            times = FLAPS if way == "flapping" else 1
            for _ in range(times):
                self._set(cut, True)
                self._go(self.chance.uniform(0.05, 0.4) if times > 1 else float(way.split()[0]))
                self._set(cut, False)
                self._go(self.chance.uniform(0.05, 0.4))

        def _set(self, cut: Cut, cuts: bool) -> None:
            act = self.plant.deafen if cut.kind == "medium" else self.plant.cut
            for source, sink in product(cut.source.split(), cut.sink.split()):
                act(source, sink, cuts)

    for number, cut in enumerate(cuts):
        yield from OneWay(seed + number, rate).bring(cut)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.oneway", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=40, help="frames a second each way on each bridge (40)")
    parser.add_argument("--cut", type=int, action="append", default=[], help="only this one, by its number")
    parser.add_argument("--held", type=float, action="append", default=[], help="only so long (repeatable)")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets have the same order in each run
        command = [sys.executable, "-m", "tests.chaos.oneway", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    clock.install()
    logging.basicConfig(level=logging.CRITICAL)
    cuts = [CUTS[number] for number in options.cut] or list(CUTS)
    wrong = False
    for cut, way, outcome in outcomes(cuts, options.seed, options.rate, options.held or HELD_S):
        print(json.dumps({**outcome.told(), "cut": " ".join(cut), "kind": way}), flush=True)
        harm = outcome.lost or outcome.doubled or outcome.echoed
        wrong = wrong or (outcome.bridge == "motor" and harm > 0)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
