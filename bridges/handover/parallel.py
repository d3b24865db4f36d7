"""The entrance of a bridge that all its gateways forward at once: receivers keep the first copy of a message.

Copies are known by their envelopes (docs/failover.md#parallel). A message that comes without one is stamped
alike by all candidates. A candidate that has just started does not know which numbers are in use, so for 14 s
it keeps back what it is not sure of, until another candidate's copy says the number.
"""

import asyncio
from asyncio import TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bridges.handover.copies import EarlyCopies
from bridges.handover.entrance import ALONE, GatedSide, KeysOf, Rank
from bridges.handover.stamps import LIFE_S, Stamps
from bridges.policy import STEP_S
from bus.ledger import Stats
from bus.wire.batch import Batch, batch_of, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped

COUNT, BYTES = 8192, 16 << 20  # kept back at a time; others go on at once


class _Kept(NamedTuple):
    """A message that is kept back until `due_s`; it came by `side` and the pipe with the ledger `stats`."""

    due_s: float
    side: GatedSide
    stats: Stats
    message: bytes


class Parallel:
    """The entrance of a bridge that forwards whatever the other candidates do; see `Entrance`.

    `origin` is that of all candidates in envelopes, `clock` gives seconds.
    """

    def __init__(
        self, sides: Sequence[GatedSide], origin: int, clock: Callable[[], float], rank: Rank = ALONE
    ) -> None:
        self.forwarding = True
        self._clock, self._origin = clock, origin
        self._ours = origin.to_bytes(4, "big")
        self._wait_s = STEP_S * (rank.of + rank.number)  # later than others hold theirs; each at its own time
        self._copies = EarlyCopies(Stamps(young_s=LIFE_S))
        self._copies.advance(clock())
        self._kept: deque[_Kept] = deque()
        self._kept_bytes = 0
        self._timer: TimerHandle | None = None
        self.revise(sides)

    def __len__(self) -> int:
        return len(self._kept)

    def revise(self, sides: Sequence[GatedSide]) -> None:
        """Change to other sides. What is kept back of a side that has gone is let go."""
        self._sides = tuple(sides)
        self.keys_of: KeysOf | None = self._keys if any(side.trunk for side in sides) else None
        gone = [kept for kept in self._kept if kept.side not in self._sides]
        self._kept = deque(kept for kept in self._kept if kept.side in self._sides)
        for kept in gone:
            self._let_go(kept)

    def _keys(self, contents: list[bytes]) -> list[int]:
        return [self._origin << 32 | number for number in map(self._copies.take, contents)]

    def enter(self, side: int, batch: Batch, stats: Stats, came_ns: Sequence[int] = ()) -> Batch | None:
        """Return the messages whose stamps are sure, or need none; the others are kept back."""
        self._copies.advance(self._clock())
        if self._sides[side].trunk:
            self._learn(batch)
        if self.keys_of is None or not (self._copies.stamps.is_young or self._kept):
            return batch
        return self._sure(self._sides[side], batch, stats)

    def _learn(self, batch: Batch) -> None:
        """Note the numbers that other candidates gave."""
        if self._ours not in batch.keep():
            return
        for message in payloads(batch):
            if is_enveloped(message) and message[4:8] == self._ours:
                number = int.from_bytes(message[8:ENVELOPE_BYTES], "big")
                self._copies.heard(message[ENVELOPE_BYTES:], number)
        self._let_go_while(lambda kept: self._copies.knows(kept.message))

    def _sure(self, side: GatedSide, batch: Batch, stats: Stats) -> Batch | None:
        """Return the messages of a batch that need not wait. What has no envelope waits behind what waits."""
        sure = list[bytes]()
        due_s = self._clock() + self._wait_s
        for message in payloads(batch):
            known = is_enveloped(message) or not (self._kept or not self._copies.knows(message))
            if known or len(self._kept) >= COUNT or self._kept_bytes >= BYTES:
                sure.append(message)
            else:
                self._keep(_Kept(due_s, side, stats, message))
        self._arm()
        return batch_of(sure)

    def _keep(self, kept: _Kept) -> None:
        self._kept.append(kept)
        self._kept_bytes += len(kept.message)
        kept.side.note_kept(kept.stats, 1)

    def _arm(self) -> None:
        if self._timer is None and self._kept:
            wait_s = max(0.0, self._kept[0].due_s - self._clock())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        now = self._clock()
        self._let_go_while(lambda kept: kept.due_s <= now)
        self._arm()

    def _let_go_while(self, may_go: Callable[[_Kept], bool]) -> None:
        """Let go what is kept back, in order, up to the first message that may not go."""
        while self._kept and may_go(self._kept[0]):
            self._let_go(self._kept.popleft())

    def _let_go(self, kept: _Kept) -> None:
        self._kept_bytes -= len(kept.message)
        kept.side.note_kept(kept.stats, -1)
        kept.side.enter_again(from_payloads([kept.message]), kept.stats)

    def forget(self, stats: Stats) -> None:
        """Let go what came in by a pipe that goes."""
        mine = [kept for kept in self._kept if kept.stats is stats]
        self._kept = deque(kept for kept in self._kept if kept.stats is not stats)
        for kept in mine:
            self._let_go(kept)

    def end(self) -> None:
        """Let go all that is kept back, in order: it came in while this gateway forwarded."""
        self._let_go_while(lambda _: True)

    def lapsed(self) -> bool:
        """Return False: it forwards as long as it runs."""
        return False

    def in_doubt(self) -> bool:
        """Return False: others forward at all times, and receivers know copies."""
        return False

    def ask(self, side: int, batch: Batch) -> None:
        """Note nothing: the devices of all gateways tell what became of commands."""

    def owe(self, side: int, messages: Sequence[bytes], fresh: bool) -> None:
        """Keep nothing: all that enters leaves."""
