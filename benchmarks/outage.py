"""An outage of a durable trunk in real time, with kills: `python -m benchmarks.outage --seconds 3600`.

A program says numbered messages of 64 bytes to gateway a. Gateway b is away for all that time, and a is
killed (-9) and started again meanwhile; then b comes back, and is killed while it catches up. Every message
that a's journal had must come, in order in its lane. What was said while a was dead, or just before, is
counted apart, and so is what b had given to its bus, and not acknowledged, before a kill: it comes again.
"""

import asyncio
import tempfile
import time
from bisect import bisect
from math import inf
from pathlib import Path
from typing import Final

from benchmarks.command import Command, run_as_command
from benchmarks.durable import HEARD, Hearing, Rig, free_ports
from bus.lateness import LATE_MS
from bus.wire.batch import Batch

EARLY_S: Final = 0.25
"""A message that was said so shortly before a kill may not have been on disk."""
_PATIENCE_S: Final = 120.0
_TICK_S: Final = 0.05


class Ear(Hearing):
    """A program that hears, over the lives of its gateway: what came twice in one life, and what is late and
    out of order. Of what is not late, new messages overtake the last ones that waited."""

    def __init__(self) -> None:
        super().__init__()
        self.life = 1
        self.again = self.disordered = 0
        self._last = -1

    def begin_life(self) -> None:
        """Note that the gateway was killed: what it had not acknowledged comes again."""
        self.life = min(255, self.life + 1)
        self._last = -1

    def send(self, batch: Batch) -> None:
        now_ns = time.monotonic_ns()
        self.count += batch.count
        for number, sent_ns in HEARD.iter_unpack(batch.data):
            self._note(number, now_ns - sent_ns > LATE_MS * 1_000_000)

    def _note(self, number: int, is_late: bool) -> None:
        if number >= len(self.seen):
            self.seen += bytes(number + 1_000_000 - len(self.seen))
        before = self.seen[number]
        self.again += 0 < before < self.life
        self.doubled += before == self.life
        self.seen[number] = self.life
        if is_late:
            self.disordered += number <= self._last
            self._last = number


class Outage:
    """One outage. `deaf` are the times, on the clock of the machine, at which gateway a may have lost what
    was said, and `said` the numbers with the times at which they were said."""

    def __init__(self, place: Path) -> None:
        self.ear = Ear()
        self.rig = Rig(place, True, free_ports(3), heard=self.ear)
        self.deaf = list[tuple[float, float]]()
        self.said = list[tuple[int, float]]()
        self.first = self._came = 0  # of the outage; all below have come, or are not waited for

    async def speak(self, rate: float) -> None:
        """Say messages at a rate, until cancelled."""
        began_s, first = time.monotonic(), self.rig.sent
        while True:
            due = int(rate * (time.monotonic() - began_s)) - (self.rig.sent - first)
            if due > 0:
                self.said.append((self.rig.sent, time.monotonic()))
                self.rig.say(due)
            await asyncio.sleep(0.001)

    async def kill_a(self) -> None:
        """Kill gateway a, and start it again."""
        self.deaf.append((time.monotonic() - EARLY_S, inf))
        before = self.rig.into
        self.rig.stop("a", kill=True)
        self.rig.start("a")
        while not self.rig.into or self.rig.into == before:
            await asyncio.sleep(_TICK_S)
        self.deaf[-1] = self.deaf[-1][0], time.monotonic()

    async def kill_b(self) -> None:
        """Kill gateway b, and start it again when all that it said is heard."""
        self.rig.stop("b", kill=True)
        while self.rig.out:
            await asyncio.sleep(_TICK_S)
        self.ear.begin_life()
        self.rig.start("b")

    async def go(self, seconds: float, rate: float, kills: int) -> None:
        """Run it all. Raises `SystemExit` if nothing comes through."""
        self.rig.start("a")
        self.rig.start("b")
        await self.rig.open()
        await self.rig.is_joined()
        await asyncio.sleep(2 * EARLY_S)
        first = self.first = self._came = self.rig.sent
        self.rig.stop("b")
        speaking = asyncio.ensure_future(self.speak(rate))
        for _ in range(kills // 2):
            await asyncio.sleep(seconds / (kills // 2 + 1))
            await self.kill_a()
        await asyncio.sleep(seconds / (kills // 2 + 1))
        self.rig.start("b")
        await self._catch_up(first, kills - kills // 2)
        speaking.cancel()
        await self._settled(self.rig.sent)

    async def _catch_up(self, first: int, kills: int) -> None:
        """Kill gateway b as often while its backlog comes, each time after an equal part of it."""
        last = self.rig.sent
        for turn in range(1, kills + 1):
            await self._settled(first + (last - first) * turn // (kills + 1))
            await self.kill_b()
        await self._settled(last)

    async def _settled(self, before: int) -> None:
        """Wait until all numbers below `before` have come that had to, or no more come."""
        ends_s, count = time.monotonic() + _PATIENCE_S, self.ear.count
        while self.lost(before) and time.monotonic() < ends_s:
            if self.ear.count > count:
                ends_s, count = time.monotonic() + _PATIENCE_S, self.ear.count
            await asyncio.sleep(_TICK_S)

    def lost(self, before: int) -> bool:
        """Tell whether a number below `before` has not come, and had to."""
        at = self._came
        while (at := self.ear.seen.find(0, at, before)) >= 0 and self._is_deaf(at):
            at += 1
        self._came = before if at < 0 else at
        return at >= 0 or len(self.ear.seen) < before

    def missing(self) -> list[int]:
        """Return the numbers that did not come."""
        return [number for number in range(self.first, self.rig.sent) if not self.ear.seen[number]]

    def _is_deaf(self, number: int) -> bool:
        """Tell whether a number was said when gateway a may have lost it."""
        place = bisect(self.said, (number, inf)) - 1
        return place >= 0 and any(start <= self.said[place][1] <= stop for start, stop in self.deaf)

    def lines(self) -> list[str]:
        """Return the counts."""
        missing = self.missing()
        unheard, ear = sum(map(self._is_deaf, missing)), self.ear
        return [
            f"{self.rig.sent - self.first:,} said, {len(missing) - unheard} lost",
            f"{unheard:,} unheard: said while a was dead, or {EARLY_S:g} s before",
            f"{ear.doubled} doubled, {ear.again:,} again after a kill, {ear.disordered} out of order",
        ]


async def outage(place: Path, seconds: float, rate: float, kills: int) -> Outage:
    """Run one. Raises `SystemExit` if nothing comes through."""
    made = Outage(place)
    try:
        await made.go(seconds, rate, kills)
    finally:
        made.rig.close()
    return made


def main() -> None:
    parser = Command("benchmarks.outage", __doc__)
    parser.add_argument("--rate", type=float, default=1000, help="messages a second (1,000)")
    parser.add_argument("--kills", type=int, default=50, help="kills, half of them of each gateway (50)")
    parser.add_argument("--directory", type=Path, default=Path(), help="a directory on the disk (here)")
    parser.add_seconds(3600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory.absolute()) as name:
        made = asyncio.run(outage(Path(name), options.seconds, options.rate, options.kills))
    print(*made.lines(), sep="\n")
    if made.lost(made.rig.sent) or made.ear.doubled or made.ear.disordered:
        raise SystemExit(1)


if __name__ == "__main__":
    run_as_command(main)
