"""The format of frames back to back on a reliable stream, each with or without envelope (docs/wire/tcp.md).

Sensors often send many messages with the same layout in a row. Strided slices find such runs, so that C code
compares hundreds of headers at once. Messages of mixed layouts are parsed one header at a time.
"""

from struct import Struct

from bridges.media.likeness import likeness
from bridges.media.uart import codec as uart
from bus.input import InputWatch
from bus.ledger import Stats
from bus.wire.batch import (
    LENGTH,
    LENGTH_BYTES,
    LENGTH_OFFSETS,
    Batch,
    alike,
    batch_of,
    long_run,
    payloads,
)
from bus.wire.envelope import ENVELOPE_BYTES, LENGTH_MARK, LENGTH_MASK, MAGIC, MESSAGE_BYTES_MAX, layout
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN

_HEAD = Struct(">BBH")  # of a frame: type, tokens, data length; of an envelope: magic, hops, F000 | length
_PREFIXES = tuple(LENGTH.pack(size) for size in range(MESSAGE_BYTES_MAX + 1))
_RUN_MIN = 16  # shortest run of equal layouts that is worth a search by slices
_WEB = (b"HTTP/", b"GET ", b"HEAD ", b"POST ")  # lines of text, and of no device
_WALK = 256  # frames parsed one by one between two such searches
_SOON = 256  # after a run of so many the next search is at once: shorter ones in a row are mixed layouts too

ILLEGAL = -1
_SAMPLE_BYTES = 256


def extent(data: bytes, start: int, stop: int) -> int:
    """Return the length of the message at `start`, in bytes, by its header.

    Returns 0 if `data[:stop]` has too little of the header, and `ILLEGAL` if there is no legal header. The
    message may be longer than the data. This function does not use `bus.wire.envelope.message_bytes`, because
    a stream must distinguish an incomplete header from an illegal one, and because `_walk` calls it for every
    enveloped message.
    """
    if stop - start < FRAME_BYTES_MIN:
        return 0
    kind: int
    tokens: int
    size: int
    kind, tokens, size = _HEAD.unpack_from(data, start)
    if size <= DATA_BYTES_MAX:
        return FRAME_BYTES_MIN + 4 * tokens + size
    if kind != MAGIC or size < LENGTH_MARK:
        return ILLEGAL
    return _enveloped(data, start + ENVELOPE_BYTES, stop, size & LENGTH_MASK)


def _enveloped(data: bytes, start: int, stop: int, announced: int) -> int:
    if stop - start < FRAME_BYTES_MIN:
        return 0
    _, tokens, size = _HEAD.unpack_from(data, start)
    legal = size <= DATA_BYTES_MAX and FRAME_BYTES_MIN + 4 * tokens + size == announced
    return ENVELOPE_BYTES + announced if legal else ILLEGAL


def cut(data: bytes) -> tuple[Batch | None, int, bool]:
    """Cut the complete messages off the start of `data`.

    Returns them, the number of their bytes, and whether the bytes after them can be a message.
    """
    parts: list[bytes] = []
    position, total, stop = 0, 0, len(data)
    while True:
        count, position, run = _equal_run(data, position, stop, parts)
        total += count
        if run:
            continue
        count, position, size = _walk(data, position, stop, parts)
        total += count
        if count < _WALK:
            break
    batch = Batch(b"".join(parts), total) if total else None
    return batch, position, size != ILLEGAL


def _equal_run(data: bytes, start: int, stop: int, parts: list[bytes]) -> tuple[int, int, bool]:
    """Find a run of messages of equal layout. Return its length, its end, and whether to look for another."""
    stride = extent(data, start, stop)
    most = (stop - start) // stride if stride > 0 else 0
    offsets = layout(data, start) if most else ()
    run = long_run(lambda limit: alike(data, start, stride, limit, offsets), most)
    if not run:
        return 0, start, False
    end, prefix = start + run * stride, _PREFIXES[stride]
    parts.append(prefix)
    parts.append(prefix.join([data[at : at + stride] for at in range(start, end, stride)]))
    return run, end, run >= _SOON


def _walk(data: bytes, start: int, stop: int, parts: list[bytes]) -> tuple[int, int, int]:
    """Count up to `_WALK` messages one by one. Return their count, where the next begins, and its extent."""
    unpack, prefixes, count, size = _HEAD.unpack_from, _PREFIXES, 0, 0
    last = stop - FRAME_BYTES_MIN
    while start <= last and count < _WALK:
        _, tokens, size = unpack(data, start)
        size = FRAME_BYTES_MIN + 4 * tokens + size if size <= DATA_BYTES_MAX else extent(data, start, stop)
        end = start + size
        if size < FRAME_BYTES_MIN or end > stop:
            break
        parts += (prefixes[size], data[start:end])
        start = end
        count += 1
    return count, start, size


def join(batch: Batch) -> tuple[bytes, int]:
    """Return a batch's messages back to back, and their number.

    Omits all messages that are no frames, with or without envelope: the receiver would lose synchronisation.
    """
    data = batch.keep()
    whole = _join_equal(data, batch.count)
    return (whole, batch.count) if whole is not None else _join_each(data, batch.count)


def _join_equal(data: bytes, count: int) -> bytes | None:
    """Join the messages of a batch if all have one layout. Return None for any other batch."""
    if count < _RUN_MIN or len(data) % count:
        return None
    stride = len(data) // count
    length = stride - LENGTH_BYTES
    if length < FRAME_BYTES_MIN or LENGTH.unpack_from(data)[0] != length:
        return None
    if not _is_message(data, LENGTH_BYTES, stride):
        return None
    if alike(data, 0, stride, count, LENGTH_OFFSETS) < count:
        return None
    if alike(data, LENGTH_BYTES, stride, count, layout(data, LENGTH_BYTES)) < count:
        return None
    return b"".join([data[at + LENGTH_BYTES : at + stride] for at in range(0, len(data), stride)])


def _join_each(data: bytes, count: int) -> tuple[bytes, int]:
    unpack, parts, position = LENGTH.unpack_from, [], 0
    for _ in range(count):
        start = position + LENGTH_BYTES
        position = start + unpack(data, position)[0]
        if _is_message(data, start, position):
            parts.append(data[start:position])
    return b"".join(parts), len(parts)


def _is_message(data: bytes, start: int, stop: int) -> bool:
    return start < stop and extent(data, start, stop) == stop - start


class FramesDecoder:
    """A decoder that cuts one peer's stream into batches. Read into `buffer()`, then call `feed(n)`.

    This is the interface of `sp.Decoder`. All decoders of a thread share the scratch buffer, so do nothing
    else between the two calls. `fault` describes the error when the stream has lost its framing; `feed` still
    returns the messages before it.
    """

    __slots__ = ("_rest", "_scratch", "fault")

    def __init__(self, scratch: bytearray) -> None:
        self._scratch = scratch
        self._rest = b""
        self.fault: str | None = None

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""
        return memoryview(self._scratch)

    @property
    def waiting(self) -> int:
        """The bytes of a message that has begun and is not whole yet."""
        return len(self._rest)

    def revise(self, message_bytes: int) -> None:
        """Change nothing: the format bounds its messages."""

    def end(self) -> bytes:
        """Return the bytes that became no message, because no more come."""
        return self._rest

    def feed(self, read_bytes: int) -> Batch | None:
        """Decode `read_bytes` bytes of the buffer. Return the messages that are complete now, or None."""
        data = self._rest + self._scratch[:read_bytes]
        batch, position, legal = cut(data)
        self._rest = data[position:]
        if not legal:
            self.fault = _fault_of(data[position:])
        return batch


def _fault_of(data: bytes) -> str:
    """Return why bytes are no frame, with what they look like."""
    seems = "" if data.startswith(_WEB) else likeness(data, is_line=False)
    fault = f"not a frame: {data[:FRAME_BYTES_MIN].hex(' ')}"
    return f"{fault}: {seems}?" if seems else fault


def join_cobs(batch: Batch) -> tuple[bytes, int]:
    """Return what `join` does, with the framing of a serial line (COBS). Omits messages of illegal size."""
    low, high = FRAME_BYTES_MIN, MESSAGE_BYTES_MAX
    parts = [uart.encode(message) for message in payloads(batch) if low <= len(message) <= high]
    return b"".join(parts), len(parts)


class CobsDecoder:
    """A decoder for messages framed as on a serial line. It resynchronises, so `fault` is always None.

    `watch` is told what comes.
    """

    __slots__ = ("_decoder", "_scratch", "_stats", "_watch", "fault")

    def __init__(self, scratch: bytearray, stats: Stats, watch: InputWatch | None = None) -> None:
        self._scratch, self._stats, self._watch = scratch, stats, watch
        self._decoder = uart.Decoder(stats.rejected)
        self.fault: str | None = None

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""
        return memoryview(self._scratch)

    @property
    def waiting(self) -> int:
        """The bytes of a message that has begun and is not whole yet."""
        return self._decoder.waiting

    def revise(self, message_bytes: int) -> None:
        """Change nothing: the format bounds its messages."""

    def end(self) -> bytes:
        """Return the bytes that became no message, because no more come."""
        if self._watch is not None:
            self._watch.close()
        return self._decoder.rest

    def feed(self, read_bytes: int) -> Batch | None:
        """Decode `read_bytes` bytes of the buffer. Return the messages that are complete now, or None."""
        data = bytes(memoryview(self._scratch)[:read_bytes])
        messages = self._decoder.feed(data)
        found, noise_bytes = self._decoder.take_counts()
        self._stats.noise_bytes += noise_bytes
        if self._watch is not None:
            self._watch.hear(read_bytes, found, noise_bytes, data[-_SAMPLE_BYTES:])
        return batch_of(messages)
