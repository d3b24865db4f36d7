"""The cost of what the front of a side does, beside a side without one: `prefix`, `unchanged`, `limits` ...

    python -m benchmarks.fronts
    python -m benchmarks.fronts --frames 1024

A batch goes through a bridge of two sides, in one process. Each load is measured for all fronts in turns, and
a rate is the median of the turns. `share` is that of the side without a front in the same run.
"""

import argparse
import random
from itertools import count
from statistics import median
from time import perf_counter

from benchmarks.lines import Counter
from bridges.bridge import Bridge
from bridges.front.hub import FrontHub
from bridges.front.settings import Front, Limit
from bus.hub import Pipe
from bus.renaming import Renaming
from bus.wire.batch import Batch, from_payloads
from bus.wire.frame import pack
from bus.wire.pattern import Pattern

PATTERNS, TURNS, TURN_S = 64, 9, 0.05
FRONTS = {
    "none": None,
    "prefix": Front(Renaming(prefix=("hall",))),
    "rename": Front(Renaming(rename=((("s", "7"), ("temp",)),))),
    "unchanged, all new": Front(refresh_s=0.0),
    "unchanged, none new": Front(refresh_s=1e9),
    "limits, all pass": Front(limits=(Limit(("s", "1"), 1e12), Limit(("s",), 1e12))),
    "limits, none pass": Front(limits=(Limit(("s", "1"), 1e-9), Limit(("s",), 1e-9))),
    "opaque": Front(opaque=("words", "free")),
}
LOADS = {"equal": (16, 16), "mixed": (8, 64)}
"""The least and the most bytes of data in a frame of a load."""


def batch_of(frames: int, least: int, most: int) -> Batch:
    """Return frames of 64 patterns in turn, with data of random sizes."""
    chance = random.Random(7)
    patterns = [Pattern("s", str(number)) for number in range(PATTERNS)]
    made = (pack(1, patterns[n % PATTERNS], bytes(chance.randint(least, most))) for n in range(frames))
    return from_payloads(list(made))


class Room:
    """A bridge of two sides, one with a front: `take` lets a batch enter there."""

    def __init__(self, front: Front | None) -> None:
        clock = count()
        bridge = Bridge("b", 1, clock=lambda: next(clock) / 1e3)
        door = left = bridge.side("left")
        self._hub = door if front is None else FrontHub(left, front)
        self._entry: Pipe = Counter(self._hub)
        self.far = Counter(bridge.side("right"))
        self.taken = 0

    def take(self, batch: Batch) -> float:
        """Let a batch enter until the turn is over. Return the frames a second."""
        began, before = perf_counter(), self.taken
        while (passed := perf_counter() - began) < TURN_S:
            self._hub.publish(batch, self._entry)
            self.taken += batch.count
        return (self.taken - before) / passed


def measured(batch: Batch) -> dict[str, list[float]]:
    """Return the frames a second of each turn by the name of the front."""
    rooms = {name: Room(front) for name, front in FRONTS.items()}
    rates = {name: list[float]() for name in rooms}
    for _ in range(TURNS):
        for name, room in rooms.items():
            rates[name].append(room.take(batch))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fronts", description=__doc__)
    parser.add_argument("--frames", type=int, default=256, metavar="N", help="frames of a batch (256)")
    options = parser.parse_args()
    for load, (least, most) in LOADS.items():
        rates = measured(batch_of(options.frames, least, most))
        shares = {
            name: median(a / b for a, b in zip(rates[name], rates["none"], strict=True)) for name in rates
        }
        for name in rates:
            print(f"{load:6} {name:20} {median(rates[name]) / 1e6:8.2f} M/s  share {shares[name]:.3f}")


if __name__ == "__main__":
    main()
