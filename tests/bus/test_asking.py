"""Questions for last values and answers, byte for byte as the page has them; and what is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.asking import (
    PATTERN,
    PATTERN_MAX,
    Answer,
    EndOfAnswer,
    Question,
    TimeAnswer,
    TimeQuestion,
    ask,
    ask_time,
    end,
    read,
    say,
    tell_time,
)
from bus.errors import FrameError
from bus.wire.frame import PUB, SUB, Frame, pack, unpack
from bus.wire.pattern import Pattern
from tests.helpers import ROOT

PAGE = (ROOT / "docs/wire/values.md").read_text()
HEX = re.compile(r"^((?:[0-9a-f]{2,8} )+) ", re.MULTILINE)
EXAMPLES = [
    bytes.fromhex("".join(HEX.findall(block))) for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
]
tokens = st.lists(st.integers(0, 0xFFFFFFFF), max_size=PATTERN_MAX).map(lambda found: Pattern(*found))
u32 = st.integers(0, 0xFFFFFFFF)


def test_the_page_s_examples() -> None:
    fridge = Pattern("fridge")
    question, answer, last, *time = EXAMPLES
    assert question == ask(Question(7, fridge))
    assert answer == say(7, 1500, Frame(PUB, Pattern("fridge", "temp"), b"21.5"))
    assert last == end(EndOfAnswer(7, 1, 0))
    assert time == [ask_time(8), tell_time(TimeAnswer(8, 1_764_273_600_250_000))]


@given(u32, tokens, st.binary(max_size=40), u32)
def test_each_passes_unchanged(nonce: int, pattern: Pattern, data: bytes, age_ms: int) -> None:
    assert read(ask(Question(nonce, pattern))) == Question(nonce, pattern)
    assert read(say(nonce, age_ms, Frame(PUB, pattern, data))) == Answer(nonce, age_ms, pattern, data)
    assert read(end(EndOfAnswer(nonce, age_ms, 3))) == EndOfAnswer(nonce, age_ms, 3)
    at = TimeAnswer(nonce, age_ms * 999_999)
    assert [read(ask_time(nonce)), read(tell_time(at))] == [TimeQuestion(nonce), at]
    assert len(ask_time(nonce)) == len(tell_time(at))


def test_what_is_none_of_them() -> None:
    question = unpack(ask(Question(7, Pattern("a"))))
    odd = [
        b"", b"text", pack(PUB, (1,)), pack(PUB, PATTERN), pack(PUB, (*PATTERN, 1, 2, 3)),
        pack(SUB, question.tokens, question.data), pack(PUB, question.tokens, b"abc"),
        pack(PUB, question.tokens[:-1]), pack(PUB, (*question.tokens, 1)),
        pack(PUB, question.tokens, bytes(2044)), pack(PUB, question.tokens, bytes(1024)),
        pack(PUB, (*PATTERN, *Pattern("end"), 7, 8), bytes(8)),
        pack(PUB, (*PATTERN, *Pattern("other"), 7), bytes(8)),
        pack(PUB, (*PATTERN, *Pattern("time"), 7), bytes(7)),
        pack(PUB, (*PATTERN, *Pattern("now"), 7), bytes(4) + b"\xff" * 4),
        pack(PUB, (*PATTERN, *Pattern("now"), 7), bytes(4) + (1_000_000).to_bytes(4, "big")),
        pack(PUB, (*PATTERN, *Pattern("end"), 7), b"1234567"), pack(PUB, (*PATTERN, *Pattern("value"), 7)),
    ]  # fmt: skip
    assert [read(message) for message in odd] == [None] * len(odd)


def test_the_longest_pattern_of_a_question_and_of_an_answer() -> None:
    longest = Question(7, Pattern(*range(255)))
    assert read(ask(longest)) == longest
    assert PATTERN_MAX == 250
    told = Frame(PUB, tuple(range(PATTERN_MAX)), b"21.5")
    assert read(say(7, 0, told)) == Answer(7, 0, Pattern(*told.tokens), told.data)
    with pytest.raises(FrameError):
        say(7, 0, Frame(PUB, tuple(range(PATTERN_MAX + 1)), b"21.5"))


def test_an_age_ends_at_its_largest() -> None:
    for age_ms in (0xFFFFFFFF, 0x100000000, 1 << 40):
        assert read(say(7, age_ms, Frame(PUB, (1,)))) == Answer(7, 0xFFFFFFFF, Pattern(1), b"")


@given(st.binary(max_size=80), st.integers(0, 40))
def test_no_bytes_make_it_raise(noise: bytes, at: int) -> None:
    read(noise)
    whole = bytearray(ask(Question(7, Pattern("a", "b"))))
    whole[at % len(whole)] ^= 1 + (noise[0] if noise else 0) % 255
    read(bytes(whole))
