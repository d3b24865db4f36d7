"""Plain bytes: chunks by silence and size, numbered, so that what is missing is told at the far end."""

import random
from typing import Any

import pytest

from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.bytes.streams import STREAMS_MAX, Streams
from bridges.protocols.translator import Translator
from bus.wire.frame import pack, unpack
from tests.bridges.protocols.spoken_support import message, translator

NEAR = Bytes(receive=("near",), send=("far",), chunk_bytes=8)
FAR = Bytes(receive=("far",), send=("near",), chunk_bytes=8)


def chunks(made: Translator[bytes], data: bytes, now_s: float = 0.0) -> list[bytes]:
    found = made.receive([data], now_s)
    return [*found, *made.turn(made.due_s).messages] if made.due_s < 9e9 else found


def written(made: Translator[bytes], frames: list[bytes]) -> bytes:
    return b"".join(item for frame in frames for item in made.send(frame, 0.0).items)


def test_a_chunk_ends_when_the_line_is_silent_or_when_it_is_full() -> None:
    made = translator(NEAR)
    assert made.receive([b"abc"], 1.0) == []
    assert made.due_s == pytest.approx(1.005)
    assert made.receive([b"de"], 1.004) == []
    assert made.turn(1.005).messages == []  # silence began anew
    (one,) = made.turn(1.009).messages
    assert unpack(one).data == b"abcde"
    assert [unpack(one).data for one in made.receive([b"0123456789abcdefg"], 2.0)] == [
        b"01234567",
        b"89abcdef",
    ]
    assert [unpack(one).data for one in made.end(2.0)] == [b"g"]


def test_on_a_slow_line_silence_is_three_bytes_long() -> None:
    made = translator(NEAR, byte_s=0.01)
    made.receive([b"a"], 0.0)
    assert made.due_s == pytest.approx(0.03)


def test_without_a_silence_each_read_is_a_chunk_at_once() -> None:
    made = translator(Bytes(receive=("near",), chunk_bytes=4, silence_ms=0), byte_s=0.01)
    assert [unpack(one).data for one in made.receive([b"abcdef"], 1.0)] == [b"abcd", b"ef"]
    assert made.due_s == float("inf")
    assert made.end(2.0) == []


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_cross_exactly_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    near, far = translator(NEAR), translator(FAR)
    data = chance.randbytes(5000)
    frames = list[bytes]()
    at = 0
    while at < len(data):
        size = chance.randrange(1, 50)
        frames += near.receive([data[at : at + size]], 0.0)
        at += size
    frames += near.end(0.0)
    assert written(far, frames) == data
    assert not far.wire.stats.rejected
    streams = {unpack(frame).tokens[1] for frame in frames}
    assert len(streams) == 1
    assert [unpack(frame).tokens[2] for frame in frames] == list(range(len(frames)))


def test_each_opening_is_another_stream() -> None:
    first, second = chunks(translator(NEAR), b"x"), chunks(translator(NEAR), b"x")
    assert unpack(first[0]).tokens[1] != unpack(second[0]).tokens[1]


def test_chunks_are_numbered_from_0_again_behind_the_last_number() -> None:
    made = translator(NEAR)
    made._number = (1 << 32) - 1  # type: ignore[attr-defined]  # noqa: SLF001  # as after days
    assert [unpack(one).tokens[2] for one in made.receive([bytes(24)], 0.0)] == [(1 << 32) - 1, 0, 1]


def test_a_lost_chunk_is_counted_and_told_and_the_rest_goes_on() -> None:
    near, far = translator(NEAR), translator(FAR)
    frames = chunks(near, b"0123456789abcdefghijklmnopqrstuvwxyz")
    assert len(frames) == 5
    assert written(far, [frames[0], *frames[3:]]) == b"01234567opqrstuvwxyz"
    assert far.wire.stats.rejected == {"gap": 2}
    assert far.condition == "chunks are missing in what leaves here: see the counts"
    assert far.over == ""
    far.turn(far.due_s)
    assert far.condition == ""


def test_a_gap_ends_the_conversation_if_that_is_asked_for() -> None:
    near, far = translator(NEAR), translator(Bytes(receive=("far",), send=("near",), on_gap="end"))
    frames = chunks(near, b"0123456789abcdefghij")
    assert written(far, [frames[0], frames[2]]) == b"01234567"
    assert far.over == "a chunk is missing in what leaves here"
    assert far.send(frames[2], 0.0).why == "late chunk"


def test_a_chunk_behind_a_later_one_or_twice_is_not_written() -> None:
    near, far = translator(NEAR), translator(FAR)
    frames = chunks(near, b"0123456789abcdefghij")
    assert written(far, [frames[0], frames[2]])
    assert [far.send(frame, 0.0).why for frame in (frames[1], frames[2])] == ["late chunk"] * 2


def test_a_stream_that_had_begun_is_told() -> None:
    far = translator(FAR)
    assert written(far, chunks(translator(NEAR), b"0123456789")[1:]) == b"89"
    assert far.wire.stats.rejected == {"joined": 1}


def test_numbers_go_round_and_streams_are_bounded() -> None:
    streams = Streams()
    assert streams.place(7, 2**32 - 1).is_joined
    assert streams.place(7, 0) == streams.place(8, 0) == (0, False, False)
    assert streams.place(8, 1 + 2**31).is_late
    assert streams.place(8, 2**31) == (2**31 - 1, False, False)
    for stream in range(100, 100 + STREAMS_MAX):
        streams.place(stream, 0)
    assert streams.place(7, 1).is_joined  # it was forgotten


@pytest.mark.parametrize(
    ("pattern", "items"),
    [("near", [b"x"]), ("near/5/0", [b"x"]), ("near/5", []), ("near/5/0/1", []), ("else", [])],
)
def test_a_frame_with_the_pattern_alone_is_written_as_it_is(pattern: str, items: Any) -> None:
    far = translator(FAR)
    sent = far.send(message(pattern, b"x"), 0.0)
    assert list(sent.items) == items
    assert sent.why == ("" if items else "not sent here")
    assert translator(Bytes()).send(pack(1, (1, 2), b""), 0.0).why == "not sent here"


def test_check_warns_of_one_pattern_both_ways() -> None:
    assert [problem.is_error for problem in Bytes(receive=("a",), send=("a",)).problems()] == [False]
    assert not list(NEAR.problems())
