"""Runs: messages of one size or layout in a row, found without a step of Python for each.

Strided slices pick the same byte of every message, so that C compares hundreds of them at once. That is
exact by induction: message k + 1 starts where k equal strides say it does.
"""

from collections.abc import Callable

from bus.wire.batch import LENGTH, LENGTH_BYTES, Buffer
from bus.wire.envelope import ENVELOPE_BYTES, MARK

LENGTH_OFFSETS = tuple(range(LENGTH_BYTES - 1, -1, -1))
"""The bytes of a batch's length, those that differ most often first."""
WORTH = 16
"""A run of fewer messages is not worth to be treated as one."""
_GROWTH = 8
_FRAME_OFFSETS = (1, 2, 3)
_ENVELOPED_OFFSETS = (0, 2, 3, *(ENVELOPE_BYTES + offset for offset in _FRAME_OFFSETS))


def layout(data: Buffer, start: int) -> tuple[int, ...]:
    """Return the offsets of the bytes that make the legal message at `start` as long as it is."""
    return _FRAME_OFFSETS if data[start + 2] < MARK else _ENVELOPED_OFFSETS


def alike(data: bytes | bytearray, start: int, stride: int, count: int, offsets: tuple[int, ...]) -> int:
    """Count the messages from `start` on that have the first one's bytes at `offsets`, up to the first other.

    `count` messages, `stride` apart, lie in `data`; the bytes at `offsets` make each as long as it is.
    """
    for offset in offsets:
        if count < 2:
            break
        at = start + offset
        column = data[at : at + count * stride : stride]
        if column.count(column[0]) < count:  # several times faster than to strip all of it
            count -= len(column.lstrip(column[:1]))
    return count


def equal_run(data: bytes | bytearray, start: int, stop: int, most: int, lead: int = 0) -> tuple[int, int]:
    """Count a batch's messages from `start` on that have the first one's size; return the stride too.

    At most `most`, all of them whole before `stop`; fewer than `WORTH` count as none. `lead` bytes stand
    before each length.
    """
    first = start + lead
    stride = LENGTH.unpack_from(data, first)[0] + LENGTH_BYTES + lead
    most = min((stop - start) // stride, most)
    return long_run(lambda limit: alike(data, first, stride, limit, LENGTH_OFFSETS), most), stride


def long_run(count: Callable[[int], int], most: int) -> int:
    """Return the length of a run, of which `count(limit)` counts at most `limit`; 0 if it is below `WORTH`.

    It looks in steps that grow, so that the work is proportional to what it finds, whatever follows.
    """
    if most < WORTH:
        return 0
    limit = WORTH
    run = count(limit)
    while run == limit < most:
        limit = min(_GROWTH * limit, most)
        run = count(limit)
    return run if run >= WORTH else 0
