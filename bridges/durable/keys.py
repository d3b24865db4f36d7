"""The keys in the envelopes of a batch's messages: what they are, and new ones. Pure."""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from bridges.runs import Run, cut, find
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped

_KEY: Final = Struct(">II")
_KEY_AT: Final = 4
_U32: Final = 0xFFFFFFFF


def rekeyed(batch: Batch, journal: int, numbers: Sequence[int]) -> Batch:
    """Return messages with keys in their envelopes that are made of who numbered them first, and how.

    An envelope's own key is good for 10 s only, and may come back.
    """
    data, origin = bytearray(batch.data), (journal >> 32 ^ journal) & _U32
    run = _run(batch)
    if run is not None:
        keys = b"".join(_KEY.pack(origin, number & _U32) for number in numbers)
        for at in range(_KEY.size):
            data[LENGTH_BYTES + _KEY_AT + at :: run.stride] = keys[at :: _KEY.size]
        return Batch(bytes(data), batch.count)
    for (start, stop), number in zip(bounds(data, batch.count), numbers, strict=True):
        if is_enveloped(data, start, stop):
            _KEY.pack_into(data, start + _KEY_AT, origin, number & _U32)
    return Batch(bytes(data), batch.count)


def bounds(data: Buffer, count: int) -> Iterator[tuple[int, int]]:
    """Yield where each message of a batch begins and ends, without its length."""
    position = 0
    for _ in range(count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position)[0]
        yield start, position


def _key(data: Buffer, start: int, stop: int) -> bytes:
    return bytes(data[start + _KEY_AT : start + ENVELOPE_BYTES]) if is_enveloped(data, start, stop) else b""


def keys_of(batch: Batch) -> Iterator[bytes]:
    """Yield origin and sequence of each message, as bytes; b"" without an envelope."""
    run = _run(batch)
    if run is not None:
        return iter(cut(batch.keep(), run, LENGTH_BYTES + _KEY_AT, _KEY.size))
    return (_key(batch.data, start, stop) for start, stop in bounds(batch.data, batch.count))


def _run(batch: Batch) -> Run | None:
    """Return the run that a batch is, if all its messages have envelopes and one layout."""
    run = find(batch.keep(), 0, batch.count) if batch.count else None
    return run if run is not None and run.enveloped and run.messages == batch.count else None


def singles(batch: Batch) -> Iterator[tuple[Batch, bytes]]:
    """Yield each message of a batch alone, with its key."""
    data = batch.keep()
    for start, stop in bounds(data, batch.count):
        yield Batch(data[start - LENGTH_BYTES : stop], 1), _key(data, start, stop)
