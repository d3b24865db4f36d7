"""The node in C on a serial line, against the gateway's codec."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.codec import Decoder, cobs_encode, encode
from bus.embedded import tokens
from bus.embedded.buscoupler_node import bare
from bus.wire.frame import pack, unpack
from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import UartBoard, build

U32 = st.integers(0, 0xFFFFFFFF) | st.sampled_from((0, 1, 256, 0x01010101))
NAMES = st.lists(U32, max_size=255)
DATA = st.binary(max_size=600) | st.integers(250, 520).map(lambda size: b"x" * size)
FRAMES = st.builds(lambda names, data: pack(1, names, data), st.lists(U32, max_size=4), DATA)
ENVELOPES = st.builds(
    lambda flags, off, frame: (
        bytes((0xE1, flags)) + (0xF000 | len(frame) + off).to_bytes(2, "big") + b"origseqn" + frame
    ),
    st.integers(0, 17),
    st.sampled_from((0, 0, 0, 1)),
    FRAMES,
)
MESSAGES = (FRAMES | ENVELOPES | st.binary(min_size=4, max_size=30)).map(encode)
CUT = st.builds(
    lambda line, at: line[: at % len(line)] + line[at % len(line) + 1 :], MESSAGES, st.integers(0, 4000)
)
LINES = st.lists(MESSAGES | CUT | st.binary(max_size=20) | st.just(b"\0\4abc\0"), max_size=6).map(b"".join)


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the node, built here, and its cffi."""
    return build(tmp_path_factory.mktemp("cnode"))


@given(NAMES, DATA)
def test_a_frame_is_sent_as_the_gateway_encodes_it(c: Any, names: list[int], data: bytes) -> None:
    board = UartBoard(c)
    assert board.publish(names, data) == 0
    assert b"".join(board.sent) == encode(pack(1, names, data))


@given(LINES, st.integers(1, 50))
def test_every_line_gets_the_gateways_verdict(c: Any, line: bytes, piece: int) -> None:
    board, decoder = UartBoard(c), Decoder()
    assert board.subscribe([]) == 0
    for at in range(0, len(line), piece):
        board.feed(line[at : at + piece])
    messages = [bare(message) for message in decoder.feed(line)]
    assert board.frames == [tuple(unpack(frame)[1:]) for frame in messages if frame is not None]
    assert (board.shared.heard, board.shared.rejected) == (len(messages), messages.count(None))
    assert board.drops("cobs", "too_short", "crc", "oversize") == decoder.rejected


def test_every_short_run_gets_the_gateways_verdict(c: Any) -> None:
    board, decoder = UartBoard(c), Decoder()
    for run in product((1, 2, 3, 4, 9, 255), repeat=5):
        line = bytes((*run, 0))
        board.feed(line)
        assert decoder.feed(line) == []
        assert board.drops("cobs", "too_short", "crc") == decoder.rejected, run


def test_only_frames_with_the_prefix_are_passed_on(c: Any) -> None:
    board = UartBoard(c)
    assert [board.subscribe([1, 2]), board.subscribe([9])] == [0, 0]
    for names in ([1], [1, 2], [1, 2, 3], [1, 3], [9, 9]):
        board.feed(encode(pack(1, names, b"d")))
    assert [names for names, _ in board.frames] == [(1, 2), (1, 2, 3), (9, 9)]
    assert [board.subscribe([3]) for _ in range(3)] == [0, 0, -2]


def test_what_is_longer_than_the_buffer_is_counted_and_the_next_frame_comes_through(c: Any) -> None:
    board = UartBoard(c, 64)
    board.subscribe([])
    fits, long = pack(1, [5], b"x" * 52), pack(1, [5], b"x" * 53)
    board.feed(encode(long) + encode(fits) + b"\0" + cobs_encode(b"y" * 5000) + encode(fits))
    assert (len(board.frames), board.node.oversize) == (2, 2)
    assert board.publish([1], b"x" * 2049) == -1
    assert board.sent == []


def test_a_header_has_the_tokens_of_the_names() -> None:
    assert tokens.header(["fridge"]) == f"#define TOKEN_FRIDGE 0x{token('fridge'):08X}u\n"
    with pytest.raises(ValueError, match="rename"):
        tokens.header(["a-b", "a_b"])
