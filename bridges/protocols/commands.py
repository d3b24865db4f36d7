"""The commands that wait to be written into devices, and what became of all. Pure: time is an argument."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol

from bridges.protocols.asking import SET, Asking
from bridges.protocols.protocol import tokens_of
from bridges.protocols.rows import Asked
from bridges.protocols.translator import Sent, frame, published
from bus.quantity.forms import Form, Value
from bus.values import RESULT, RESULTS_MAX
from bus.wire.frame import DATA_BYTES_MAX

Tokens = tuple[int, ...]
_WORDS = {"closed": "the wire was lost"}  # for reasons of drops that say too little


class ValueCoding(Protocol):
    """The way from what a device says to a value, and back: `bus.quantity.coding.Coding` is one."""

    def decode(self, data: bytes, as_number: bool = False) -> Value | None: ...

    def read(self, form: Form, data: bytes) -> Value: ...

    def encode(self, value: Value, low: float | None = None, high: float | None = None) -> bytes: ...


class ValuePlace(NamedTuple):
    """A value of the table: its record, the tokens of its pattern, and the coding of its bytes."""

    row: Asked
    tokens: Tokens
    coding: ValueCoding


class Command(NamedTuple):
    """A command: the bytes for a value, when it came, and the frame that it was."""

    place: ValuePlace
    data: bytes
    came_s: float
    message: bytes


class Results:
    """The frames that tell what became of commands, under PATTERN/result, until they are taken.

    `rows` are the values. `untold` counts those that were too many.
    """

    def __init__(self, rows: Iterable[Asked]) -> None:
        written = [tokens_of(row.pattern) for row in rows if row.write]
        set_, self._result = tokens_of((SET,)), tokens_of((RESULT,))
        self._values = {(*tokens, *set_): tokens for tokens in written}
        self._said: list[bytes] = []
        self.untold = 0

    @property
    def is_due(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._said or self.untold)

    def tell(self, value: Tokens, words: str) -> None:
        """Tell what became of a command to a value."""
        if len(self._said) < RESULTS_MAX:
            self._said.append(frame((*value, *self._result), words.encode()[:DATA_BYTES_MAX]))
        else:
            self.untold += 1

    def refuse(self, message: bytes, reason: str) -> None:
        """Tell that the command in a frame was not sent, by the reason of its drop; other frames are none."""
        found = published(message, ())
        value = None if found is None else self._values.get(found.tokens)
        if value is not None:
            self.tell(value, f"refused: {_WORDS.get(reason, reason)}")

    def take_said(self) -> tuple[list[bytes], int]:
        """Return what is to be told, and how much is not, and forget both."""
        said, untold = self._said, self.untold
        self._said, self.untold = [], 0
        return said, untold


class Commands(Results):
    """A bounded queue of commands, each of which ends once: as done, refused, or not known.

    `settled` is that of the translator.
    """

    def __init__(self, record: Asking, places: Sequence[ValuePlace], settled: list[tuple[int, str]]) -> None:
        super().__init__(place.row for place in places)
        self._settled = settled
        self._form, self._most, self._age_s = record.form, record.commands, record.age_ms / 1000
        tail = tokens_of((SET,))
        self._places: Mapping[Tokens, ValuePlace] = {
            (*place.tokens, *tail): place for place in places if place.row.write
        }
        self._waiting: deque[Command] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def due_s(self) -> float:
        """The time at which the oldest command has waited too long; infinite if none waits."""
        return self._waiting[0].came_s + self._age_s if self._waiting else inf

    def take(self, message: bytes, now_s: float) -> Sent[Any]:
        """Queue the command in a frame; or say why it is none."""
        found = published(message, ())
        place = None if found is None else self._places.get(found.tokens)
        if found is None or place is None:
            return Sent(why="not sent here")
        if len(self._waiting) >= self._most:
            self.tell(place.tokens, f"refused: {self._most} commands wait already")
            return Sent(why="queue full")
        try:
            value = place.coding.read(self._form, found.data)
            data = place.coding.encode(value, place.row.low, place.row.high)
        except ValueError as error:
            self.tell(place.tokens, f"refused: {error}")
            return Sent(why="no command")
        self._waiting.append(Command(place, data, now_s, message))
        return Sent(held=True)

    def expire(self, now_s: float) -> None:
        """Give up the commands that have waited for longer than `age_ms`."""
        while self._waiting and now_s >= self.due_s:
            command = self._waiting.popleft()
            self._settled.append((len(command.message), "stale"))
            self.tell(command.place.tokens, f"refused: it waited longer than {1000 * self._age_s:g} ms")

    @property
    def first(self) -> Command:
        """The command that is written next."""
        return self._waiting[0]

    def next(self) -> Command:
        """Return the command that is written now, and count it as sent."""
        command = self._waiting.popleft()
        self._settled.append((len(command.message), ""))
        return command

    def give_up(self) -> list[bytes]:
        """Forget all that wait, and return them: who drops them has each refused."""
        given = [command.message for command in self._waiting]
        self._waiting.clear()
        return given
