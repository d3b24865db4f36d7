"""The commands that a candidate has heard, and what became of them: each has one result, whoever tells it.
Pure: time is an argument.

Who forwards passes on what its device says. At a takeover it tells what nobody has told: what its own device
said while it stood by, or else that nobody knows. A device that another has answered for is not heard again.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from bridges.handover.sides import moved, placed
from bus.values import COMMAND, RESULT, RESULTS_MAX
from bus.wire.batch import Batch, batch_of, payloads
from bus.wire.envelope import take_apart
from bus.wire.frame import PUB, pack, unpack
from bus.wire.pattern import Pattern

Tokens = tuple[int, ...]
Lead = Callable[[int, bytes], int]
"""A function that returns the number of the side with the device that a command is for, by that where it
came; -1: none."""
KEPT_S: Final = 60.0
"""The longest time for which a command is kept: who waits for a result longer has given up."""
COPIED_S: Final = 2.0
"""A command that comes in by another side within so long is the same one."""
UNSURE: Final = b"not known: it came before a takeover"
_SET, _RESULT = (Pattern(word)[0] for word in (COMMAND, RESULT))
_LAST: Final = tuple(token.to_bytes(4, "big") for token in (_SET, _RESULT))


class _Command:
    """A command with this content to the device of a side.

    `seen` are the sides where it came in, and `told` those where a result of it did, as bits; `answered`: it
    has a result. `asks`: this gateway has sent it, and its own device has not said yet what became of it;
    `said` is what it has said while another gateway forwarded.
    """

    __slots__ = ("answered", "asks", "at_s", "content", "device", "said", "seen", "told", "value")

    def __init__(self, value: Tokens, content: bytes, at_s: float, device: int) -> None:
        self.value, self.content, self.at_s, self.device = value, content, at_s, device
        self.said = b""
        self.seen = self.told = 0
        self.answered = self.asks = False

    def end(self) -> None:
        """Note that this gateway tells the result, on all sides."""
        self.told, self.answered = -1, True

    def is_over(self, now: float, sources: int) -> bool:
        """Tell whether nothing more is to come of it; it may yet come in by other ones of the `sources`."""
        age_s = now - self.at_s
        if age_s >= KEPT_S:
            return True
        is_told = self.answered and not self.asks and not self.seen & ~self.told
        return is_told and (self.seen == sources or age_s >= COPIED_S)


class Unanswered:
    """The commands that may be without a result, in order, and by what stands in front of the last token.

    `sources` are the sides where commands come in, as bits. At most `RESULTS_MAX` are kept, and the oldest
    goes first: `untold` counts those that have no result.
    """

    def __init__(self, lead: Lead, sources: int) -> None:
        self._lead, self._sources = lead, sources
        self._all: dict[_Command, None] = {}
        self._by_value: dict[Tokens, list[_Command]] = {}
        self.untold = 0

    def hear(self, side: int, batch: Batch, now: float, forwards: bool) -> Batch | None:
        """Note the commands and results in what came in by a side, and return what may go on.

        `forwards`: this gateway does. A result of a device stays here if another one does, or has told one.
        """
        data = batch.keep()
        if not any(last in data for last in _LAST):
            return batch
        kept = [one for one in payloads(batch) if self._note(side, one, now, forwards)]
        if len(kept) == batch.count:
            return batch
        return batch_of(kept)

    def _note(self, side: int, message: bytes, now: float, forwards: bool) -> bool:
        """Note a message, and return whether it may go on."""
        found, is_source = take_apart(message), bool(self._sources >> side & 1)
        frame = unpack(found.content) if found.is_frame else None
        if frame is None or frame.type != PUB or not frame.tokens:
            return True
        *value, last = frame.tokens
        if last == _RESULT and not is_source:
            return self._said(tuple(value), frame.data, now, forwards)
        if last == _RESULT:
            self._told(tuple(value), side, now)
        elif last == _SET and not forwards and (device := self._lead(side, found.content)) >= 0:
            self._came(_Command(tuple(value), found.content, now, device), side)
        return True

    def ask(self, device: int, batch: Batch, now: float) -> None:
        """Note the commands in what leaves for a device here: it says what becomes of each."""
        data = batch.keep()
        if _LAST[0] not in data:
            return
        for message in payloads(batch):
            found = take_apart(message)
            frame = unpack(found.content) if found.is_frame else None
            if frame is not None and frame.type == PUB and frame.tokens[-1:] == (_SET,):
                made = _Command(frame.tokens[:-1], found.content, now, device)
                made.asks, made.seen = True, self._sources
                self._add(made)

    def _said(self, value: Tokens, words: bytes, now: float, forwards: bool) -> bool:
        """Note a result of a device here, and return whether it is told."""
        command = next((one for one in self._by_value.get(value, ()) if one.asks), None)
        if command is None:
            return forwards
        command.asks, is_first = False, not command.answered
        if is_first and forwards:
            command.end()
        elif is_first:
            command.said = bytes(words)
        self._forget_if_over(command, now)
        return is_first and forwards

    def _told(self, value: Tokens, side: int, now: float) -> None:
        """Note a result that came in by a side: it is that of the oldest command there."""
        for one in self._by_value.get(value, ()):
            if one.seen >> side & 1 and not one.told >> side & 1:
                one.told, one.answered = one.told | 1 << side, True
                return self._forget_if_over(one, now)
        return None

    def _came(self, command: _Command, side: int) -> None:
        """Note that a command came in by a side, and has come in by others before, or has not."""
        for one in self._by_value.get(command.value, ()):
            is_copy = one.content == command.content and not one.seen >> side & 1
            if is_copy and command.at_s - one.at_s < COPIED_S:
                one.seen |= 1 << side
                return self._forget_if_over(one, command.at_s)
        command.seen = 1 << side
        return self._add(command)

    def _add(self, command: _Command) -> None:
        self._all[command] = None
        self._by_value.setdefault(command.value, []).append(command)
        self._bound(command.at_s)

    def _bound(self, now: float) -> None:
        """Forget the oldest commands, if nothing more is to come of them, or if there are too many."""
        for oldest in list(islice(self._all, 2)):  # more than come in
            is_over = oldest.is_over(now, self._sources)
            if not is_over and len(self._all) <= RESULTS_MAX:
                return
            self.untold += not (oldest.answered or is_over)
            self._forget(oldest)

    def _forget_if_over(self, command: _Command, now: float) -> None:
        if command.is_over(now, self._sources):
            self._forget(command)

    def _forget(self, command: _Command) -> None:
        del self._all[command]
        same = self._by_value[command.value]
        same.remove(command)
        if not same:
            del self._by_value[command.value]

    def revise(self, sources: int, places: Sequence[int | None]) -> None:
        """Go on with other sides: `places` are the new numbers of the old ones."""
        self._sources = sources
        for one in list(self._all):
            one.seen, one.told = moved(one.seen, places), moved(one.told, places)
            one.device = placed(one.device, places)
            if one.device < 0:
                self._forget(one)

    def take_results(self, now: float) -> list[tuple[int, bytes]]:
        """Return the results that nobody has told, each with the side of its device, as this gateway forwards
        now. A device here that has not said yet what became of a command still will."""
        found = list[tuple[int, bytes]]()
        for one in list(self._all):
            if not (one.answered or one.asks or one.is_over(now, self._sources)):
                found.append((one.device, pack(PUB, (*one.value, _RESULT), one.said or UNSURE)))
                one.end()
            self._forget_if_over(one, now)
        return found
