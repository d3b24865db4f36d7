"""Answers part by part, without a bus: how many questions wait, how long a part is, and what is left out."""

import pytest

from bus.asking import PATTERN_MAX, Answer, EndOfAnswer, Question, read
from bus.values import LastValues
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from devices.cache.answering import PART_BYTES, PART_VALUES, QUESTIONS, Answering


def holding(*frames: bytes, at_s: float = 10.0) -> Answering:
    values = LastValues()
    values.take(list(frames), at_s)
    return Answering(values)


def question(number: int) -> Question:
    return Question(number, Pattern())


def answers(answering: Answering, now_s: float = 10.0) -> list[Answer | EndOfAnswer]:
    said = [read(frame) for frame in answering.part(now_s)]
    return [one for one in said if isinstance(one, Answer | EndOfAnswer)]


def test_sixteen_questions_wait() -> None:
    answering = holding()
    assert [answering.take(question(number)) for number in range(QUESTIONS + 1)] == [True] * 16 + [False]
    assert answering.take(question(3)), "it waits already"
    assert answers(answering) == [EndOfAnswer(number, 0, 0) for number in range(16)]
    assert not answering.waits
    assert answering.take(question(16))
    assert answering.waits


@pytest.mark.parametrize("tokens", [(2, 0), (1, *range(PATTERN_MAX))], ids=["others", "too long"])
def test_of_values_that_are_not_said_a_part_looks_at_a_bounded_number(tokens: tuple[int, ...]) -> None:
    values, count = LastValues(PART_VALUES, 1 << 30), PART_VALUES
    values.take([pack(PUB, (*tokens[:-1], 1000 + number), b"") for number in range(count)], 10.0)
    answering = Answering(values)
    for number in range(3):
        answering.take(Question(number, Pattern(1)))
    parts = list[list[Answer | EndOfAnswer]]()
    while answering.waits:
        parts.append(answers(answering))
    left_out = count if tokens[0] == 1 else 0
    assert [one for part in parts for one in part] == [EndOfAnswer(n, 0, left_out) for n in range(3)]
    assert all(len(part) <= 1 for part in parts)
    assert parts[0] == []


def held(*sizes: int) -> Answering:
    """Return one that has a question, whose answers are frames of so many bytes."""
    empty = holding(pack(PUB, (1,), b""))
    empty.take(question(1))
    head = len(empty.part(10.0)[0])
    answering = holding(*(pack(PUB, (number,), bytes(size - head)) for number, size in enumerate(sizes)))
    answering.take(question(1))
    return answering


@pytest.mark.parametrize(
    ("sizes", "first"),
    [([1024] * 70, 64), ([1024] * 63 + [1023, 1024, 1024], 65), ([1024] * 63 + [1025, 1024], 64)],
)
def test_a_part_ends_with_the_frame_that_makes_it_64_kib(sizes: list[int], first: int) -> None:
    answering = held(*sizes)
    assert len(answering.part(10.0)) == first
    assert answering.waits
    assert len(answering.part(10.0)) == len(sizes) - first + 1, "with the end"
    assert PART_BYTES == 64 << 10


def test_a_pattern_with_room_for_what_an_answer_adds_is_said_and_a_longer_one_is_counted() -> None:
    longest, longer = Pattern(*range(PATTERN_MAX)), Pattern(*range(PATTERN_MAX + 1))
    answering = holding(pack(PUB, longest, b"a"), pack(PUB, longer, b"b"), pack(PUB, (*longer[1:], 7), b"c"))
    answering.take(question(5))
    first, last = answers(answering)
    assert isinstance(first, Answer)
    assert (first.pattern, last) == (longest, EndOfAnswer(5, 1, 2))


@pytest.mark.parametrize(
    ("now_s", "age_ms"), [(10.0, 0), (10.0009, 0), (10.25, 250), (9.0, 0), (70.0, 60_000)]
)
def test_an_age_is_in_whole_milliseconds_and_never_below_zero(now_s: float, age_ms: int) -> None:
    answering = holding(pack(PUB, (1,), b"x"))
    answering.take(question(5))
    first, _ = answers(answering, now_s)
    assert isinstance(first, Answer)
    assert first.age_ms == age_ms
