"""The base class of translators that ask devices by time, and write into them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Generic, TypeVar

from bridges.protocols.asking import Asking
from bridges.protocols.commands import Command, Commands, ValuePlace
from bridges.protocols.line import Line, Outcome
from bridges.protocols.translator import LOOK_S, Sent, Translator, Turn, Wire, frame
from bus.quantity.forms import write
from bus.values import RESULTS_FULL
from bus.wire.frame import DATA_BYTES_MAX

T = TypeVar("T")
AWAY_S, REFUSED_S = 30.0, 60.0
"""The longest pauses between requests to a device that is silent, and for a value that it refuses."""
SILENT = 2
"""Requests without a good answer, after which a device is told."""
_TOLD = 3


@dataclass(slots=True, eq=False)
class Device:
    """The health of one device, which is not asked before `away_s` while it is silent."""

    name: str
    timeout_s: float
    misses: int = 0
    away_s: float = 0.0

    def missed(self, now_s: float) -> None:
        """Note a request without a good answer, and ask less and less often."""
        self.misses += 1
        self.away_s = now_s + min(AWAY_S, self.timeout_s * 2 ** min(self.misses - 1, 16))

    def answered(self) -> None:
        """Note a good answer."""
        self.misses, self.away_s = 0, 0.0


@dataclass(slots=True, eq=False, kw_only=True)
class Poll:
    """Values that one request reads, every `poll_s` seconds. `name` says where they are, for people.

    `refusals`: how often in a row the device refused them.
    """

    device: Device
    name: str
    poll_s: float
    due_s: float = 0.0
    refusals: int = 0


P = TypeVar("P", bound=Poll)


class Asker(Translator[T], Generic[T, P]):
    """A translator that has the `line` of a wire to itself while this gateway may act.

    When it begins to, it first waits for `answer_s`, so that no answer to another gateway's request is taken
    for one to its own. A protocol overrides `_read`, `_write` and `_values`, and more where it has to.
    """

    asks = True

    def __init__(
        self, record: Asking, wire: Wire, line: Line[T], places: Sequence[ValuePlace], answer_s: float
    ) -> None:
        super().__init__(wire)
        self._line, self._answer_s, self._form = line, answer_s, record.form
        self._commands = Commands(record, places, self.settled)
        self._polls: list[tuple[float, int, P]] = []
        self._numbers = count()
        self._acting = False
        self._asked: P | Command | None = None
        self._asked_s = 0.0
        self._read_next = False  # commands and readings take turns
        self._again: P | None = None  # is asked first
        self._troubled: dict[Device | Poll, str] = {}
        self.due_s = 0.0

    def _read(self, poll: P, now_s: float) -> T:
        """Begin the request of a poll, and return its item."""
        raise NotImplementedError

    def _write(self, command: Command, now_s: float) -> T:
        """Begin the request of a command, and return its item."""
        raise NotImplementedError

    def _values(self, poll: P, data: bytes) -> list[tuple[ValuePlace, bytes]]:
        """Return the bytes of all values in a good answer."""
        raise NotImplementedError

    def _device(self, asked: P | Command) -> Device:
        """Return the device that was asked."""
        raise NotImplementedError

    def _words(self, device: Device, outcome: Outcome) -> str:
        """Return what is wrong with a device whose last request had this outcome."""
        if outcome.instead:
            return f"does not answer; {outcome.instead}"
        return "does not answer" if outcome.fault == "no answer" else f"answers wrongly: {outcome.fault}"

    def receive(self, items: Sequence[T], now_s: float) -> list[bytes]:
        found = list[bytes]()
        for item in items:
            if self._is_asked_elsewhere(now_s):
                self.wire.stats.reject("standby")
                self.found += 1  # another gateway asks there: it is no noise
            elif (outcome := self._line.feed(item, now_s)) is not None:
                found += self._ended(outcome, now_s)
        self._plan(now_s)
        return found + self._said()

    def _is_asked_elsewhere(self, now_s: float) -> bool:
        """Return whether what comes answers another gateway: not while this one may ask, if only soon."""
        return not (self._acting or self._line.is_open or self.wire.may_act(now_s))

    def turn(self, now_s: float) -> Turn[T]:
        messages = list[bytes]()
        if self._line.is_open and (outcome := self._line.look(now_s)) is not None:
            messages = self._ended(outcome, now_s)
        self._commands.expire(now_s)
        items = self._next(now_s)
        messages += self._said()
        self._plan(now_s)
        return Turn(messages, items)

    def send(self, message: bytes, now_s: float) -> Sent[T]:
        sent: Sent[T] = self._commands.take(message, now_s)
        self._plan(now_s)
        return sent

    def give_up(self) -> list[bytes]:
        return self._commands.give_up()

    def refuse(self, message: bytes, reason: str) -> None:
        self._commands.refuse(message, reason)
        if self._commands.is_due:
            self.due_s = 0.0

    def end(self, now_s: float) -> list[bytes]:
        if isinstance(self._asked, Command):
            self._commands.tell(self._asked.place.tokens, "not known: the wire was lost")
        self._asked = None
        for message in self._commands.give_up():
            self.settled.append((len(message), "closed"))
            self._commands.refuse(message, "closed")
        return self._said()

    def _said(self) -> list[bytes]:
        said, untold = self._commands.take_said()
        self.wire.stats.reject(RESULTS_FULL, untold)
        return said

    def _plan(self, now_s: float) -> None:
        """Work out when to be called next."""
        if self._commands.is_due:
            self.due_s = now_s
            return
        if self._line.is_open:
            due_s = self._line.due_s
        elif not self._acting:
            due_s = now_s + LOOK_S
        else:
            soon = self._commands or self._again is not None
            first_s = now_s if soon else self._polls[0][0] if self._polls else inf
            due_s = max(first_s, self._free_s)
        self.due_s = min(due_s, self._commands.due_s)

    def _next(self, now_s: float) -> list[T]:
        """Return the next request, if the line is free and this gateway may ask."""
        if self._line.is_open:
            return []
        if not self.wire.may_act(now_s):
            self._acting = False
            self._forget_trouble()
            return []
        if not self._acting:
            self._acting = True
            self._start()
            self._line.free_s = max(self._line.free_s, now_s + self._answer_s)
        if now_s < self._free_s:
            return []
        return self._begin(now_s)

    @property
    def _free_s(self) -> float:
        """The time at which what is next may be sent."""
        return self._line.free_s

    def _forget_trouble(self) -> None:
        """Tell no trouble any more: of devices that another gateway asks nothing is known here."""
        self._troubled.clear()
        self.condition = ""

    def _start(self) -> None:
        """Begin anew to ask, as this gateway may again: nothing of before holds."""
        self._again = None

    def _begin(self, now_s: float) -> list[T]:
        if self._again is not None:
            self._asked, self._again = self._again, None
            return [self._read(self._asked, now_s)]
        reads = not self._commands or (self._read_next and self._is_due(now_s))
        self._read_next = not reads
        self._asked_s = now_s
        if not reads:
            self._asked = command = self._commands.next()
            return [self._write(command, now_s)]
        if not self._is_due(now_s):
            return []
        self._asked = poll = heappop(self._polls)[2]
        return [self._read(poll, now_s)]

    def _is_due(self, now_s: float) -> bool:
        """Tell whether a poll is due, and have it first; those of devices that are away wait for these."""
        while self._polls and self._polls[0][0] <= now_s:
            poll = self._polls[0][2]
            if poll.device.away_s <= now_s:
                return True
            heappop(self._polls)
            self._schedule(poll, poll.device.away_s)
        return False

    def _schedule(self, poll: P, due_s: float) -> None:
        poll.due_s = due_s
        heappush(self._polls, (due_s, next(self._numbers), poll))

    def _ended(self, outcome: Outcome, now_s: float) -> list[bytes]:
        """Act on the outcome of the open request."""
        asked, self._asked = self._asked, None
        assert asked is not None  # the line had a request
        self._note(self._device(asked), outcome, now_s)
        if isinstance(asked, Command):
            self._commands.tell(asked.place.tokens, outcome.words())
        elif outcome.fault:
            self._schedule(asked, now_s + asked.poll_s)
        elif outcome.refused:
            self._refuse(asked, outcome, now_s)
        else:
            return self._heard(asked, outcome.data, now_s)
        return []

    def _note(self, device: Device, outcome: Outcome, now_s: float) -> None:
        """Note the health of a device."""
        if not outcome.fault:
            self.found += 1
            device.answered()
            self._trouble(device, "")
            return
        device.missed(now_s)
        if device.misses >= SILENT:
            self._trouble(device, f"{device.name} {self._words(device, outcome)}")

    def _refuse(self, poll: P, outcome: Outcome, now_s: float) -> None:
        """Ask for refused values less and less often, and tell so."""
        poll.refusals += 1
        self._trouble(poll, f"{poll.name}: {outcome.refused}")
        pause_s = min(poll.poll_s * 2 ** min(poll.refusals, 16), max(REFUSED_S, poll.poll_s))
        self._schedule(poll, now_s + pause_s)

    def _heard(self, poll: P, data: bytes, now_s: float) -> list[bytes]:
        poll.refusals = 0
        self._trouble(poll, "")
        is_late = self._asked_s - poll.due_s > poll.poll_s / 2
        self._schedule(poll, (self._asked_s if is_late else poll.due_s) + poll.poll_s)
        sampled_s = self.wire.unix_s((self._asked_s + self._line.heard_s) / 2)
        made = (self._frame(place, part, sampled_s) for place, part in self._values(poll, data))
        return [one for one in made if one is not None]

    def _frame(self, place: ValuePlace, data: bytes, unix_s: float) -> bytes | None:
        try:
            value = place.coding.decode(data, self._form == "number")
        except ValueError:
            self.wire.stats.reject("not a value")
            return None
        if value is None:
            self.wire.stats.reject("not available")
            return None
        found = write(self._form, value, place.row.unit, unix_s)
        if len(found) > DATA_BYTES_MAX:  # a text has more bytes than its device sent, in UTF-8 and in JSON
            self.wire.stats.reject("oversize")
            return None
        return frame(place.tokens, found)

    def _trouble(self, who: Device | Poll, words: str) -> None:
        """Tell what is wrong with a device or with values, in `condition`; with "", nothing is any more."""
        if words == self._troubled.get(who, ""):
            return
        if words:
            self._troubled[who] = words
        else:
            del self._troubled[who]
        told = list(self._troubled.values())
        rest = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        self.condition = "; ".join(told[:_TOLD]) + rest
