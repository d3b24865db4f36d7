"""Messages that are no frames, as frames of a pattern, and back."""

from collections import Counter

import pytest

from bridges.front.wrapping import Wrapping
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import SUB, pack
from bus.wire.pattern import Pattern

WORDS = Wrapping(("words", "free"))
KEY = Envelope(7, 9, 3)


def ignore(why: str, count: int) -> None:
    """Count nothing."""


def said(data: bytes, *more: str) -> bytes:
    return pack(1, Pattern("words", "free", *more), data)


def test_a_message_is_a_frame_of_the_pattern_and_comes_out_as_it_was() -> None:
    words = [b"hello", b"", b"x" * 2048, b"\x01\x00"]
    batch = from_payloads([*words, wrap(b"named", KEY)])
    inside = WORDS.wrapped(batch, ignore)
    assert inside is not None
    assert payloads(inside) == [*map(said, words), wrap(said(b"named"), KEY)]
    back = WORDS.unwrapped(inside, ignore)
    assert back is not None
    assert payloads(back) == [*words, wrap(b"named", KEY)]


def test_other_frames_stay_as_they_are_both_ways() -> None:
    others = [
        pack(1, Pattern("words"), b"free"),
        pack(1, Pattern("car"), b"x"),
        pack(SUB, Pattern("words", "free")),
    ]
    for step in (WORDS.wrapped, WORDS.unwrapped):
        made = step(from_payloads(others), ignore)
        assert made is not None
        assert payloads(made) == others


def test_what_begins_with_the_pattern_leaves_bare_too() -> None:
    made = WORDS.unwrapped(from_payloads([said(b"x", "more")]), ignore)
    assert made is not None
    assert payloads(made) == [b"x"]


@pytest.mark.parametrize("more", [(), ("more",)])
@pytest.mark.parametrize("is_keyed", [False, True])
def test_many_equal_frames_leave_bare_as_one_does(more: tuple[str, ...], is_keyed: bool) -> None:
    frame = said(b"x", *more)
    messages = [wrap(frame, KEY) if is_keyed else frame] * 200
    made = WORDS.unwrapped(from_payloads(messages), ignore)
    assert made is not None
    assert payloads(made) == [wrap(b"x", KEY) if is_keyed else b"x"] * 200


def test_what_cannot_cross_is_counted() -> None:
    counts = Counter[str]()

    def refuse(why: str, count: int) -> None:
        counts[why] += count

    assert WORDS.wrapped(from_payloads([b"x" * 2049]), refuse) is None
    inner = [said(said(b"x")), said(wrap(said(b"x"), KEY))]
    assert WORDS.unwrapped(from_payloads(inner), refuse) is None
    assert counts == {"oversize": 1, "frame inside": 2}


def test_messages_among_runs_of_frames_are_changed_alone() -> None:
    run = [pack(1, Pattern("words", "else"), b"12") for _ in range(40)]
    made = [*run, b"hello", *run, said(b"12"), *run]
    inside = WORDS.wrapped(from_payloads(made), ignore)
    assert inside is not None
    assert payloads(inside) == [*run, said(b"hello"), *run, said(b"12"), *run]
    back = WORDS.unwrapped(inside, ignore)
    assert back is not None
    assert payloads(back) == [*run, b"hello", *run, b"12", *run]
    same = from_payloads(run)
    assert WORDS.wrapped(same, ignore) is same
