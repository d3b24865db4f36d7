"""Binary logs of Vector's tools (BLF): frames of CAN and CAN FD, and error frames, read and written.

Source: python-can's can.io.blf, which has the layout of binlog.dll's objects. A file is a header and
containers, most of them deflated, whose contents together are one run of objects. Times are ns (or 10 us)
from the start in the header, which is taken as UTC. Needs numpy.
"""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from struct import Struct
from typing import Any, BinaryIO, Final

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE
from capture.files import CaptureError
from capture.formats.columns import CODES, Builder, Numbers, channel_of, classic
from capture.formats.source import PIECE_BYTES, LeftOut, Source
from capture.frames import FD_SIZES, STATE, SWITCH, Frames

_FILE: Final = Struct("<4sL8B2Q2L8H8H")
_FILE_BYTES: Final = 144
_OBJECT: Final = Struct("<4sHHLL")
_HEADER: Final = Struct("<4sHHLLLHHQ")
_CONTAINER: Final = Struct("<H6xL4x")
_MESSAGE: Final = Struct("<HBBL8s")
_FD: Final = Struct("<HBBLLBBB5x64s")
_FD_64: Final = Struct("<BBBBLLLLLLLHBBL")
_ERROR: Final = Struct("<HHLBBBxLLH2x8s")
_MARK: Final = b"LOBJ"
_OF_MESSAGE, _OF_CONTAINER, _OF_ERROR, _OF_MESSAGE2, _OF_FD, _OF_FD_64 = 1, 10, 73, 86, 100, 101
_REMOTE, _SENT, _EDL, _BRS, _ESI = 0x80, 0x01, 0x01, 0x02, 0x04
_OBJECT_BYTES_MAX: Final = 1 << 24
_CONTAINER_BYTES: Final = 128 * 1024
_FRAMES: Final = 1 << 14
_UNREAD: Final = {2: "error frames without identifier and data", 104: "error frames of CAN FD"}
"""The kinds of error frames that are not read: CAN_ERROR, and CAN_FD_ERROR_64."""
_DAMAGED: Final = "stretches of damaged bytes"


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames. Raises `CaptureError` if the file does not begin as BLF does."""
    data = source.read()
    if not data.startswith(b"LOGG"):
        raise CaptureError(f"{source.path}: not a BLF file")
    if len(data) < _FILE_BYTES:
        source.told.leave("header that is cut off")
        return
    fields = _FILE.unpack_from(data)
    objects = _Objects(source.told, _time_ns(fields[14:22]))
    for piece in _contents(source, data[max(_FILE.size, min(fields[1], len(data))) :]):
        yield from objects.feed(piece)
    if len(objects.built):
        yield objects.built.take()


def _time_ns(words: tuple[int, ...]) -> int:
    """Return the time of a SYSTEMTIME, 0 if that is none."""
    year, month, _, day, hour, minute, second, ms = words
    try:
        when = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return 0
    return int(when.timestamp()) * 10**9 + ms * 10**6


def _contents(source: Source, data: bytes) -> Iterator[bytes]:
    """Yield what is in the containers, and objects that are in none. What is cut off is left out."""
    at = 0
    while True:
        found = data.find(_MARK, at)
        source.told.leave(_DAMAGED, int(found - at > 3))
        at = found if found >= 0 else max(at, len(data) - 3)
        if found >= 0 and len(data) - at >= _OBJECT.size:
            _, head, _, size, kind = _OBJECT.unpack_from(data, at)
            if not _OBJECT.size <= head <= size <= _OBJECT_BYTES_MAX:
                source.told.leave(_DAMAGED)
                at += len(_MARK)
                continue
            if at + size <= len(data):
                body, at = data[at : at + size], at + size
                if kind == _OF_CONTAINER and size >= head + _CONTAINER.size:
                    yield from _unpacked(body[head:], source.told)
                else:
                    yield body
                continue
        piece = source.read()
        if not piece:
            source.told.leave("object at the end that is cut off", int(found >= 0))
            yield from _torn(data[at:])
            return
        data, at = data[at:] + piece, 0


def _torn(data: bytes) -> Iterator[bytes]:
    """Yield what is in the beginning of a container, as far as it can be unpacked."""
    if len(data) >= _OBJECT.size:
        _, head, _, _, kind = _OBJECT.unpack_from(data)
        if kind == _OF_CONTAINER and len(data) >= head + _CONTAINER.size:
            yield from _unpacked(data[head:], LeftOut())


def _unpacked(body: bytes, told: LeftOut) -> Iterator[bytes]:
    method, _ = _CONTAINER.unpack_from(body)
    left = body[_CONTAINER.size :]
    if method == 0:
        yield left
        return
    unpacker = zlib.decompressobj()
    try:
        while left and method == 2:
            yield unpacker.decompress(left, PIECE_BYTES)
            left = unpacker.unconsumed_tail
    except zlib.error:
        method = -1
    told.leave("containers that are damaged, or packed in an unknown way", int(method != 2))


class _Objects:
    """The run of objects in a file."""

    def __init__(self, told: LeftOut, begin_ns: int) -> None:
        self.built = Builder()
        self._told, self._begin_ns, self._rest = told, begin_ns, b""

    def feed(self, piece: bytes) -> Iterator[Frames]:
        """Take bytes, and yield frames when there are many."""
        data, at = self._rest + piece, 0
        while True:
            found = data.find(_MARK, at)
            self._told.leave(_DAMAGED, int(found - at > 3))
            at = found if found >= 0 else max(at, len(data) - 3)
            if found < 0 or at + _HEADER.size > len(data):
                break
            _, head, version, size, kind, flags, _, _, ticks = _HEADER.unpack_from(data, at)
            if not _HEADER.size <= head <= size <= _OBJECT_BYTES_MAX or version not in (1, 2):
                self._told.leave("objects that are damaged, or of another version")
                at += 4
                continue
            if at + size > len(data):
                break
            when_ns = self._begin_ns + ticks * (10_000 if flags == 1 else 1)
            if not self._take(kind, when_ns, data[at + head : at + size]):
                self._leave(kind)
            at += size
            if len(self.built) >= _FRAMES:
                yield self.built.take()
        self._rest = data[at:]

    def _leave(self, kind: int) -> None:
        if kind in _UNREAD:
            self._told.leave(_UNREAD[kind])
        else:
            self._told.leave("objects that are no CAN frame", 1, f"type {kind}")

    def _take(self, kind: int, when_ns: int, body: bytes) -> bool:
        take = _TAKES.get(kind)
        return take is not None and len(body) >= take[0].size and take[1](self.built, when_ns, body)


def _identifier(number: int, more: int = 0) -> int:
    return number & IDENTIFIER | (number & EXTENDED) | more


def _of_message(built: Builder, when_ns: int, body: bytes) -> bool:
    channel, flags, code, number, data = _MESSAGE.unpack_from(body)
    remote, place = REMOTE if flags & _REMOTE else 0, (channel_of(channel), bool(flags & _SENT))
    content = b"" if remote else data
    return built.add(when_ns, *place, _identifier(number, remote), *classic(code), False, content)


def _of_error(built: Builder, when_ns: int, body: bytes) -> bool:
    channel, _, _, _, _, code, _, number, _, data = _ERROR.unpack_from(body)
    return built.add(
        when_ns, channel_of(channel), False, _identifier(number, ERROR), *classic(code), False, data
    )


def _of_fd(built: Builder, when_ns: int, body: bytes) -> bool:
    channel, flags, code, number, _, _, fd, valid, data = _FD.unpack_from(body)
    remote, place = REMOTE if flags & _REMOTE else 0, (channel_of(channel), bool(flags & _SENT))
    if not fd & _EDL:
        content = b"" if remote else data
        return built.add(when_ns, *place, _identifier(number, remote), *classic(code), False, content)
    marks = (SWITCH if fd & _BRS else 0) | (STATE if fd & _ESI else 0)
    size = FD_SIZES[code & 15]
    return built.add(when_ns, *place, _identifier(number), size, marks, True, data[:valid])


def _of_fd_64(built: Builder, when_ns: int, body: bytes) -> bool:
    channel, code, valid, _, number, _, flags, *_, is_sent, _, _ = _FD_64.unpack_from(body)
    data, place = body[_FD_64.size :][:valid], (channel_of(channel), bool(is_sent))
    if not flags & 0x1000:
        remote = REMOTE if flags & 0x10 else 0
        return built.add(when_ns, *place, _identifier(number, remote), *classic(code), False, data)
    marks = (SWITCH if flags & 0x2000 else 0) | (STATE if flags & 0x4000 else 0)
    size = FD_SIZES[code & 15]
    return built.add(when_ns, *place, _identifier(number), size, marks, True, data)


_TAKES: Final = {
    _OF_MESSAGE: (_MESSAGE, _of_message), _OF_MESSAGE2: (_MESSAGE, _of_message),
    _OF_ERROR: (_ERROR, _of_error), _OF_FD: (_FD, _of_fd), _OF_FD_64: (_FD_64, _of_fd_64),
}  # fmt: skip


class Writer:
    """A writer of the log, which starts with the first frame, cut to ms. The header is written at the end."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._numbers, self._held = file, Numbers(), b""
        self._begin_ns: int | None = None
        self._last_ns = self._count = 0
        self._size, self._whole = _FILE_BYTES, _FILE_BYTES
        file.write(bytes(_FILE_BYTES))

    def add(self, frames: Frames) -> None:
        """Write frames."""
        if self._begin_ns is None:
            self._begin_ns = int(frames.ts_ns[0]) // 10**6 * 10**6
        numbers = [self._numbers.of(name) for name in frames.names]
        columns = zip(*(column.tolist() for column in frames.columns[:-1]), strict=True)
        parts = [self._held]
        for (ts_ns, channel, *rest), data in zip(columns, frames.data, strict=True):
            kind, body = _object(numbers[channel], data.tobytes(), *rest)
            size = _HEADER.size + len(body)
            when_ns = max(0, ts_ns - self._begin_ns)
            parts += (
                _HEADER.pack(_MARK, _HEADER.size, 1, size, kind, 2, 0, 0, when_ns),
                body,
                bytes(size % 4),
            )
        self._last_ns = max(self._last_ns, int(frames.ts_ns.max()))
        self._count += len(frames)
        self._held = b"".join(parts)
        while len(self._held) >= _CONTAINER_BYTES:
            self._flush()

    def _flush(self) -> None:
        some, self._held = self._held[:_CONTAINER_BYTES], self._held[_CONTAINER_BYTES:]
        body = _CONTAINER.pack(2, len(some)) + zlib.compress(some)
        size = _OBJECT.size + len(body)
        packed = _OBJECT.pack(_MARK, _OBJECT.size, 1, size, _OF_CONTAINER) + body + bytes(size % 4)
        self._file.write(packed)
        self._size += len(packed)
        self._whole += _OBJECT.size + _CONTAINER.size + len(some)

    def close(self) -> None:
        """Write what is held, and the header."""
        if self._held:
            self._flush()
        times = *_systemtime(self._begin_ns or 0), *_systemtime(self._last_ns)
        about = b"LOGG", _FILE_BYTES, 5, 0, 0, 0, 2, 6, 8, 1, self._size, self._whole, self._count, 0
        self._file.seek(0)
        self._file.write(_FILE.pack(*about, *times))
        self._file.seek(0, 2)


def _object(channel: int, data: bytes, *row: Any) -> tuple[int, bytes]:
    is_sent, number, size, marks, is_fd = row
    flags = (_SENT if is_sent else 0) | (_REMOTE if number & REMOTE else 0)
    word = number & IDENTIFIER | number & EXTENDED
    if number & ERROR:
        return _OF_ERROR, _ERROR.pack(channel, 0, 0, 0, 0, marks or size, 0, word, 0, data[:8])
    if not is_fd:
        return _OF_MESSAGE, _MESSAGE.pack(channel, flags, marks or size, word, data[:8])
    fd = _EDL | (_BRS if marks & SWITCH else 0) | (_ESI if marks & STATE else 0)
    return _OF_FD, _FD.pack(channel, flags, CODES[size], word, 0, 0, fd, size, data)


def _systemtime(ts_ns: int) -> tuple[int, ...]:
    when = datetime.fromtimestamp(ts_ns // 10**9, UTC)
    date = when.year, when.month, when.isoweekday() % 7, when.day
    return *date, when.hour, when.minute, when.second, ts_ns // 10**6 % 1000
