"""The TMQ frame: type u8, token count u8, data length u16, tokens u32 each, data; big-endian.

At most 255 tokens and 2048 data bytes, so 4 to 3072 bytes (docs/wire/frame.md). All fields are
unsigned: the 2015 reference packs type and count signed, and so cannot send 0x80 or 128 tokens.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from bus.errors import FrameError
from bus.wire.batch import Buffer, check_bytes

PUB, SUB, CACHE, REMOVE, BROKER, BRIDGE = 0x01, 0x02, 0x04, 0x08, 0x40, 0x80
TOKENS_MAX = 255
DATA_BYTES_MAX = 2048
HEADER = Struct(">BBH")
FRAME_BYTES_MIN = HEADER.size
FRAME_BYTES_MAX = FRAME_BYTES_MIN + 4 * TOKENS_MAX + DATA_BYTES_MAX


class Frame(NamedTuple):
    """The parts of a frame: `type` 0..255, `tokens` of u32, `data` up to 2048 bytes."""

    type: int
    tokens: tuple[int, ...]
    data: bytes = b""


@lru_cache(maxsize=256)
def _layout(count: int) -> Struct:
    return Struct(f">BBH{count}I")


def pack(type: int, tokens: Sequence[int], data: Buffer = b"") -> bytes:
    """Return one frame as bytes.

    Raises `FrameError` that names the field and its limit, and `TypeError` for data that are not bytes.
    """
    try:
        if len(tokens) <= TOKENS_MAX and len(data) <= DATA_BYTES_MAX:
            return _layout(len(tokens)).pack(type, len(tokens), len(data), *tokens) + data
    except (StructError, TypeError):
        check_bytes(data)
    raise FrameError(_why_not(type, tokens, data))


def _why_not(type: int, tokens: Sequence[int], data: Buffer) -> str:
    if len(tokens) > TOKENS_MAX:
        return f"{len(tokens)} tokens: a frame carries at most {TOKENS_MAX}"
    if len(data) > DATA_BYTES_MAX:
        return f"{len(data)} data bytes: a frame carries at most {DATA_BYTES_MAX}"
    if not isinstance(type, int) or not 0 <= type <= 0xFF:
        return f"type {type!r}: must be 0 to 255"
    bad = next((t for t in tokens if not isinstance(t, int) or not 0 <= t <= 0xFFFFFFFF), None)
    return f"token {bad!r}: must be 0 to 4294967295 (text becomes a token by token())"


def frame_bytes(buffer: Buffer, offset: int = 0) -> int:
    """Return the length that the header at `offset` announces; 0 if that is illegal or incomplete."""
    if len(buffer) < offset + FRAME_BYTES_MIN:
        return 0
    _, count, size = HEADER.unpack_from(buffer, offset)
    return FRAME_BYTES_MIN + 4 * count + size if size <= DATA_BYTES_MAX else 0


def is_frame(buffer: Buffer) -> bool:
    """Return whether `buffer` is one whole legal frame: its length is what its header announces."""
    return frame_bytes(buffer) == len(buffer) > 0


def unpack(buffer: Buffer) -> Frame:
    """Return the parts of exactly one frame. Raises `FrameError` that says what is wrong."""
    if not is_frame(buffer):
        raise FrameError(_why_illegal(buffer))
    kind, count, _, *tokens = _layout(buffer[1]).unpack_from(buffer)
    return Frame(kind, tuple(tokens), bytes(buffer[FRAME_BYTES_MIN + 4 * count :]))


def published(message: Buffer, beginning: Sequence[int]) -> Frame | None:
    """Return the frame in a message if it publishes under a pattern that begins so; None for all else."""
    if not is_frame(message):
        return None
    frame = unpack(message)
    return frame if frame.type == PUB and frame.tokens[: len(beginning)] == tuple(beginning) else None


def _why_illegal(buffer: Buffer) -> str:
    if len(buffer) < FRAME_BYTES_MIN:
        return f"{len(buffer)} bytes: a frame has at least {FRAME_BYTES_MIN}"
    _, count, size = HEADER.unpack_from(buffer)
    if size > DATA_BYTES_MAX:
        return f"data length {size}: a frame carries at most {DATA_BYTES_MAX}"
    announced = FRAME_BYTES_MIN + 4 * count + size
    return f"{len(buffer)} bytes, but the header announces {announced} ({count} tokens, {size} data bytes)"
