"""The spool of an earlier version, to be read to its end.

A directory has segments, `0000000001.spool` and so on: a run of records, each a length u32, a CRC-32 u32 and
the message, big-endian. `done` says how far the broker has acknowledged: segment u64, offset u64, CRC-32 u32.
"""

from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from bus.wire.envelope import MESSAGE_BYTES_MAX

_RECORD, _DONE = Struct(">II"), Struct(">QQI")
_DONE_NAME: Final = "done"


def remains(directory: Path) -> list[Path]:
    """Return the segments that are not acknowledged, in order; others are removed. Raises `OSError`."""
    found, (done, _) = sorted(directory.glob("*.spool")), _done(directory)
    for path in found:
        if int(path.stem) < done:
            path.unlink()
    left = [path for path in found if int(path.stem) >= done]
    if not left:
        (directory / _DONE_NAME).unlink(missing_ok=True)
    return left


def messages_of(segment: Path) -> tuple[list[bytes], bool]:
    """Return the messages of a segment that are not acknowledged, up to one that is damaged, and whether all
    could be read. Raises `OSError`."""
    number, offset = _done(segment.parent)
    at, data, found = offset if int(segment.stem) == number else 0, segment.read_bytes(), list[bytes]()
    while at + _RECORD.size <= len(data):
        size, check = _RECORD.unpack_from(data, at)
        message = data[at + _RECORD.size : at + _RECORD.size + size]
        if size > MESSAGE_BYTES_MAX or len(message) < size or crc32(message) != check:
            break
        found.append(message)
        at += _RECORD.size + size
    return found, at == len(data)


def _done(directory: Path) -> tuple[int, int]:
    """Return the segment and the offset up to which all is acknowledged."""
    try:
        data = (directory / _DONE_NAME).read_bytes()
    except FileNotFoundError:
        return 0, 0
    if len(data) < _DONE.size or _DONE.unpack_from(data)[2] != crc32(data[:16]):
        return 0, 0
    number, offset, _ = _DONE.unpack_from(data)
    return int(number), int(offset)
