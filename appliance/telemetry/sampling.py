"""Sampling of messages by their envelopes, and the ids of their traces. Pure.

All gateways choose the same messages, and make the same ids, without a byte on the wire: both come from the
origin and the sequence of the envelope. A sequence comes back, at failover with the same data after some
20 s, so the id has the time, too, in steps of 16 s, and each key has its own first step.
"""

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct
from typing import Final

from bridges.runs import RUN_MIN, Run, column, find
from bus.wire.batch import LENGTH_BYTES, Batch

STEP_NS: Final = 16_000_000_000
"""The length of the steps of time in ids. Clocks that differ by 1 s split one trace in 16."""
_SEQUENCE: Final = LENGTH_BYTES + 8
_HEAD: Final = Struct(">Q8xI")  # of a message in a batch: its length, and the sequence of its envelope


def sampled(batch: Batch, one_in: int) -> Iterator[bytes]:
    """Yield the enveloped messages of a batch whose sequence is a multiple of `one_in`, a power of two."""
    data, count, mask = batch.keep(), batch.count, one_in - 1
    run = find(data, 0, count) if count >= RUN_MIN else None
    places = _each(data, count) if run is None or run.messages != count else _low(data, run, mask)
    for start, stop, sequence in places:
        if not sequence & mask:
            yield data[start:stop]


def _each(data: bytes, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, stop and sequence of each message."""
    position, head_at = 0, _HEAD.unpack_from
    for _ in range(count):
        length, sequence = head_at(data, position)
        start = position + LENGTH_BYTES
        position = start + length
        yield start, position, sequence


def _low(data: bytes, run: Run, mask: int) -> Iterator[tuple[int, int, int]]:
    """Yield what `_each` does, for messages of a run whose last byte of the sequence may fit."""
    low, bits, number = column(data, run, _SEQUENCE + 3), mask & 0xFF, -1
    fits = low if bits == 0xFF else bytes(byte & bits for byte in low)
    while (number := fits.find(0, number + 1)) >= 0:
        at = run.start + number * run.stride
        yield at + LENGTH_BYTES, at + run.stride, _HEAD.unpack_from(data, at)[1]


def trace_id(key: int, now_ns: int) -> str:
    """Return the id of the trace of a message by its key (`Envelope.key`) and the time, as 32 hex digits."""
    name = key.to_bytes(8)
    phase = int.from_bytes(blake2b(name, digest_size=8, person=b"phase").digest()) % STEP_NS
    step = (now_ns + phase) // STEP_NS
    return blake2b(name + step.to_bytes(8), digest_size=16, person=b"buscoupler").hexdigest()


def span_id(trace: str, place: str = "") -> str:
    """Return the id of a span of a trace, 16 hex digits: that of the first gateway, or of a place."""
    return blake2b(f"{trace}/{place}".encode(), digest_size=8, person=b"span").hexdigest()
