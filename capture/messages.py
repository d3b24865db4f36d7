"""The columns of messages, many at a time: envelope, frame and payload of each, by numpy and Arrow.

Needs pyarrow and numpy.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bus.wire.envelope import ENVELOPE_BYTES, HOPS_MAX, LENGTH_MARK, MAGIC, MARK, OPAQUE
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
PAD: Final = bytes(ENVELOPE_BYTES + FRAME_BYTES_MIN)
"""The bytes behind messages, so that looking at a header never leaves the buffer."""
NO_MESSAGE: Final = "origin", "seq", "hops", "type", "tokens"
"""Columns that are null in rows of no message."""


def columns(
    data: bytes, start: Ints, size: Ints, pattern: Sequence[int] = ()
) -> tuple[dict[str, Any], Flags | None]:
    """Return the columns of messages in `data`, and which of them fit the pattern (None: all).

    `PAD` stands behind the last message.
    """
    octets = np.frombuffer(data, np.uint8)
    # as `bus.wire.envelope.take_apart`, for a whole column of messages
    enveloped = (size >= ENVELOPE_BYTES) & (octets[start] == MAGIC) & (octets[start + 2] >= MARK)
    frame = start + enveloped * ENVELOPE_BYTES
    tokens = octets[frame + 1].astype(np.int64)
    data_bytes = _number(octets, frame + 2, 2)
    expected = enveloped * ENVELOPE_BYTES + FRAME_BYTES_MIN + 4 * tokens + data_bytes
    announced = _number(octets, start + 2, 2)
    framed = (
        (size - enveloped * ENVELOPE_BYTES >= FRAME_BYTES_MIN)
        & (expected == size)
        & (data_bytes <= DATA_BYTES_MAX)
    )
    named = np.where(framed, LENGTH_MARK + size - ENVELOPE_BYTES, OPAQUE)
    whole = enveloped & (octets[start + 1] <= HOPS_MAX) & (announced == named)
    legal = framed & (whole | ~enveloped)
    enveloped = whole
    content = start + enveloped * ENVELOPE_BYTES
    first = np.where(legal, content + FRAME_BYTES_MIN, content)
    last = np.where(legal, first + 4 * tokens, content)
    keep = _fits(octets, first, tokens * legal, pattern) if pattern else None
    return {
        "message_bytes": size,
        "origin": _known(_number(octets, start + 4, 4), enveloped),
        "seq": _known(_number(octets, start + 8, 4), enveloped),
        "hops": _known(octets[start + 1] & 15, enveloped, pa.int16()),
        "type": _known(octets[frame], legal, pa.int16()),
        "tokens": _tokens(data, first, last, legal),
        "payload": gather(data, last, start + size),
    }, keep


def _fits(octets: npt.NDArray[np.uint8], first: Ints, tokens: Ints, pattern: Sequence[int]) -> Flags:
    """Return which messages begin with the pattern's tokens."""
    keep = tokens >= len(pattern)
    for number, token in enumerate(pattern):
        at = np.where(keep, first + 4 * number, 0)
        keep &= _number(octets, at, 4) == token
    return keep


def _known(values: npt.NDArray[Any], known: Flags, kind: Any = None) -> pa.Array:
    return pa.array(values.astype(np.int64), mask=~known).cast(kind or pa.int64())


def _number(octets: npt.NDArray[np.uint8], at: Ints, width: int) -> Ints:
    """Return the big-endian numbers of `width` bytes at the offsets `at`."""
    value = octets[at].astype(np.int64)
    for offset in range(1, width):
        value = value << 8 | octets[at + offset]
    return value


def gather(data: bytes, start: Ints, stop: Ints) -> pa.Array:
    """Return `data[start:stop]` of each pair, copied by Arrow."""
    offsets = np.empty(2 * len(start), np.int32)
    offsets[0::2], offsets[1::2] = start, stop
    pieces = pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return pieces.take(pa.array(np.arange(0, len(offsets), 2)))


def _tokens(data: bytes, start: Ints, stop: Ints, legal: Flags) -> pa.Array:
    """Return the tokens between two offsets as lists of u32; null where there is no legal frame."""
    pieces = gather(data, start, stop)
    ends = np.concatenate([[0], np.cumsum(stop - start)])
    raw = pieces.buffers()[2]
    words = np.frombuffer(raw, ">u4", int(ends[-1]) // 4) if ends[-1] else np.empty(0, ">u4")
    offsets = pa.array((ends // 4).astype(np.int32))
    values = pa.array(words.astype(np.uint32))
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array(~legal))
