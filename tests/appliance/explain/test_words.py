"""What crosses the local socket of a trace: it comes out as it went in, and nothing else is taken."""

import pytest

from appliance.explain.hop import Exit, Hop
from appliance.explain.words import (
    ANSWER_BYTES,
    Answer,
    Question,
    pack_answer,
    pack_question,
    unpack_answer,
    unpack_question,
)

EXIT = Exit("can can0", 5, 2, True, "hall", ("pattern",), ("late",))
HOP = Hop("bus p", "gw", "listen tcp://[::]:1", 4, "hall", ("loop",), (EXIT, Exit("uart")), ("down",))


def test_questions_and_answers_come_out_as_they_went_in() -> None:
    question = Question("send", "trace 1", 1000, "bus p: dial ipc:///x", b"\x01\xff")
    answer = Answer("t", "gw", ("p",), "/t.yaml", "busy", ("bus p: uart",), (HOP,), True)
    assert unpack_question(pack_question(question)) == question
    assert unpack_answer(pack_answer(answer)) == answer
    assert answer.title == "t on gw (p)"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"verb": "stop"}',
        b'{"verb": "send", "mark": 1}',
        b'{"verb": "send", "frame": "0"}',
        b'{"verb": "watch", "watch_ms": "1"}',
        b'{"verb": "watch", "watch_ms": true}',
    ],
)
def test_what_is_no_question_is_not_taken(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever its words are
        unpack_question(line)


@pytest.mark.parametrize(
    "line",
    [b"", b"1", b'{"hops": 1}', b'{"hops": [1]}', b'{"hops": [{"ways": [[]]}]}', b'{"only": "x"}'],
)
def test_what_is_no_answer_is_not_taken(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever its words are
        unpack_answer(line)


def test_what_is_left_out_has_its_default() -> None:
    assert unpack_question(b'{"verb": "links"}') == Question("links", "", 0, "", b"")
    assert (Question("links").watch_ms, Exit("can")[1:4], Answer("t", "", (), "").more) == (
        0,
        (None, 0, False),
        False,
    )
    (hop,) = unpack_answer(b'{"hops": [{"ways": [{}]}]}').hops
    assert hop == Hop("", "", "", 0, "", (), (Exit("", None, 0, False),))


def test_an_answer_with_many_hops_is_read_whole() -> None:
    hops = (HOP._replace(exits=(EXIT,) * 100),) * 100
    assert len(pack_answer(Answer("t", "gw", (), "/t.yaml", hops=hops))) < ANSWER_BYTES
