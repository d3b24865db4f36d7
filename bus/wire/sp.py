"""SP framing without I/O: the handshake, and a stream decoder that returns batches.

Sources: SP TCP mapping (rfc/sp-tcp-mapping-01), SP IPC mapping; docs/wire/sp.md.
Over IPC each message has one byte 0x01 before its length; here it is called the lead.
"""

from collections.abc import Iterator

from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, equal_run
from bus.wire.large import Large

HANDSHAKE = bytes.fromhex("0053500000700000")
LEAD_IPC = b"\x01"
SCRATCH_BYTES = 512 * 1024

_DRIPPED_BYTES = 4096  # less is copied faster than a read is made
_WALK = 256  # messages of mixed sizes between two looks for a run
_SOON = 256  # after a run of so many the next look is at once: shorter ones in a row are mixed sizes too


def handshake_fault(received: bytes) -> str | None:
    """Return what is wrong with the peer's first bytes (1 to 8 of them); None while they are right."""
    if HANDSHAKE.startswith(received):
        return None
    if not HANDSHAKE.startswith(received[:4]):
        return f"not an SP peer: it began with {received.hex(' ')}"
    if not HANDSHAKE.startswith(received[:6]):
        return f"wrong SP protocol: 0x{received[4:6].hex()}, a bus speaks 0x0070"
    return f"bad SP handshake: {received.hex(' ')}"


def walk(data: bytes | bytearray, start: int, stop: int, limit: int, lead: int = 0) -> tuple[int, int]:
    """Count the whole messages from `start` on, at most `limit`; return where the next one begins too."""
    unpack, head, count = LENGTH.unpack_from, LENGTH_BYTES + lead, 0
    last = stop - head
    while start <= last and count < limit:
        following = start + unpack(data, start + lead)[0] + head
        if following > stop:
            break
        start = following
        count += 1
    return count, start


def scan(data: bytes | bytearray, stop: int, lead: int = 0) -> tuple[int, int]:
    """Count the whole messages in `data[:stop]`; return where the first incomplete one begins too."""
    total = position = 0
    while position + LENGTH_BYTES + lead <= stop:
        run, stride = equal_run(data, position, stop, stop, lead)
        total += run
        position += run * stride
        if run >= _SOON:
            continue
        count, position = walk(data, position, stop, _WALK, lead)
        total += count
        if count < _WALK:
            break
    return total, position


def strip_lead(data: bytearray, count: int) -> Batch:
    """Return IPC messages as a batch, each without its lead, up to the first whose lead is not 0x01."""
    parts, position = list[bytes | bytearray](), 0
    for _ in range(count):
        if data[position] != LEAD_IPC[0]:
            break
        end = position + 1 + LENGTH_BYTES + LENGTH.unpack_from(data, position + 1)[0]
        parts.append(data[position + 1 : end])
        position = end
    return Batch(b"".join(parts), len(parts))


def add_lead(batch: Batch) -> bytes:
    """Return a batch's bytes with 0x01 before each message, as IPC carries them."""
    data, position, parts = batch.keep(), 0, list[bytes]()
    for _ in range(batch.count):
        end = position + LENGTH_BYTES + LENGTH.unpack_from(data, position)[0]
        parts += LEAD_IPC, data[position:end]
        position = end
    return b"".join(parts)


def divide(data: bytes, lead: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the end and the body of each message in sent bytes; `lead` bytes stand before each length."""
    position = 0
    while position < len(data):
        start = position + lead + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position + lead)[0]
        yield position, data[start:position]


class Decoder:
    """The decoder of one peer's stream into batches; holds memory only for a message that is not yet whole.

    `buffer()` lends the window to read into, `feed(n)` decodes what was read. All decoders of a thread share
    the scratch buffer, so nothing may come between the two calls. A batch views the scratch: it is valid
    until the next `buffer()` of any of them. The lent window is never larger than the largest message, so a
    whole message in it is never too long; only announced lengths are checked.
    """

    __slots__ = ("_lead", "_message_bytes", "_rest", "_scratch", "_view", "_window", "fault")

    def __init__(self, scratch: bytearray, message_bytes: int, lead: int = 0) -> None:
        self._scratch = scratch
        self._lead = lead
        self._message_bytes = message_bytes
        self._window = min(len(scratch), message_bytes + LENGTH_BYTES + lead)
        self._view = memoryview(scratch)[: self._window]
        self._rest: bytes | Large = b""
        self.fault: str | None = None

    @property
    def waiting(self) -> int:
        """The bytes of a message that has begun and is not whole yet."""
        return len(self._rest)

    def end(self) -> bytes | memoryview:
        """Return the bytes of a message that is not whole, because no more come."""
        rest = self._rest
        return rest.received if isinstance(rest, Large) else rest

    def revise(self, message_bytes: int) -> None:
        """Set another greatest length. A message that has begun is still read to its end."""
        rest, head = self._rest, self._lead + LENGTH_BYTES
        if isinstance(rest, bytes) and len(rest) >= head:
            self._rest = Large(rest, head + LENGTH.unpack_from(rest, self._lead)[0])
        self._message_bytes = message_bytes
        self._window = min(len(self._scratch), message_bytes + head)
        self._view = memoryview(self._scratch)[: self._window]

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""
        rest = self._rest
        if isinstance(rest, Large):
            return rest.buffer()
        if not rest:
            return self._view
        self._scratch[: len(rest)] = rest
        return self._view[len(rest) :]

    def feed(self, read_bytes: int) -> Batch | None:
        """Return the messages that are whole now, if any. Set `fault` if the stream lost its framing."""
        if isinstance(self._rest, Large):
            return self._feed_large(self._rest, read_bytes)
        stop, head = len(self._rest) + read_bytes, self._lead + LENGTH_BYTES
        if stop >= head and LENGTH.unpack_from(self._scratch, self._lead)[0] == stop - head:
            self._rest = b""  # one message and nothing more: what a dialogue brings
            return self._batch(self._scratch, stop, 1)
        count, position = scan(self._scratch, stop, self._lead)
        self._keep_rest(position, stop, dripped=not count and read_bytes < len(self._rest))
        return self._batch(self._scratch, position, count) if count else None

    def _feed_large(self, large: "Large", read_bytes: int) -> Batch | None:
        if not large.feed(read_bytes):
            return None
        self._rest = b""
        return self._batch(large.data, len(large.data), 1)

    def _keep_rest(self, position: int, stop: int, dripped: bool) -> None:
        """Keep a message that is not whole: in memory of its own if it is large, or comes in small pieces.

        Otherwise its beginning would be copied with each piece.
        """
        rest = bytes(memoryview(self._scratch)[position:stop])
        self._rest = rest
        head = self._lead + LENGTH_BYTES
        if len(rest) < head:
            return
        size = LENGTH.unpack_from(rest, self._lead)[0]
        if size > self._message_bytes:
            self.fault = f"a message of {size} bytes: at most {self._message_bytes} are allowed"
        elif 2 * (head + size) > self._window or (dripped and len(rest) > _DRIPPED_BYTES):
            self._rest = Large(rest, head + size)

    def _batch(self, data: bytearray, stop: int, count: int) -> Batch | None:
        if not self._lead:
            return Batch(memoryview(data)[:stop], count)
        stripped = strip_lead(data, count)
        if stripped.count < count:
            self.fault = "an IPC message that does not start with 0x01"
        return stripped if stripped.count else None
