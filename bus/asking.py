"""Questions for last values and for the time, and answers, as frames on a reserved pattern
(docs/wire/values.md). Pure.
"""

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from bus.wire.frame import PUB, TOKENS_MAX, Frame, frame_bytes, pack, unpack
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern

WORD: Final = "buscoupler/values"
PATTERN: Final = pattern_of(WORD)
WORDS: Final = ("ask", "value", "end", "time", "now")
_ASK, _VALUE, _END, _TIME, _NOW = (Pattern(*PATTERN, word) for word in WORDS)
_HEAD: Final = len(_ASK) + 1  # the word and the nonce
PATTERN_MAX: Final = TOKENS_MAX - _HEAD - 1
"""The largest number of tokens of a pattern for which an answer has room."""
_AGE_MAX_MS: Final = 0xFFFFFFFF
_COUNTS: Final = Struct(">II")
_TIME_BYTES: Final = 8
_SECOND_US: Final = 1_000_000


class Question(NamedTuple):
    """A question for the values of a pattern. All answers have its `nonce` (u32)."""

    nonce: int
    pattern: Pattern


class Answer(NamedTuple):
    """One value: a frame of a pattern, heard `age_ms` ago (u32)."""

    nonce: int
    age_ms: int
    pattern: Pattern
    data: bytes


class EndOfAnswer(NamedTuple):
    """The end of an answer: `said` values were sent; `left_out` have patterns too long for an answer."""

    nonce: int
    said: int
    left_out: int


class TimeQuestion(NamedTuple):
    """A question for the time. The answer has its `nonce` (u32)."""

    nonce: int


class TimeAnswer(NamedTuple):
    """The time when the question was taken, in microseconds since 1970 (UTC)."""

    nonce: int
    at_us: int


def ask(question: Question) -> bytes:
    """Return the frame of a question: the data is the pattern, four bytes a token."""
    data = b"".join(number.to_bytes(4, "big") for number in question.pattern)
    return pack(PUB, (*_ASK, question.nonce), data)


def say(nonce: int, age_ms: int, frame: Frame) -> bytes:
    """Return the frame that carries one value. Its pattern has at most `PATTERN_MAX` tokens."""
    return pack(PUB, (*_VALUE, nonce, min(age_ms, _AGE_MAX_MS), *frame.tokens), frame.data)


def end(outcome: EndOfAnswer) -> bytes:
    """Return the frame that ends an answer."""
    return pack(PUB, (*_END, outcome.nonce), _COUNTS.pack(outcome.said, outcome.left_out))


def ask_time(nonce: int) -> bytes:
    """Return the frame of a question for the time. It is as long as its answer, so that both take as long."""
    return pack(PUB, (*_TIME, nonce), bytes(_TIME_BYTES))


def tell_time(answer: TimeAnswer) -> bytes:
    """Return the frame that tells the time."""
    seconds, microseconds = divmod(answer.at_us, _SECOND_US)
    return pack(PUB, (*_NOW, answer.nonce), _COUNTS.pack(seconds & 0xFFFFFFFF, microseconds))


def is_about_values(message: bytes) -> bool:
    """Return whether a message is a frame on the reserved pattern of questions and answers."""
    return message[4:].startswith(_START) and frame_bytes(message) == len(message)


_START: Final = b"".join(number.to_bytes(4, "big") for number in PATTERN)


def read(message: bytes) -> Question | Answer | EndOfAnswer | TimeQuestion | TimeAnswer | None:
    """Return the question, the answer or the end of an answer in a message; None if it holds none."""
    if not is_about_values(message):
        return None
    kind, tokens, data = unpack(message)
    if kind != PUB or len(tokens) < _HEAD:
        return None
    word, nonce, rest = tokens[: len(_ASK)], tokens[len(_ASK)], tokens[_HEAD:]
    if word == _ASK and not rest:
        return _question(nonce, data)
    if word == _VALUE and rest:
        return Answer(nonce, rest[0], Pattern(*rest[1:]), data)
    if word == _END and not rest:
        return _end(nonce, data)
    if len(data) == _TIME_BYTES and not rest:
        return _time(word, nonce, data)
    return None


def _time(word: tuple[int, ...], nonce: int, data: bytes) -> TimeQuestion | TimeAnswer | None:
    if word == _TIME:
        return TimeQuestion(nonce)
    seconds, microseconds = _COUNTS.unpack(data)
    if word == _NOW and microseconds < _SECOND_US:
        return TimeAnswer(nonce, seconds * _SECOND_US + microseconds)
    return None


def _question(nonce: int, data: bytes) -> Question | None:
    if len(data) % 4 or len(data) > 4 * TOKENS_MAX:
        return None
    numbers: Iterable[int] = (int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))
    return Question(nonce, Pattern(*numbers))


def _end(nonce: int, data: bytes) -> EndOfAnswer | None:
    try:
        return EndOfAnswer(nonce, *_COUNTS.unpack(data))
    except StructError:
        return None
