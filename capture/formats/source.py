"""Files of the field as they are read: unpacked if they are packed, in pieces, with what was left out.

`.gz` and `.zst` are known by their first bytes. Memory is bounded, whatever a file says of itself.
"""

import os
import sys
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final

from bus.machine.files import NoText, check_encoding
from bus.machine.inputs import opened
from bus.text import MARK
from capture.files import CaptureError

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES: Final = 1 << 20
LINE_BYTES_MAX: Final = 1 << 16
_HEAD_BYTES: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = (b"\x28\xb5\x2f\xfd", *(bytes((last, 0x2A, 0x4D, 0x18)) for last in range(0x50, 0x60)))
"""The beginnings of a frame of zstd, and of one that is skipped, as pzstd puts in front."""
_EXAMPLE_CHARS: Final = 60
_FILL_BYTES: Final = 4096


class LeftOut:
    """The account of what was left out of a file: how much for each reason, and the first example. `notes`
    count what is there, but otherwise than the file says it or can hold it.

    `others` are rows of other sorts. Nobody asked for those where frames alone are wanted.
    """

    def __init__(self) -> None:
        self.counts, self.notes = Counter[str](), Counter[str]()
        self.others = 0
        self.examples: dict[str, str] = {}

    def leave(self, reason: str, count: int = 1, example: bytes | str = "") -> None:
        """Count what is left out."""
        self._count(self.counts, reason, count, example)

    def note(self, what: str, count: int = 1, example: str = "") -> None:
        """Count what is otherwise than the file says it or can hold it."""
        self._count(self.notes, what, count, example)

    def _count(self, counts: Counter[str], reason: str, count: int, example: bytes | str) -> None:
        if count > 0:
            counts[reason] += count
            if isinstance(example, bytes):
                example = example.decode(errors="replace")
            self.examples.setdefault(reason, example.strip()[:_EXAMPLE_CHARS])

    def lines(self, others: str = "") -> Iterator[str]:
        """Say what was left out, and what is otherwise, a line for each reason; also rows of other sorts, if
        they have a name."""
        left = self.counts + (Counter({others: self.others}) if others else Counter())
        for word, counts in (("left out", left), ("note", self.notes)):
            for reason, count in counts.items():
                example = self.examples.get(reason, "")
                yield f"{word}: {count} {reason}" + (f", such as {example!r}" if example else "")


class Source:
    """A file of the field. `read` gives its bytes, unpacked; `head` its first ones, which `read` gives again.
    `told` takes what is left out.

    Raises `CaptureError` if the file cannot be opened, and for text in another encoding than UTF-8.
    """

    def __init__(
        self,
        path: Path,
        on_progress: Callable[[float], None] = lambda part: None,
        told: LeftOut | None = None,
    ) -> None:
        self.path, self.told = path, told or LeftOut()
        self._on_progress = on_progress
        try:
            self._file: BinaryIO = sys.stdin.buffer if str(path) == "-" else opened(path)
            self._size = path.stat().st_size if str(path) != "-" and path.is_file() else 0
            first = self._file.read(_HEAD_BYTES)
        except OSError as error:
            raise CaptureError(f"{path}: {error.strerror}") from error
        self._pieces = self._unpacked(first)
        self._held = b""
        self.head = self._held = self._filled(_HEAD_BYTES)
        try:
            check_encoding(self.head)
        except NoText as error:
            self._close()
            raise CaptureError(f"{path}: {error}") from None

    def __enter__(self) -> "Source":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()

    def _filled(self, size: int) -> bytes:
        parts, have = [], 0
        while have < size and (piece := next(self._pieces, b"")):
            parts.append(piece)
            have += len(piece)
        return b"".join(parts)

    def read(self, size: int = PIECE_BYTES) -> bytes:
        """Return at least one byte and, but for the end, about `size`; b"" at the end."""
        held, self._held = self._held, b""
        return held if len(held) >= size else held + self._filled(size - len(held))

    def _raw(self, first: bytes) -> Iterator[bytes]:
        """Yield the bytes of the file itself, and tell how far it is read."""
        done, piece = 0, first
        while piece:
            yield piece
            done += len(piece)
            if self._size:
                self._on_progress(min(1.0, done / self._size))
            try:
                piece = self._file.read(PIECE_BYTES)
            except OSError as error:
                self.told.leave(f"end of the file could not be read: {error.strerror}")
                return

    def _unpacked(self, first: bytes) -> Iterator[bytes]:
        raw = self._raw(first)
        if first.startswith(_GZIP):
            return _gunzipped(raw, self.told)
        return _unzstd(raw, self.told) if first.startswith(_ZSTD) else raw


_TORN: Final = "packed end that is damaged or cut off"


def _gunzipped(raw: Iterator[bytes], told: LeftOut) -> Iterator[bytes]:
    """Unpack gzip, of one or more members. What stands behind the last is left out."""
    unpacker, fed = zlib.decompressobj(31), False
    for piece in raw:
        while piece:
            try:
                yield from _bounded(unpacker, piece)
            except zlib.error:
                told.leave(_TORN)
                return
            fed, piece = True, unpacker.unused_data
            if unpacker.eof:
                unpacker, fed = zlib.decompressobj(31), bool(piece)
    if fed:
        told.leave(_TORN)


def _bounded(unpacker: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    while piece and not unpacker.eof:
        if found := unpacker.decompress(piece, PIECE_BYTES):
            yield found
        piece = unpacker.unconsumed_tail


class _Pieces:
    """Pieces as a file, which pyarrow unpacks."""

    closed = False

    def __init__(self, raw: Iterator[bytes]) -> None:
        self._raw, self._left = raw, b""

    def read(self, size: int = -1) -> bytes:
        self._left = self._left or next(self._raw, b"")
        size = len(self._left) if size < 0 else size
        found, self._left = self._left[:size], self._left[size:]
        return found

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def _unzstd(raw: Iterator[bytes], told: LeftOut) -> Iterator[bytes]:
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.PythonFile(_Pieces(raw), mode="r"), "zstd")
    try:
        yield from up_to_damage(stream)
    except (OSError, pa.ArrowException):
        told.leave(_TORN)


def up_to_damage(stream: "pa.CompressedInputStream") -> Iterator[bytes]:
    """Yield what Arrow unpacks, in pieces, and what it had unpacked of a piece when it found damage.

    It does not say how much that is: it is what differs from the random bytes that were there before. Raises
    `OSError` and `ArrowException` then.
    """
    fill = os.urandom(_FILL_BYTES)
    while True:
        place, size = bytearray(fill * (PIECE_BYTES // _FILL_BYTES)), 0
        try:
            size = stream.readinto(place)
        except BaseException:
            yield bytes(place[: _written(place, fill)])
            raise
        if not size:
            return
        yield bytes(place[:size])


def _written(place: bytearray, fill: bytes) -> int:
    """Return how many bytes differ from `fill`, repeated, which is all that is behind them."""
    end = len(place)
    while end and place.endswith(fill, 0, end):
        end -= len(fill)
    block = place[max(0, end - len(fill)) : end]
    same = bisect_left(range(len(block)), True, key=lambda at: block[at:] == fill[at:])
    return end - len(block) + same


def line_blocks(source: Source, is_whole: Callable[[bytes], bool]) -> Iterator[bytes]:
    """Yield whole lines, some 1 MiB at a time. One that is too long is left out.

    So is a last line without an end, which a writer that was killed leaves, unless `is_whole` says of it that
    no frame goes on behind it: a frame that is cut would be another one.
    """
    rest, skipping, is_first = b"", False, True
    while piece := source.read():
        if is_first:
            piece, is_first = piece.removeprefix(MARK), False
        if skipping:
            _, end, piece = piece.partition(b"\n")
            skipping = not end
        rest += piece
        lines, end, rest = rest.rpartition(b"\n")
        if end:
            yield lines + end
        if len(rest) > LINE_BYTES_MAX:
            source.told.leave(f"lines longer than {LINE_BYTES_MAX} bytes", 1, rest[:_EXAMPLE_CHARS])
            rest, skipping = b"", True
    if rest.endswith(b"\r") or is_whole(rest):
        yield rest + b"\n"
    else:
        source.told.leave("last line without an end", int(bool(rest)), rest[:_EXAMPLE_CHARS])
