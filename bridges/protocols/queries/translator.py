"""The translator of queries. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop
from math import inf

from bridges.protocols.asker import SILENT, Asker, Device, Poll
from bridges.protocols.commands import Command, ValuePlace
from bridges.protocols.line import Outcome
from bridges.protocols.lines.places import Template
from bridges.protocols.protocol import tokens_of
from bridges.protocols.queries.answers import Find, acknowledged, finder, valued, whole_fits
from bridges.protocols.queries.dialogue import DOUBTED, Ask, Dialogue
from bridges.protocols.queries.protocol import Queries, Query, named
from bridges.protocols.translator import Wire

_CODEC = "latin-1"
SPREAD_TIMES = 6
"""The number of timeouts between two texts that nothing answers, where the device answers others."""


@dataclass(slots=True, eq=False, kw_only=True)
class Question(Poll):
    """A poll of the values that one text asks for; without any, a text of `begin`."""

    ask: Ask
    parts: tuple[tuple[ValuePlace, Find], ...] = ()


@dataclass(frozen=True, slots=True)
class Writing:
    """The way to write one value: its template, what confirms it, and the health of its text."""

    template: Template
    find: Find | None
    device: Device

    def ask(self, data: bytes) -> Ask:
        """Return what is sent to write these data."""
        text = self.template.filled(self.template.values((), data) or ())
        if self.find is None:
            return Ask(text, self.device.timeout_s, answers=False, is_read=False)
        return Ask(text, self.device.timeout_s, self.find, is_read=False)


class QueriesTranslator(Asker[bytes, Question]):
    """The one that asks a device by lines of text.

    Each text has a health of its own: many devices say nothing to one that they do not know.
    """

    def __init__(self, record: Queries, wire: Wire) -> None:
        self._record = record
        places = {id(row): self._place(row) for row in record.queries}
        self._devices = {id(row): self._health(row) for row in record.queries}
        self._questions = [self._question(rows, places) for rows in record.requests()]
        self._writings = {id(row): self._writing(row) for row in record.queries if row.write}
        several = len(self._questions) > 1 or any(row.ack for row in record.queries)
        self._dialogue = Dialogue(record, self.reject, wire.byte_s, several)
        answer_s = max(device.timeout_s for device in self._devices.values())
        super().__init__(record, wire, self._dialogue, [*places.values()], answer_s)
        for question in self._questions:
            self._schedule(question, 0.0)

    def _health(self, row: Query) -> Device:
        return Device(named(row), (row.timeout_ms or self._record.timeout_ms) / 1000)

    def _place(self, row: Query) -> ValuePlace:
        fits = None if row.fits is None else whole_fits(row.fits, self._record.sent_end.encode(_CODEC))
        return ValuePlace(row, tokens_of(row.pattern), row.coding(fits))

    def _text(self, text: str) -> bytes:
        return (text + self._record.sent_end).encode(_CODEC)

    def _question(self, rows: Sequence[Query], places: dict[int, ValuePlace]) -> Question:
        """Return the poll of rows that one request asks for. They share the health of the first."""
        device = self._devices[id(rows[0])]
        self._devices |= {id(row): device for row in rows}
        found = [(row, places[id(row)]) for row in rows]
        parts = tuple((place, valued(finder(row.match), place.coding)) for row, place in found)
        finds = [find for _, find in parts]

        def fits(answer: bytes) -> bytes | None:
            return answer if any(find(answer) is not None for find in finds) else None

        poll_s = (rows[0].poll_ms or self._record.poll_ms) / 1000
        ask = Ask(self._text(rows[0].ask or ""), device.timeout_s, fits)
        return Question(device=device, name=device.name, poll_s=poll_s, ask=ask, parts=parts)

    def _writing(self, row: Query) -> Writing:
        template = Template((row.template or "") + self._record.sent_end, _no_word, _CODEC)
        find = None if row.ack is None else acknowledged(row.ack)
        return Writing(template, find, self._devices[id(row)])

    def _start(self) -> None:
        """Begin with the texts of `begin`: another gateway may have asked, or the device was off."""
        super()._start()
        self._polls = [one for one in self._polls if one[2].parts]
        heapify(self._polls)
        for text in self._record.begin:
            device = Device(f'begin "{text}"', self._record.timeout_ms / 1000)
            ask = Ask(self._text(text), device.timeout_s, is_opening=True)
            self._schedule(Question(device=device, name=device.name, poll_s=inf, ask=ask), -inf)

    @property
    def _free_s(self) -> float:
        """The time of `Asker`: an answer that is owed keeps back what has an answer itself."""
        writes = self._commands and self._again is None and not self._opens
        if writes and self._writings[id(self._commands.first.place.row)].find is None:
            return self._dialogue.free_s
        return max(self._dialogue.free_s, self._dialogue.drained_s)

    @property
    def _opens(self) -> bool:
        """Whether a text of `begin` is next."""
        return bool(self._polls) and not self._polls[0][2].parts

    def _begin(self, now_s: float) -> list[bytes]:
        if self._opens:
            self._again = heappop(self._polls)[2]
        if now_s < self._dialogue.drained_s:
            self._read_next = False
        elif self._commands and self._dialogue.in_doubt and self._is_due(now_s):
            self._read_next = True  # an answer to a command would not count
        return super()._begin(now_s)

    def _read(self, poll: Question, now_s: float) -> bytes:
        self._asked_s = now_s
        return self._dialogue.ask(poll.ask, now_s)

    def _write(self, command: Command, now_s: float) -> bytes:
        return self._dialogue.ask(self._writings[id(command.place.row)].ask(command.data), now_s)

    def _device(self, asked: Question | Command) -> Device:
        return asked.device if isinstance(asked, Question) else self._devices[id(asked.place.row)]

    def _ended(self, outcome: Outcome, now_s: float) -> list[bytes]:
        asked = self._asked
        is_opening = isinstance(asked, Question) and not asked.parts
        if not is_opening and outcome.fault != DOUBTED:
            return super()._ended(outcome, now_s)
        self._asked = None
        if is_opening:
            self.found += 1
        elif isinstance(asked, Question):
            self._schedule(asked, asked.due_s)
        elif asked is not None:
            self._commands.tell(asked.place.tokens, f"not known: {DOUBTED}")
        return []

    def _note(self, device: Device, outcome: Outcome, now_s: float) -> None:
        super()._note(device, outcome, now_s)
        if outcome.fault:
            self._spread(now_s + SPREAD_TIMES * device.timeout_s)

    def _spread(self, until_s: float) -> None:
        """Put off the texts without answers while there are others, which then tell whether one is owed."""
        devices = [question.device for question in self._questions]
        if any(not device.misses for device in devices):
            for device in filter(_is_silent, devices):
                device.away_s = max(device.away_s, until_s)

    def _values(self, poll: Question, data: bytes) -> list[tuple[ValuePlace, bytes]]:
        found = [(place, part) for place, find in poll.parts if (part := find(data)) is not None]
        self.wire.stats.reject("unmatched", len(poll.parts) - len(found))
        return found

    def _words(self, device: Device, outcome: Outcome) -> str:
        if outcome.fault == "oversize":
            return f"is answered with more than {self._record.longest_bytes} bytes"
        if outcome.fault == "cut answer":
            return f"is answered with {outcome.instead}, without {self._record.ending!r} behind it"
        return "is not answered"

    def _trouble(self, who: Device | Poll, words: str) -> None:
        super()._trouble(who, words)
        health = [question.device for question in self._questions]
        if len(health) > 1 and all(one.misses >= SILENT for one in health):
            self.condition = "the device does not answer"


def _is_silent(device: Device) -> bool:
    return device.misses > 0


def _no_word(_: int) -> bytes:
    return b""
