"""WebSocket frames: what we encode is read by another implementation, and what that encodes by us."""

import random
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame
from websockets.streams import StreamReader

from bus.wire.batch import from_payloads
from bus.wire.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    FRAME_BYTES,
    HEAD_BYTES_MAX,
    KEY_BYTES,
    PING,
    PONG,
    TEXT,
    Keys,
    control,
    divide,
    encode,
    head,
)

KEYS: dict[str, Keys | None] = {"plain": None, "masked": random.Random(1).randbytes}
SIZES = st.sampled_from((0, 1, 2, 64, 125, 126, 127, 1000, 65535, 65536, 70_000))


def frames_of(wire: bytes, masked: bool) -> list[Frame]:
    """Return the frames in `wire` as the library `websockets` reads them."""
    reader = StreamReader()
    reader.feed_data(wire)
    reader.feed_eof()
    found = list[Frame]()
    while not ended(reader):
        found.append(result(Frame.parse(reader.read_exact, mask=masked, max_size=None)))
    return found


def ended(reader: StreamReader) -> bool:
    return bool(result(reader.at_eof()))


def result(steps: Generator[None, None, Any]) -> Any:
    try:
        next(steps)
    except StopIteration as done:
        return done.value
    raise AssertionError("a frame is not whole")


def messages(sizes: list[int]) -> list[bytes]:
    return [bytes([number % 256]) * size for number, size in enumerate(sizes)]


@given(st.lists(st.tuples(SIZES, st.sampled_from((1, 3, 20, 200))), max_size=6), st.sampled_from(list(KEYS)))
def test_another_implementation_reads_the_same_messages(runs: list[tuple[int, int]], kind: str) -> None:
    bodies = messages([size for size, count in runs for _ in range(count if size < 2000 else 2)])
    wire = encode(from_payloads(bodies), KEYS[kind])
    found = frames_of(wire, kind == "masked")
    assert [frame.data for frame in found] == bodies
    assert all(frame.fin and frame.opcode == BINARY for frame in found)
    assert [body for _, body in divide(wire)] == bodies
    assert [end for end, _ in divide(wire)][-1:] == ([len(wire)] if bodies else [])


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("size", [FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES])
def test_only_a_message_that_nng_would_refuse_goes_in_several_frames(kind: str, size: int) -> None:
    bodies = [b"before", random.Random(size).randbytes(size), b"after"]
    wire = encode(from_payloads(bodies), KEYS[kind])
    found = frames_of(wire, kind == "masked")
    assert max(len(frame.data) for frame in found) <= FRAME_BYTES
    assert len(found) == 2 + -(-size // FRAME_BYTES)
    assert b"".join(bytes(frame.data) for frame in found) == b"".join(bodies)
    assert [body for _, body in divide(wire)] == bodies


def test_every_frame_of_a_dialer_has_a_key_of_its_own() -> None:
    asked, source = list[int](), random.Random(2)

    def keys(size: int) -> bytes:
        asked.append(size)
        return source.randbytes(size)

    wire = encode(from_payloads([bytes(8)] * 1000), keys)
    assert sum(asked) == 4000
    assert len({wire[start + 2 : start + 6] for start in range(0, len(wire), 14)}) == 1000


def test_the_example_of_the_page() -> None:
    body = bytes.fromhex("020200051122334455667788 68656c6c6f")
    batch = from_payloads([body])
    assert encode(batch).hex(" ") == "82 11 " + body.hex(" ")
    assert encode(batch, lambda size: bytes.fromhex("a1b2c3d4")[:size]).hex(" ") == (
        "82 91 a1 b2 c3 d4 a3 b0 c3 d1 b0 90 f0 90 f4 d4 b4 5c c9 d7 af b8 ce"
    )
    assert control(PING, b"hi").hex(" ") == "89 02 68 69"
    assert head(126).hex(" ") == "82 7e 00 7e"


def test_no_head_is_longer_than_it_says() -> None:
    sizes = (0, 125, 126, 65_535, 65_536, 1 << 40)
    assert [len(head(size)) for size in sizes] == [2, 2, 4, 4, 10, 10]
    assert len(head(1 << 40)) + KEY_BYTES == HEAD_BYTES_MAX


def test_opcodes_are_those_of_rfc_6455() -> None:
    assert (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG) == (0x0, 0x1, 0x2, 0x8, 0x9, 0xA)
