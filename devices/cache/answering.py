"""Answers to questions for last values, in small parts, so that a flood of questions delays no peer. Pure."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from bus.asking import PATTERN_MAX, EndOfAnswer, Question, end, say
from bus.values import LastValues, Value
from bus.wire.frame import unpack

QUESTIONS: Final = 16
"""The most questions that wait; further ones are refused."""
PART_BYTES: Final = 64 << 10
"""The size of a part of an answer, about."""
PART_VALUES: Final = 4096
"""The most values that are looked at for a part, some 1 us each: whoever asks for what is not there has them
all looked at."""


class Answering:
    """The questions of one bus, answered one after the other from `values`."""

    def __init__(self, values: LastValues) -> None:
        self._values = values
        self._waiting: deque[Question] = deque()
        self._now: Iterator[bytes | None] | None = None

    @property
    def waits(self) -> bool:
        """True if a part of an answer is left."""
        return self._now is not None or bool(self._waiting)

    def take(self, question: Question) -> bool:
        """Queue a question. Return False if too many wait. An equal one is not queued twice."""
        if question in self._waiting:
            return True
        if len(self._waiting) >= QUESTIONS:
            return False
        self._waiting.append(question)
        return True

    def part(self, now_s: float) -> list[bytes]:
        """Return the next frames of answers, about `PART_BYTES` in all, which may be none."""
        frames, left, looks = list[bytes](), PART_BYTES, PART_VALUES
        while left > 0 and looks > 0 and self.waits:
            if self._now is None:
                self._now = _answer(self._waiting.popleft(), self._values, now_s)
            try:
                frame = next(self._now)
            except StopIteration:
                self._now = None
                continue
            looks -= 1
            if frame is not None:
                frames.append(frame)
                left -= len(frame)
        return frames


def _answer(question: Question, values: LastValues, now_s: float) -> Iterator[bytes | None]:
    """Yield the frames of the current values, None for each that is not said, then the frame of the
    end. Ages are those at `now_s`."""
    said = left_out = 0
    for value in values.look(question.pattern):
        if value is None:
            yield None
        elif len((frame := unpack(value.frame)).tokens) > PATTERN_MAX:
            left_out += 1
            yield None
        else:
            said += 1
            yield say(question.nonce, _age_ms(value, now_s), frame)
    yield end(EndOfAnswer(question.nonce, said, left_out))


def _age_ms(value: Value, now_s: float) -> int:
    return max(0, int((now_s - value.at_s) * 1000))
