"""The commands that a standby has heard, and no result of them: at a takeover nobody else tells what became
of those. Pure: time is an argument."""

from collections import deque
from collections.abc import Callable
from typing import Final

from bus.values import COMMAND, RESULT
from bus.wire.batch import Batch, payloads
from bus.wire.envelope import take_apart
from bus.wire.frame import PUB, pack, unpack
from bus.wire.pattern import Pattern

Tokens = tuple[int, ...]
Lead = Callable[[int, bytes], int]
"""Returns the number of the side with the device that a command is for, by that where it came; -1: none."""
MOST: Final = 1024
KEPT_S: Final = 60.0
"""The longest time for which a command is kept: who waits for a result longer has given up."""
UNSURE: Final = b"not known: it came before a takeover"
_SET, _RESULT = (Pattern(word)[0] for word in (COMMAND, RESULT))
_LAST: Final = tuple(token.to_bytes(4, "big") for token in (_SET, _RESULT))


class Unanswered:
    """The commands without results, by what stands in front of the last token, and the side where each came.

    A frame that comes in by several sides is one command on each of them. At most `MOST` are kept, and the
    oldest goes first: `untold` counts these, which have no result.
    """

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._waiting: dict[tuple[Tokens, int], deque[tuple[float, int]]] = {}
        self._count = self.untold = 0

    def hear(self, side: int, batch: Batch, now: float) -> None:
        """Note the commands and results in what came in by a side."""
        data = batch.keep()
        if not any(last in data for last in _LAST):
            return
        for message in payloads(batch):
            found = take_apart(message)
            if found.is_frame:
                self._note(side, found.content, now)

    def _note(self, side: int, content: bytes, now: float) -> None:
        frame = unpack(content)
        if frame.type != PUB or not frame.tokens:
            return
        *value, last = frame.tokens
        key = tuple(value), side
        if last == _RESULT and key in self._waiting:
            self._take(key)
        elif last == _SET and (device := self._lead(side, content)) >= 0:
            self._waiting.setdefault(key, deque()).append((now, device))
            self._count += 1
            if self._count > MOST:
                self._take(next(iter(self._waiting)))
                self.untold += 1

    def _take(self, key: tuple[Tokens, int]) -> None:
        waiting = self._waiting[key]
        waiting.popleft()
        self._count -= 1
        if not waiting:
            del self._waiting[key]

    def take_results(self, now: float) -> list[tuple[int, bytes]]:
        """Return the result of each, with the side of its device, and forget all."""
        most: dict[Tokens, list[int]] = {}
        for (value, _), waiting in self._waiting.items():
            devices = [device for at_s, device in waiting if now - at_s < KEPT_S]
            most[value] = max(most.get(value, []), devices, key=len)
        self._waiting, self._count = {}, 0
        items = most.items()
        return [(one, pack(PUB, (*value, _RESULT), UNSURE)) for value, devices in items for one in devices]
