"""The envelope: 12 bytes in front of a message on trunks (docs/wire/envelope.md).

`E1`, flags << 4 | hops left, `F000 | frame length`, origin u32, sequence u32; big-endian. Read as a
frame it would announce more than 2048 data bytes, and a frame's third byte is never above 8: the two
cannot be mistaken for each other, so every receiver accepts both. The length 0 is that of an opaque message:
one that is no frame, of any length.
"""

from struct import Struct
from typing import NamedTuple

from bus.errors import FrameError
from bus.wire.batch import Buffer
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MAX, FRAME_BYTES_MIN, frame_bytes, is_frame

MAGIC = 0xE1
MARK = 0xF0
"""The upper half of an envelope's byte 2; no frame has it there."""
LENGTH_MARK = MARK << 8
LENGTH_MASK = 0xFFFF ^ LENGTH_MARK
OPAQUE = LENGTH_MARK
"""Bytes 2 and 3 in front of an opaque message: a length that no frame has."""
_OPAQUE_BYTES = OPAQUE.to_bytes(2, "big")
LAYOUT = Struct(">BBHII")
ENVELOPE_BYTES = LAYOUT.size
MESSAGE_BYTES_MAX = ENVELOPE_BYTES + FRAME_BYTES_MAX
"""The longest message on a field medium: envelope and frame, 3084 bytes."""
HOPS_DEFAULT = 8
HOPS_MAX = 15
"""The largest second byte of an envelope without flags; only multicast fragments have flags."""
FLAG_FRAGMENT = 0x8
_U32 = 0xFFFFFFFF
_FRAME_OFFSETS = (1, 2, 3)
_ENVELOPED_OFFSETS = (0, 2, 3, *(ENVELOPE_BYTES + offset for offset in _FRAME_OFFSETS))


class Envelope(NamedTuple):
    """An envelope. `origin` and `sequence` (u32) identify a message; `hops` (0..15) are the forwards left."""

    origin: int
    sequence: int
    hops: int = HOPS_DEFAULT
    flags: int = 0

    @property
    def key(self) -> int:
        """The origin and sequence as one number."""
        return self.origin << 32 | self.sequence


class Parts(NamedTuple):
    """The parts of a message: its envelope, if it has one, and its content: a frame, or opaque bytes."""

    envelope: Envelope | None
    content: bytes
    is_frame: bool


def first_sequence(unix_s: float) -> int:
    """Return the sequence number with which an appliance begins that starts at a time: microseconds since
    1970, modulo 2^32.

    So the numbers of a restart follow those of the run before it, as long as that sent less than a million
    messages a second, and come back after 71 minutes at the soonest.
    """
    return int(unix_s * 1_000_000) & _U32


def is_enveloped(data: Buffer, start: int = 0, stop: int | None = None) -> bool:
    """Tell whether the message at `start`, which ends at `stop` or with `data`, begins with an envelope."""
    end = len(data) if stop is None else stop
    return end - start >= ENVELOPE_BYTES and data[start] == MAGIC and data[start + 2] >= MARK


def wrap(content: bytes, envelope: Envelope) -> bytes:
    """Put `envelope` in front of a frame or an opaque message. Raises `FrameError` for illegal fields."""
    origin, sequence, hops, flags = envelope
    if not (0 <= hops <= HOPS_MAX and 0 <= flags <= 15 and 0 <= origin <= _U32 >= sequence >= 0):
        raise FrameError(f"{envelope} does not fit: hops and flags 0 to 15, origin and sequence u32")
    length = LENGTH_MARK | len(content) if is_frame(content) else OPAQUE
    return LAYOUT.pack(MAGIC, flags << 4 | hops, length, origin, sequence) + content


def wrap_known(content: bytes, key: int, hops: int) -> bytes:
    """Do what `wrap` does where the caller knows that key and hops fit: in a third of the time."""
    length = LENGTH_MARK | len(content) if is_frame(content) else OPAQUE
    return LAYOUT.pack(MAGIC, hops, length, key >> 32, key & _U32) + content


def holds_frame(message: bytes, enveloped: bool) -> bool:
    """Tell whether a legal message holds a frame, by the length in its envelope where it is `enveloped`."""
    return message[2:4] != _OPAQUE_BYTES if enveloped else is_frame(message)


def take_apart(message: Buffer) -> Parts:
    """Return the parts of any message. A wrong envelope is part of an opaque message."""
    if is_enveloped(message):
        _, bits, length, origin, sequence = LAYOUT.unpack_from(message)
        content = bytes(message[ENVELOPE_BYTES:])
        framed = is_frame(content)
        if bits <= HOPS_MAX and length == LENGTH_MARK | (len(content) if framed else 0):
            return Parts(Envelope(origin, sequence, bits), content, framed)
    return Parts(None, bytes(message), is_frame(message))


def split(message: Buffer) -> tuple[Envelope | None, bytes] | None:
    """Return the envelope (None for a plain frame) and the frame; None if the message holds no frame."""
    envelope, content, framed = take_apart(message)
    return (envelope, content) if framed else None


def message_bytes(data: Buffer, start: int = 0, stop: int | None = None) -> int:
    """Return the length of the frame, or envelope and frame, at `start`, by its own header.

    Return 0 if there is neither, or if it does not end by `stop` (by default with `data`). Media that pad, or
    that put messages back to back, find a message's end so; the header of an opaque message does not tell it.
    Flags of the envelope are not checked.
    """
    end = len(data) if stop is None else stop
    inner = start
    # `is_enveloped` inlined: mixed datagrams ask for each message, and a call is a tenth of that
    if end - start > ENVELOPE_BYTES and data[start] == MAGIC and data[start + 2] >= MARK:
        inner += ENVELOPE_BYTES
        if (data[start + 2] << 8 | data[start + 3]) & LENGTH_MASK != frame_bytes(data, inner):
            return 0
    found = inner + frame_bytes(data, inner)
    return found - start if inner < found <= end else 0


def is_whole(message: Buffer) -> bool:
    """Tell whether `message` is one whole frame, or envelope and frame, as its own header has it."""
    size = len(message)
    if size >= FRAME_BYTES_MIN and message[2] < MARK:  # `message_bytes` inlined for the most frequent kind
        announced = message[2] << 8 | message[3]
        return announced <= DATA_BYTES_MAX and FRAME_BYTES_MIN + 4 * message[1] + announced == size
    return 0 < message_bytes(message) == size


def layout(data: Buffer, start: int) -> tuple[int, ...]:
    """Return the offsets of the bytes that determine the length of the legal message at `start`."""
    return _FRAME_OFFSETS if data[start + 2] < MARK else _ENVELOPED_OFFSETS
