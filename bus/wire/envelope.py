"""The envelope: 12 bytes in front of a frame on trunks (docs/wire/envelope.md).

`E1`, flags << 4 | hops left, `F000 | frame length`, origin u32, sequence u32; big-endian. Read as a
frame it would announce more than 2048 data bytes, and a frame's third byte is never above 8: the two
cannot be mistaken for each other, so every receiver accepts both.
"""

from struct import Struct
from typing import NamedTuple

from bus.errors import FrameError
from bus.wire.batch import Buffer
from bus.wire.frame import FRAME_BYTES_MAX, is_frame

MAGIC = 0xE1
LAYOUT = Struct(">BBHII")
ENVELOPE_BYTES = LAYOUT.size
MESSAGE_BYTES_MAX = ENVELOPE_BYTES + FRAME_BYTES_MAX  # a frame in its envelope
HOPS_DEFAULT = 8
FLAG_FRAGMENT = 0x8


class Envelope(NamedTuple):
    """`origin` and `sequence` (u32) identify a frame; `hops` (0..15) are the forwards left."""

    origin: int
    sequence: int
    hops: int = HOPS_DEFAULT
    flags: int = 0


def wrap(frame: bytes, envelope: Envelope) -> bytes:
    """`frame` behind its envelope. Raises `FrameError` if a field does not fit."""
    origin, sequence, hops, flags = envelope
    if not (0 <= hops <= 15 and 0 <= flags <= 15 and 0 <= origin <= 0xFFFFFFFF >= sequence >= 0):
        raise FrameError(f"{envelope} does not fit: hops and flags 0 to 15, origin and sequence u32")
    return LAYOUT.pack(MAGIC, flags << 4 | hops, 0xF000 | len(frame), origin, sequence) + frame


def split(message: Buffer) -> tuple[Envelope | None, bytes] | None:
    """Envelope (None for a plain frame) and frame; None if the message is neither."""
    if len(message) > ENVELOPE_BYTES and message[0] == MAGIC and message[2] >= 0xF0:
        _, bits, length, origin, sequence = LAYOUT.unpack_from(message)
        frame = bytes(message[ENVELOPE_BYTES:])
        if length & 0xFFF != len(frame) or bits >> 4 or not is_frame(frame):
            return None
        return Envelope(origin, sequence, bits & 15, bits >> 4), frame
    return (None, bytes(message)) if is_frame(message) else None
