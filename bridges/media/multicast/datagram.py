"""Datagrams of multicast: whole messages back to back and a CRC-32, or a fragment of one.

docs/wire/multicast.md has the layout and the reasons. Runs of messages of one size are the common load:
`struct` cuts and joins them, without a step of Python for each message.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import TypeVar
from zlib import crc32

from bridges.media.medium import SEAL_BYTES
from bridges.media.multicast.fragments import (
    CRC,
    DATAGRAM_BYTES_MIN,
    Reassembly,
    cut,
    is_fragment,
    link_envelope,
)
from bridges.media.seals import Seals, unsealed
from bus.wire.batch import LENGTH, LENGTH_BYTES, LENGTH_OFFSETS, Batch, alike, payloads
from bus.wire.envelope import HOPS_MAX, is_enveloped, layout, message_bytes
from bus.wire.frame import FRAME_BYTES_MIN

RESIDUE = 0x2144DF1C
"""The CRC-32/ISO-HDLC of any data that is followed by its own CRC, little-endian."""
_RUN_MIN = 4  # messages; shorter runs are not worth the search
_RUN_MAX = 512  # messages in one layout; this bounds the size of the caches

T = TypeVar("T")
Datagram = tuple[bytes, int]
"""A datagram: its bytes, and the number of messages that it completes: 0 for all but the last fragment."""


class Encoder:
    """The encoder of batches into datagrams of at most `datagram_bytes`.

    `origin` (u32) and `sequence` (u32) go into the envelopes of bare frames that must be fragmented. Messages
    that are not legal are counted in `refused` as `malformed`. With `seals` every datagram is sealed. Raises
    ValueError if `datagram_bytes` is below 19, with seals 37.
    """

    def __init__(
        self,
        datagram_bytes: int,
        origin: int,
        sequence: int,
        refused: dict[str, int] | None = None,
        seals: Seals | None = None,
    ) -> None:
        self._seals, self._seal_bytes = seals, 0 if seals is None else SEAL_BYTES
        least = DATAGRAM_BYTES_MIN + self._seal_bytes
        if datagram_bytes < least:
            raise ValueError(f"datagram_bytes must be at least {least}, not {datagram_bytes}")
        self.datagram_bytes = datagram_bytes
        self.refused: dict[str, int] = {} if refused is None else refused
        self._origin, self._sequence = origin, sequence

    @property
    def room(self) -> int:
        """The bytes of messages that one datagram holds."""
        return self.datagram_bytes - CRC.size - self._seal_bytes

    def encode(self, batch: Batch) -> list[Datagram]:
        """Return the messages of a batch, in order, in as few datagrams as possible."""
        size, room = run_bytes(batch), self.room
        if size and size <= room:
            made = pack_run(batch.keep(), size, batch.count, min(room // size, _RUN_MAX))
            return self._sealed(made)
        return self.pack(payloads(batch))

    def pack(self, messages: Iterable[bytes]) -> list[Datagram]:
        """Return `messages`, in order, in as few datagrams as possible."""
        return self._sealed(self._pack(messages))

    def _sealed(self, made: list[Datagram]) -> list[Datagram]:
        seals = self._seals
        if seals is None:
            return made
        return [(with_crc(seals.seal(datagram[: -CRC.size])), count) for datagram, count in made]

    def plain(self, datagram: bytes) -> bytes:
        """Return a datagram of this encoder as it would be without a seal."""
        return datagram if self._seals is None else with_crc(unsealed(datagram[: -CRC.size]))

    def _pack(self, messages: Iterable[bytes]) -> list[Datagram]:
        room = self.room
        made: list[Datagram] = []
        parts: list[bytes] = []
        total = 0
        for message in messages:
            size = len(message)
            if not size or size_at(message, 0, size) != size:
                self.refused["malformed"] = self.refused.get("malformed", 0) + 1
                continue
            if total + size > room and parts:
                made.append(_close(parts))
                parts, total = [], 0
            if size > room:
                made += self._fragments(message)
            else:
                parts.append(message)
                total += size
        if parts:
            made.append(_close(parts))
        return made

    def _fragments(self, message: bytes) -> list[Datagram]:
        if not is_enveloped(message):
            self._sequence = (self._sequence + 1) & 0xFFFFFFFF
            message = link_envelope(message, self._origin, self._sequence) + message
        *most, last = cut(message, self.datagram_bytes - self._seal_bytes)
        return [*((piece, 0) for piece in most), (last, 1)]


class Decoder:
    """The decoder of datagrams into a batch.

    Never raises; `rejected` counts input that is no message, by reason. `noise` counts datagrams that are
    not of this format, since it was last set to 0.
    """

    def __init__(self, rejected: dict[str, int] | None = None) -> None:
        self.rejected: dict[str, int] = {} if rejected is None else rejected
        self.reassembly = Reassembly(self.rejected)
        self.noise = 0

    def feed(self, datagrams: Iterable[tuple[bytes, Hashable]], now_s: float) -> Batch | None:
        """Return all messages of `datagrams`, each with its sender; None if there are none."""
        parts: list[bytes] = []
        total = 0
        for datagram, sender in datagrams:
            if crc32(datagram) != RESIDUE or len(datagram) < FRAME_BYTES_MIN + CRC.size:
                self._reject("crc" if len(datagram) >= FRAME_BYTES_MIN + CRC.size else "short")
            elif is_fragment(datagram):
                message = self.reassembly.add(datagram, sender, now_s)
                if message is not None:
                    parts += LENGTH.pack(len(message)), message
                    total += 1
            else:
                count = unpack(datagram[: -CRC.size], parts)
                total += count
                if not count:
                    self._reject("malformed")
        return Batch(b"".join(parts), total) if total else None

    def _reject(self, reason: str) -> None:
        self.noise += 1
        self.rejected[reason] = self.rejected.get(reason, 0) + 1


def _close(parts: Sequence[bytes]) -> Datagram:
    return with_crc(b"".join(parts)), len(parts)


def with_crc(body: bytes) -> bytes:
    """Return a body with its CRC behind it."""
    return body + CRC.pack(crc32(body))


def opened(datagrams: Iterable[tuple[bytes, T]], seals: Seals) -> Iterator[tuple[bytes, T]]:
    """Yield sealed datagrams as datagrams without seals; damaged ones unchanged."""
    for datagram, sender in datagrams:
        if crc32(datagram) != RESIDUE or len(datagram) < CRC.size:
            yield datagram, sender
        elif (body := seals.open(datagram[: -CRC.size])) is not None:
            yield with_crc(body), sender


def is_plain(body: bytes) -> bool:
    """Tell whether the body of a datagram is messages, with no seal behind them."""
    return bool(body) and bool(unpack(body, []))


def size_at(data: bytes, start: int, end: int) -> int:
    """Return the bytes of the message at `start`; 0 if it is not legal, has flags, or ends behind `end`."""
    size = message_bytes(data, start, end)
    if size and data[start + 1] > HOPS_MAX and is_enveloped(data, start, end):
        return 0
    return size


def _is_run(data: bytes, start: int, stride: int, count: int) -> bool:
    """Return whether all `count` messages have the layout of the first and no flags in their envelopes."""
    if alike(data, start, stride, count, layout(data, start)) < count:
        return False
    return not is_enveloped(data, start) or max(data[start + 1 :: stride]) <= HOPS_MAX


def run_bytes(batch: Batch) -> int:
    """Return the size of the messages in a batch if all are legal and of one size; else 0."""
    stride, rest = divmod(len(batch.data), batch.count or 1)
    if rest or batch.count < _RUN_MIN or stride < LENGTH_BYTES + FRAME_BYTES_MIN:
        return 0
    data, size = batch.keep(), stride - LENGTH_BYTES
    if LENGTH.unpack_from(data)[0] != size or size_at(data, LENGTH_BYTES, stride) != size:
        return 0
    if alike(data, 0, stride, batch.count, LENGTH_OFFSETS) < batch.count:
        return 0
    return size if _is_run(data, LENGTH_BYTES, stride, batch.count) else 0


@lru_cache(maxsize=64)
def _bodies(size: int, count: int) -> Struct:
    """Return the layout that picks the bodies out of `count` messages of a batch."""
    return Struct(f"{LENGTH_BYTES}x{size}s" * count)


@lru_cache(maxsize=64)
def _pieces(size: int, count: int) -> Callable[[bytes], tuple[bytes, ...]]:
    return Struct(f"{size}s" * count).unpack


def pack_run(data: bytes, size: int, count: int, per_datagram: int) -> list[Datagram]:
    """Return the datagrams for the `count` messages in the `data` of a batch, all of `size` bytes."""
    made: list[Datagram] = []
    pack, join, full = CRC.pack, b"".join, count // per_datagram
    end = full * per_datagram * (LENGTH_BYTES + size)
    if full:
        for parts in _bodies(size, per_datagram).iter_unpack(memoryview(data)[:end]):
            body = join(parts)
            made.append((body + pack(crc32(body)), per_datagram))
    left = count - full * per_datagram
    if left:
        made.append(_close(_bodies(size, left).unpack_from(data, end)))
    return made


def unpack(body: bytes, parts: list[bytes]) -> int:
    """Append the messages of `body` to `parts` in a batch's format. Return their number; 0 if malformed."""
    end = len(body)
    size = size_at(body, 0, end)
    if not size:
        return 0
    count, rest = divmod(end, size)
    if rest or count > _RUN_MAX or not _is_run(body, 0, size, count):
        return unpack_mixed(body, parts)
    parts.append(LENGTH.pack(size).join((b"", *_pieces(size, count)(body))))
    return count


def unpack_mixed(body: bytes, parts: list[bytes]) -> int:
    """Append messages as `unpack` does, one after the other, for messages of different layouts."""
    found: list[bytes] = []
    start, end = 0, len(body)
    while start < end:
        size = size_at(body, start, end)
        if not size:
            return 0
        found += LENGTH.pack(size), body[start : start + size]
        start += size
    parts += found
    return len(found) // 2
