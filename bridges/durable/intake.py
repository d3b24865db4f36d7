"""The intake of the journal of a bus: messages that ends are due, and numbers to be remembered. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from bridges.durable.ages import time_of
from bridges.durable.classes import Room
from bridges.durable.end import End
from bridges.durable.receiver import SettledRange, Taken
from bridges.durable.work import Acknowledge, Offered, Settled
from bus.replaying import is_replayed
from bus.wire.batch import Batch

TOLD_MAX: Final = 65_536
"""Records that came while the journal does not work; older ones are not acknowledged, and come again."""
PENDING_BYTES_MAX: Final = 16 << 20
"""Bytes that wait for the thread; more are live only."""


class Intake:
    """The messages and numbers that wait. Without `is_open`, and above `PENDING_BYTES_MAX`, messages are live
    only. `room` says what the journal has room for, and `now_ms` returns the time of day."""

    def __init__(self, room: Room, now_ms: Callable[[], int]) -> None:
        self.is_open = True
        self._room, self._now_ms = room, now_ms
        self._offered, self._told = list[Offered](), list[Settled]()
        self._pending_bytes = 0
        self._passing: Taken | None = None
        self._held = list[Taken]()

    def __bool__(self) -> bool:
        """Tell whether something waits."""
        return bool(self._offered or self._told)

    def offer(self, end: End, batch: Batch) -> None:
        """Take messages that an end is due. A batch that several are due is journaled once."""
        if not self.is_open or self._pending_bytes + len(batch.data) > PENDING_BYTES_MAX:
            return end.settle(batch, False)
        kept, rest = self._room.divided(batch)
        if rest is not None:
            end.refuse(rest)
        return None if kept is None else self._take(end, kept)

    def _take(self, end: End, batch: Batch) -> None:
        last = self._offered[-1] if self._offered else None
        if last is not None and last.batch is batch:
            self._offered[-1] = last._replace(ends=(*last.ends, end))
            return
        self._offered += self._identified(batch, end)
        self._pending_bytes += len(batch.data)

    def _identified(self, batch: Batch, end: End) -> list[Offered]:
        """Return a batch with who numbered it first: another journal, if it is passing through the bus."""
        batch.keep()
        for taken in self._held if self._passing is None else (self._passing,):
            parts = taken.identified(batch)
            if self._passing is not None or any(origin for _, origin in parts):
                time_ms = time_of(self._now_ms(), taken.age_ms)
                return [Offered(part, (end,), origin, time_ms) for part, origin in parts]
        return [Offered(batch, (end,), None, self._now_ms(), is_replayed())]

    def passing(self, taken: Taken | None) -> None:
        """Say which messages of another journal pass through the bus now, in this very call."""
        self._passing = taken

    def held(self, taken: Taken, is_held: bool) -> None:
        """Say whether the bus may hold messages of another journal back, and pass them later."""
        self._held = [one for one in self._held if one is not taken]
        if is_held:
            self._held.append(taken)

    def tell(self, told: Settled) -> None:
        """Take numbers that are acknowledged once they are on disk."""
        self._told.append(told)

    def again(self, told: list[Settled]) -> None:
        """Take back numbers that did not get on disk."""
        self._told = [*told, *self._told][-TOLD_MAX:]

    def taken(self, most_bytes: int) -> tuple[list[Offered], list[Settled]]:
        """Return messages of so many bytes, at least one batch, and with the last of them the numbers.

        They do not wait any more. Numbers are not acknowledged before messages that came before them are on
        disk.
        """
        count = size = 0
        for one in self._offered:
            if count and size + len(one.batch.data) > most_bytes:
                break
            count, size = count + 1, size + len(one.batch.data)
        offered, self._offered = self._offered[:count], self._offered[count:]
        self._pending_bytes -= size
        told, self._told = ([], self._told) if self._offered else (self._told, [])
        return offered, told

    def give_up(self) -> None:
        """Close: the messages that wait are live only."""
        self.is_open = False
        offered, self._offered, self._pending_bytes = self._offered, [], 0
        for one in offered:
            one.settle(False)


def by_call(told: list[Settled]) -> dict[Acknowledge, Sequence[SettledRange]]:
    """Return what is settled by the call that acknowledges it."""
    found = dict[Acknowledge, list[SettledRange]]()
    for one in told:
        found.setdefault(one.acknowledge, []).extend(one.marks)
    return dict(found)
