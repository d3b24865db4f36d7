"""UART framing: `00 | COBS( message | CRC-32 little-endian ) | 00` (docs/wire/uart.md; wire spec section 6).

This module does no I/O and has no clock. The zero in front is mandatory: it ends any noise before it.
"""

from zlib import crc32

from bridges.media.medium import SEAL_BYTES
from bus.wire.envelope import MESSAGE_BYTES_MAX
from bus.wire.frame import FRAME_BYTES_MIN

CRC_BYTES = 4
RESIDUE = 0x2144DF1C

_RUN = 254


def wire_bytes_max(size: int) -> int:
    """Return the most bytes that a message of `size` bytes takes on the line, including both zeros."""
    data = size + CRC_BYTES
    return data + (data + _RUN - 1) // _RUN + 2


SEALED_BYTES_MAX = MESSAGE_BYTES_MAX + SEAL_BYTES
"""The longest message of a trunk with keys: 3102 bytes."""
WIRE_BYTES_MAX = wire_bytes_max(SEALED_BYTES_MAX)
"""3121"""
CODED_BYTES_MAX = WIRE_BYTES_MAX - 2
"""The length of the longest run between two zeros."""


def cobs_encode(data: bytes) -> bytes:
    """Return `data` in COBS (Cheshire and Baker, 1999): it holds no zeros. Delimiters are not added."""
    runs = data.split(b"\0")
    if len(data) < _RUN:
        return b"".join([_CODES[len(run)] + run for run in runs])
    last = len(runs) - 1
    return b"".join(
        _CODES[len(run)] + run if len(run) < _RUN else _long_run(run, index == last)
        for index, run in enumerate(runs)
    )


_CODES = tuple(bytes((size + 1,)) for size in range(_RUN))


def _long_run(run: bytes, last: bool) -> bytes:
    """Encode 254 bytes or more. A full block implies no zero: a shorter one follows, except at the end."""
    whole = len(run) - len(run) % _RUN
    parts = [b"\xff" + run[start : start + _RUN] for start in range(0, whole, _RUN)]
    rest = run[whole:]
    if rest or not last:
        parts += (_CODES[len(rest)], rest)
    return b"".join(parts)


def cobs_decode(coded: bytes) -> bytes | None:
    """Return the data in `coded`, which must hold no zero; None if a block ends behind the end."""
    made, position, end = bytearray(coded), 0, len(coded)
    full: list[int] = []
    while position < end:
        code = coded[position]
        made[position] = 0  # which the code before it stands for
        position += code
        if code > _RUN:
            full.append(position)
    if position != end:
        return None
    for behind in reversed(full):  # no zero follows a full block
        del made[behind : behind + 1]
    del made[:1]
    return bytes(made)


def encode(message: bytes) -> bytes:
    """Return the line's bytes for `message`, with both zeros. Raises ValueError unless 4 to 3102 bytes."""
    if not FRAME_BYTES_MIN <= len(message) <= SEALED_BYTES_MAX:
        raise ValueError(
            f"a UART message has {FRAME_BYTES_MIN} to {SEALED_BYTES_MAX} bytes, not {len(message)}"
        )
    return b"\0" + cobs_encode(message + crc32(message).to_bytes(CRC_BYTES, "little")) + b"\0"


class Decoder:
    """The decoder of a stream, which may start anywhere and contain anything. It holds at most 3119 bytes.

    `rejected` counts runs between zeros that are not a message: `oversize`, `cobs`, `short`, `crc`, and what
    is left at the end: `unfinished`. Messages and counts do not depend on how the stream is cut into pieces.
    """

    __slots__ = ("_found", "_noise_bytes", "_skipping", "_tail", "rejected")

    def __init__(self, rejected: dict[str, int] | None = None) -> None:
        self.rejected: dict[str, int] = {} if rejected is None else rejected
        self._tail = bytearray()
        self._skipping = False
        self._found = self._noise_bytes = 0

    def take_counts(self) -> tuple[int, int]:
        """Return how many messages, and how many bytes of no message, came since the last call."""
        counts, self._found, self._noise_bytes = (self._found, self._noise_bytes), 0, 0
        return counts

    def end(self) -> None:
        """Reject a message that is not whole, because no more comes."""
        if self._tail:
            self._reject("unfinished", len(self._tail))
            self._tail.clear()

    @property
    def rest(self) -> bytes:
        """The bytes of a message that has begun and is not whole yet."""
        return bytes(self._tail)

    @property
    def waiting(self) -> int:
        """The bytes of a message that has begun and is not whole yet."""
        return len(self._tail)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes, in order."""
        codes = data.split(b"\0")
        rest = codes.pop()
        if codes and (self._tail or self._skipping):
            self._hold(codes[0])
            codes[:1] = self._ended()
        if rest:
            self._hold(rest)
        return [message for coded in codes if coded and (message := self._message(coded)) is not None]

    def _ended(self) -> tuple[bytes, ...]:
        """Return and forget the bytes held before a zero; nothing if there were too many."""
        held = () if self._skipping else (bytes(self._tail),)
        self._tail.clear()
        self._skipping = False
        return held

    def _hold(self, part: bytes) -> None:
        if self._skipping:
            self._noise_bytes += len(part)
        elif len(self._tail) + len(part) > CODED_BYTES_MAX:
            self._reject("oversize", len(self._tail) + len(part))
            self._tail.clear()
            self._skipping = True
        else:
            self._tail += part

    def _message(self, coded: bytes) -> bytes | None:
        size = len(coded)
        if size > CODED_BYTES_MAX:
            return self._reject("oversize", size)
        data = cobs_decode(coded)
        if data is None:
            return self._reject("cobs", size)
        if len(data) < FRAME_BYTES_MIN + CRC_BYTES:
            return self._reject("short", size)
        if crc32(data) != RESIDUE:
            return self._reject("crc", size)
        self._found += 1
        return data[:-CRC_BYTES]

    def _reject(self, reason: str, size: int) -> bytes | None:
        self._noise_bytes += size
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        return None
