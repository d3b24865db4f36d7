"""The watch for loops names a suspect; equal messages below its thresholds, or acquitted lately, are none."""

from collections.abc import Callable

import pytest

from bus.watch.canaries import MARK
from bus.watch.loops import (
    AGAIN,
    BUSY,
    CONTENTS,
    GENERATION_S,
    GROWTH,
    PAUSE_MAX_S,
    PAUSE_S,
    REPEATS,
    RETURNS,
    SPREAD,
    Content,
    LoopWatch,
)
from bus.wire.frame import pack

READING, OTHER = pack(1, (7,), b"21.5"), pack(1, (7,), b"21.6")


def watching(jitter: Callable[[float, float], float] = lambda low, high: low) -> LoopWatch[str]:
    return LoopWatch[str](jitter)


def twice(watch: LoopWatch[str], copies: int, now: float, message: bytes = READING) -> Content[str] | None:
    """Let a message come by two ways, `copies` times in all."""
    watch.look(message, "a", now)
    return watch.look(message, "b", now, copies - 1)


def test_equal_readings_are_suspicious_from_32_by_two_ways_or_5000_by_one() -> None:
    watch = watching()
    assert twice(watch, RETURNS - 1, 0.0) is None
    suspect = watch.look(READING, "b", 0.0)
    assert suspect is not None
    assert (suspect.count, suspect.ways) == (RETURNS, {"a": 1, "b": RETURNS - 1})
    alone = watching()
    for _ in range(REPEATS - 1):
        assert alone.look(READING, "a", 0.0, 100) is None
    suspect = alone.look(READING, "a", 0.0, 100)
    assert suspect is not None
    assert suspect.ways is None


def test_two_hubs_suspect_at_different_counts() -> None:
    late = watching(lambda low, high: high)
    assert twice(late, int(SPREAD * RETURNS) - 1, 0.0) is None
    assert late.look(READING, "b", 0.0) is not None


def test_counts_begin_anew_after_a_generation_or_4096_contents() -> None:
    watch = watching()
    twice(watch, RETURNS - 1, 0.0)
    assert watch.look(READING, "b", GENERATION_S) is None
    assert twice(watch, RETURNS - 2, GENERATION_S) is None
    for number in range(CONTENTS):
        watch.look(pack(1, (number,)), "a", GENERATION_S)
    assert watch.look(READING, "b", GENERATION_S) is None


@pytest.mark.parametrize("copies", [1, 2])
def test_the_copies_of_a_suspect_took_as_long_as_since_the_generation_before(copies: int) -> None:
    watch = watching()
    watch.look(OTHER, "a", 0.0)
    for _ in range(copies):
        watch.look(READING, "a", 0.9 * GENERATION_S)
    watch.look(READING, "a", GENERATION_S)
    suspect = watch.look(READING, "b", 1.5 * GENERATION_S, RETURNS - 1)
    assert suspect is not None
    assert watch.span_s(suspect, 1.5 * GENERATION_S) == pytest.approx(0.6 * GENERATION_S)


def test_a_message_that_comes_often_by_two_ways_has_the_rest_of_its_batch_counted() -> None:
    watch = watching()
    watch.look(READING, "a", 0.0, 99)
    assert not watch.is_busy
    twice(watch, BUSY, 0.0)
    assert watch.is_busy
    twice(watch, RETURNS - 1, 0.0, OTHER)
    found = watch.look_on([b"x", OTHER, b"y"], "a", 0.0)
    assert found is not None
    assert watch.is_it(found, OTHER)


@pytest.mark.parametrize("times", [1, 3])
def test_an_acquittal_covers_more_of_the_same_and_doubles_what_is_suspicious_for_a_while(times: int) -> None:
    watch, contents = watching(), [pack(1, (number,)) for number in range(times)]
    for number, message in enumerate(contents):
        suspect = twice(watch, RETURNS << number, 1.0, message)
        assert suspect is not None
        watch.acquit(suspect, 1.0, is_sure=True, asked=True)
    level = GROWTH * (RETURNS << times - 1) * GENERATION_S / 0.01  # as many copies a second as there were
    assert watch.look(contents[-1], "a", 1.0, int(level) - (RETURNS << times - 1) - 1) is None
    suspect = watch.look(contents[-1], "a", 1.0)
    assert suspect is not None
    assert watch.was_legal(suspect)
    assert twice(watch, (RETURNS << times) - 1, 2.0, OTHER) is None
    assert watch.look(OTHER, "a", 2.0) is not None
    assert twice(watch, RETURNS, 1.0 + PAUSE_S * 2**times, b"later") is not None


def test_an_acquittal_lasts_twice_as_long_each_time_until_a_ring_is_proved() -> None:
    watch, now, pause_s = watching(), 0.0, PAUSE_S
    for _ in range(10):
        suspect = twice(watch, RETURNS, now)
        assert suspect is not None
        watch.acquit(suspect, now, is_sure=True)
        assert twice(watch, RETURNS, now + pause_s - 0.1) is None
        now += pause_s
        pause_s = min(2 * pause_s, PAUSE_MAX_S)
    watch.prove(None, now)
    assert twice(watch, RETURNS, now) is not None


def test_a_first_acquittal_without_a_canary_covers_twice_as_many_only() -> None:
    watch = watching()
    for copies in (RETURNS, RETURNS):
        suspect = twice(watch, copies, 0.0)
        assert suspect is not None
        assert watch.was_tried(suspect) == watch.was_legal(suspect) == (suspect.count > RETURNS)
        watch.acquit(suspect, 0.0, is_sure=True)
    assert twice(watch, 100 * RETURNS, 0.0) is None


def test_few_copies_of_what_was_in_a_proved_ring_are_suspicious_for_a_while() -> None:
    for now, few in ((0.1, True), (PAUSE_S + 0.1, False)):
        watch = watching()
        suspect = twice(watch, RETURNS, 0.0)
        watch.prove(suspect, 0.0)
        assert (twice(watch, AGAIN, now) is not None) == few
        assert twice(watch, RETURNS - 1, now, OTHER) is None
        other = watching()
        other.prove(suspect, 0.0)
        other.look(READING, "a", now)
        assert (other.look(READING, "a", now, RETURNS) is not None) == few


def test_a_suspect_that_nothing_was_found_out_about_is_suspicious_again_at_twice_as_many() -> None:
    watch = watching()
    suspect = twice(watch, RETURNS, 0.0)
    assert suspect is not None
    watch.acquit(suspect, 0.0, is_sure=False)
    assert watch.look(READING, "a", 0.0, RETURNS - 1) is None
    again = watch.look(READING, "a", 0.0)
    assert again is not None
    assert not watch.was_legal(again)
    assert twice(watch, RETURNS, 0.0, OTHER) is not None


def test_a_canary_is_noted_at_its_second_way() -> None:
    watch, canary = watching(), MARK + bytes(24)
    assert watch.look(canary, "a", 0.0) is None
    assert watch.look(canary, "a", 0.0) is None
    assert watch.look(canary, "b", 0.0) is not None


def test_the_time_that_copies_took_is_that_of_as_many_as_are_suspicious() -> None:
    watch = watching()
    watch.look(READING, "a", 0.0)
    suspect = watch.look(READING, "b", 1.0, 10 * RETURNS)
    assert suspect is not None
    assert watch.span_s(suspect, 1.0) == pytest.approx(SPREAD * RETURNS / (10 * RETURNS + 1))
