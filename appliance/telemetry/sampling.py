"""Sampling of messages by their envelopes, and the ids of their traces. Pure.

All gateways choose the same messages, and make the same ids, without a byte on the wire: both come from the
origin and the sequence of the envelope. A sequence comes back, at failover with the same data after some
20 s, so the id has the time, too, in steps of 16 s, and each key has its own first step.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from bridges.runs import RUN_MIN, column, find
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch

STEP_NS: Final = 16_000_000_000
"""The length of the steps of time in ids. Clocks that differ by 1 s split one trace in 16."""
_SEQUENCE: Final = LENGTH_BYTES + 8


def sampled(batch: Batch, one_in: int) -> Iterator[bytes]:
    """Yield the enveloped messages of a batch whose sequence is a multiple of `one_in`, a power of two."""
    data, count, mask = batch.keep(), batch.count, one_in - 1
    if count >= RUN_MIN:
        run = find(data, 0, count)
        if run is not None and run.enveloped and run.messages == count:
            low = column(data, run, _SEQUENCE + 3)
            if mask >= 0xFF and 0 not in low:  # so it is for nearly all batches
                return
    position = 0
    for _ in range(count):
        start = position + LENGTH_BYTES
        stop = start + LENGTH.unpack_from(data, position)[0]
        if not int.from_bytes(data[start + 8 : start + 12]) & mask:
            yield data[start:stop]
        position = stop


def trace_id(key: int, now_ns: int) -> str:
    """Return the id of the trace of a message by its key (`Envelope.key`) and the time, as 32 hex digits."""
    name = key.to_bytes(8)
    phase = int.from_bytes(blake2b(name, digest_size=8, person=b"phase").digest()) % STEP_NS
    step = (now_ns + phase) // STEP_NS
    return blake2b(name + step.to_bytes(8), digest_size=16, person=b"buscoupler").hexdigest()


def span_id(trace: str, place: str = "") -> str:
    """Return the id of a span of a trace, 16 hex digits: that of the first gateway, or of a place."""
    return blake2b(f"{trace}/{place}".encode(), digest_size=8, person=b"span").hexdigest()
