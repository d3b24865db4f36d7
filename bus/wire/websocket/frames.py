"""WebSocket frames: their layout, and the encoder from a batch.

A message of a bus is one binary message, in one frame unless it is longer than `FRAME_BYTES`, which is the
longest frame that NNG takes by default. A dialling end masks each frame with a key of its own (RFC 6455,
5.3).
"""

from collections.abc import Callable, Iterator
from itertools import chain
from struct import Struct

from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, equal_run

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform for which that library has no binary
    from websockets.utils import apply_mask

__all__ = ["apply_mask"]

FIN, MASKED = 0x80, 0x80
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY_BYTES = 4
HEAD_BYTES_MAX = 10 + KEY_BYTES
CONTROL_BYTES_MAX = 125
FRAME_BYTES = 1 << 20
WALK = 256  # messages of mixed sizes between two looks for a run
U16, U64 = 126, 127  # in place of a length: 2 or 8 bytes with the length follow

_SHORT = [bytes((FIN | BINARY, size)) for size in range(U16)]
_SHORT_MASKED = [bytes((FIN | BINARY, MASKED | size)) for size in range(U16)]
_HEAD_U16, _HEAD_U64 = Struct(">BBH"), Struct(">BBQ")

Keys = Callable[[int], bytes]
"""A function that returns a number of unpredictable bytes."""


def head(size: int, first: int = FIN | BINARY, mask: int = 0) -> bytes:
    """Return the head of a frame, without its key."""
    if size < U16:
        return bytes((first, mask | size))
    if size < 1 << 16:
        return _HEAD_U16.pack(first, mask | U16, size)
    return _HEAD_U64.pack(first, mask | U64, size)


def control(opcode: int, payload: bytes = b"", keys: Keys | None = None) -> bytes:
    """Return a control frame, masked if there are `keys`."""
    return _frame(payload, FIN | opcode, keys)


def _frame(payload: bytes, first: int, keys: Keys | None) -> bytes:
    if keys is None:
        return head(len(payload), first) + payload
    key = keys(KEY_BYTES)
    return head(len(payload), first, MASKED) + key + apply_mask(payload, key)


def encode(batch: Batch, keys: Keys | None = None) -> bytes:
    """Return the frames of a batch, masked if there are `keys`."""
    data, position, left, parts = batch.keep(), 0, batch.count, list[bytes]()
    while left:
        run, stride = _run(data, position, left) if keys is None else (0, 0)
        if run:
            parts.append(_equal(data, position, run, stride))
            position += run * stride
        else:
            run = min(left, WALK)
            position = _each(data, position, run, keys, parts)
        left -= run
    return b"".join(parts)


def _run(data: bytes, start: int, count: int) -> tuple[int, int]:
    """Count the messages of one size from `start` on; 0 if they are few or long. Return the stride too."""
    stride = LENGTH.unpack_from(data, start)[0] + LENGTH_BYTES
    if stride - LENGTH_BYTES > FRAME_BYTES:
        return 0, 0
    return equal_run(data, start, len(data), count)


def _equal(data: bytes, start: int, run: int, stride: int) -> bytes:
    """Return the frames of `run` messages of one size; no step of Python for each."""
    size = stride - LENGTH_BYTES
    bodies = Struct(f"{LENGTH_BYTES}x{size}s").iter_unpack(memoryview(data)[start : start + run * stride])
    first = head(size)
    return first + first.join(chain.from_iterable(bodies))


def _each(data: bytes, position: int, count: int, keys: Keys | None, parts: list[bytes]) -> int:
    """Append the frames of `count` messages to `parts`; return where the next message begins."""
    unpack, short, mask = LENGTH.unpack_from, _SHORT if keys is None else _SHORT_MASKED, MASKED if keys else 0
    pool = keys(KEY_BYTES * count) if keys else b""
    for number in range(count):
        start = position + LENGTH_BYTES
        position = start + unpack(data, position)[0]
        size = position - start
        if size > FRAME_BYTES:
            parts.extend(_pieces(data[start:position], keys))
            continue
        parts.append(short[size] if size < U16 else head(size, mask=mask))
        if mask:
            key = pool[KEY_BYTES * number : KEY_BYTES * (number + 1)]
            parts += key, apply_mask(data[start:position], key)
        else:
            parts.append(data[start:position])
    return position


def _pieces(body: bytes, keys: Keys | None) -> Iterator[bytes]:
    """Yield the frames of one message."""
    last = max(0, len(body) - 1) // FRAME_BYTES
    for number in range(last + 1):
        opcode = CONTINUATION if number else BINARY
        piece = body[number * FRAME_BYTES : (number + 1) * FRAME_BYTES]
        yield _frame(piece, opcode | (FIN if number == last else 0), keys)


def divide(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the end and the body of each message in bytes that `encode` made."""
    position, body = 0, b""
    while position < len(data):
        first = data[position]
        start, size, key = _lengths(data, position)
        position = start + size
        body += apply_mask(data[start:position], key) if key else data[start:position]
        if first & FIN:
            yield position, body
            body = b""


def _lengths(data: bytes, position: int) -> tuple[int, int, bytes]:
    """Return where the payload of a frame starts, its size, and the key (empty if it is not masked)."""
    size, start = data[position + 1] & ~MASKED, position + 2
    wide = {U16: 2, U64: 8}.get(size, 0)
    if wide:
        size, start = int.from_bytes(data[start : start + wide], "big"), start + wide
    key = data[start : start + KEY_BYTES] if data[position + 1] & MASKED else b""
    return start + len(key), size, key
