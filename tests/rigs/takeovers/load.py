"""The load on a rig, and the account of what became of it."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from math import inf

from tests.helpers.peers import until
from tests.rigs.takeovers.stations import Notes

CATCH_UP_S = 5.0
_UNDER_WAY_S = 0.05
_SETTLE_S = 0.06  # docs/failover.md: so long the one that takes over may wait for what the other still sent


@dataclass
class Outcome:
    """The effect of one fault, in frames and milliseconds."""

    fault: str
    sent: int = 0
    lost: int = 0
    between: int = 0  # of these, sent after the account of the fault before this one
    given_up: int = 0  # lost, too, but outside the window of a takeover
    doubled: int = 0
    remembered: int = 0
    strays: int = 0
    wait_ms: float = 0.0
    note: str = ""
    # What the gateways say that they gave up, by reason.
    counted: dict[str, int] = field(default_factory=dict)
    stood_ms: float = 0.0  # the longest time in which the rig, with its relays, had no turn
    missing: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """The lost frames that no counter of a gateway has."""
        return max(0, self.lost - sum(self.counted.values()))


Direction = tuple[Notes, Notes, int, int]
"""Sender, receiver, the first number, and the number after the last."""


def is_given_up(sender: Notes, sent_s: float, begun_s: float, over_s: float) -> bool:
    """Tell whether a takeover may leave out a frame: it was under way at the fault, or came after it, and is
    older than the sender's window when the other gateway begins to send."""
    return over_s < inf and begun_s - _UNDER_WAY_S <= sent_s <= over_s + _SETTLE_S - sender.window_s


def _under_way(sender: Notes, first: int, begun_s: float) -> int:
    """Return the first number that was under way at a fault, at most `first`."""
    while first and sender.sent[first - 1] >= begun_s - _UNDER_WAY_S:
        first -= 1
    return first


@dataclass
class Load:
    """The load: both stations send at a rate until `stop`."""

    near: Notes
    far: Notes
    rate: float
    stood_s: float = 0.0  # the longest time without a turn since the last account
    _running: bool = True
    _task: "asyncio.Task[None] | None" = field(default=None)
    _accounts: "list[tuple[Outcome, tuple[Direction, Direction]]]" = field(default_factory=list)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while self._running:
            self.near.say()
            self.far.say()
            next_s = max(next_s + 1 / self.rate, loop.time() - 0.1)
            await asyncio.sleep(max(0.0, next_s - loop.time()))
            self.stood_s = max(self.stood_s, loop.time() - next_s)

    async def stop(self) -> None:
        self._running = False
        if self._task is not None:
            await self._task

    def mark(self) -> tuple[int, int, int]:
        return len(self.near.sent), len(self.far.sent), self.near.remembered + self.far.remembered

    async def account(
        self, fault: str, marks: tuple[int, int, int], over_s: float, begun_s: float = inf
    ) -> Outcome:
        """Count the frames since `marks`, and those under way at the fault, once all have arrived or the time
        to catch up is over.

        The fault was at `begun_s`, the takeover at `over_s`. The wait is the longest of a frame that was sent
        before that. `recount` counts duplicates again at the end, because a gateway that was frozen sends
        late, and what was lost between two faults.
        """
        ends = len(self.near.sent), len(self.far.sent)
        begun = [_under_way(one, marks[n], begun_s) for n, one in enumerate((self.near, self.far))]
        ways = ((self.near, self.far, begun[0], ends[0]), (self.far, self.near, begun[1], ends[1]))
        complete = lambda: all(n in b.heard for _, b, first, last in ways for n in range(first, last))  # noqa: E731
        with contextlib.suppress(TimeoutError):
            await until(complete, CATCH_UP_S)
        outcome = Outcome(fault, stood_ms=1000 * self.stood_s)
        self.stood_s = 0.0
        self._accounts.append((outcome, ways))
        for source, sink, first, last in ways:
            for number in range(first, last):
                times = sink.heard.get(number, [])
                outcome.sent += 1
                if not times and is_given_up(source, source.sent[number], begun_s, over_s):
                    outcome.given_up += 1
                elif not times:
                    outcome.lost += 1
                    at_ms = 1000 * (source.sent[number] - source.sent[first])
                    outcome.missing.append(f"{source.token}:{number} at {at_ms:.0f} ms")
                if times and source.sent[number] <= over_s:
                    outcome.wait_ms = max(outcome.wait_ms, 1000 * (times[0] - source.sent[number]))
        outcome.remembered = self.near.remembered + self.far.remembered - marks[2]
        self.recount()
        return outcome

    def recount(self) -> None:
        """Count the duplicates and echoes so far, by the fault in which they were sent, or the next one; and
        what was lost between two faults, by the next one."""
        begun = [first for _, _, first, _ in self._accounts[0][1]] if self._accounts else []
        for outcome, ways in self._accounts:
            outcome.lost -= outcome.between
            outcome.between = outcome.doubled = outcome.strays = 0
            outcome.copies = []
            for number, (source, sink, first, last) in enumerate(ways):
                outcome.between += sum(one not in sink.heard for one in range(begun[number], first))
                _count_again(outcome, source, sink, range(begun[number], last))
                begun[number] = last
            outcome.lost += outcome.between


def _count_again(outcome: Outcome, source: Notes, sink: Notes, numbers: range) -> None:
    """Add what came twice or back of some frames to an outcome."""
    for number in numbers:
        first_s, *again = sink.heard.get(number, [0.0])
        outcome.doubled += len(again)
        outcome.strays += source.strays.get(number, 0)
        outcome.copies += (f"{source.token}:{number} after {1000 * (at - first_s):.0f} ms" for at in again)
