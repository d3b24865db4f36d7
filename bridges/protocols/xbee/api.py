"""The API frames of XBee modules on the serial line, plain (mode 1) and escaped (mode 2). Pure.

A frame is 0x7E, a length of 2 bytes, that many bytes, and a checksum: 0xFF less their sum. In mode 2 each
0x7E, 0x7D, 0x11 and 0x13 behind the first byte is sent as 0x7D and the byte with bit 5 inverted. By Digi's
XBee user guides, "API frame structure".
"""

from collections.abc import Callable
from typing import Final

START, ESCAPE = b"\x7e", b"\x7d"
LENGTH_MAX: Final = 512
"""The longest contents that are read: more than any frame of a radio packet has."""
_SPECIAL: Final = b"\x7e\x7d\x11\x13"
_ESCAPED: Final = {byte: bytes((ESCAPE[0], byte ^ 0x20)) for byte in _SPECIAL}
_HEAD = 3  # start and length
_FRAME = _HEAD + 1  # and checksum

Reject = Callable[[str, int], None]
"""A function that counts input that became no frame, with the bytes in it; with the reason "", more bytes of
the same run."""


def framed(contents: bytes, escaped: bool) -> bytes:
    """Return the frame around its contents, at most 65,535 bytes."""
    rest = len(contents).to_bytes(2, "big") + contents + bytes((0xFF - sum(contents) & 0xFF,))
    return START + (b"".join(_ESCAPED.get(byte) or bytes((byte,)) for byte in rest) if escaped else rest)


class Frames:
    """A finder of the frames of mode 1, where 0x7E may also stand inside a frame.

    After a wrong length or checksum it searches again from the next byte on, so a good frame behind a false
    start is found. Reasons: `no start`, `length`, `checksum`, `unfinished`.
    """

    def __init__(self, reject: Reject) -> None:
        self._reject = reject
        self._held = bytearray()
        self._is_lost = False

    @property
    def is_inside(self) -> bool:
        """Whether a frame has begun."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the contents of the frames that `data` completes."""
        self._held += data
        found, at = list[bytes](), 0
        while (at := self._next(at)) < len(self._held):
            size = self._size(at)
            if size > len(self._held) - at:
                break
            if size and sum(self._held[at + _HEAD : at + size]) & 0xFF == 0xFF:
                found.append(bytes(self._held[at + _HEAD : at + size - 1]))
                self._is_lost, at = False, at + size
            else:
                self._lose("checksum" if size else "length", 1, bool(size))
                at += 1
        del self._held[:at]
        return found

    def _next(self, at: int) -> int:
        """Return where the next frame may begin. Count what stands before it."""
        start = self._held.find(START, at)
        start = len(self._held) if start < 0 else start
        if start > at:
            self._lose("no start", start - at)
        return start

    def _size(self, at: int) -> int:
        """Return the size of the frame that begins there, as far as that is known; 0 for one that is none."""
        length = int.from_bytes(self._held[at + 1 : at + _HEAD], "big")
        if len(self._held) - at < _HEAD:
            return _FRAME
        return length + _FRAME if 0 < length <= LENGTH_MAX else 0

    def _lose(self, reason: str, size: int, is_frame: bool = False) -> None:
        """Count bytes without a frame by their reason: once for a run, unless they looked like a frame."""
        self._reject("" if self._is_lost and not is_frame else reason, size)
        self._is_lost = True

    def give_up(self) -> list[bytes]:
        """Give up the frame that has begun, as no more of it came. Return those that stand in it."""
        found = list[bytes]()
        while self._held:
            self._lose("unfinished", 1, not found)
            rest = bytes(self._held[1:])
            self._held.clear()
            found += self.feed(rest)
        return found


class EscapedFrames:
    """A finder of the frames of mode 2, where 0x7E only begins a frame.

    Reasons: `no start`, `length`, `checksum`, `cut` by the start of another frame, `unfinished`.
    """

    def __init__(self, reject: Reject) -> None:
        self._reject = reject
        self._body = bytearray()  # without escapes
        self._size = 0  # bytes on the line of the frame that has begun; 0 if none has
        self._is_escape = self._is_lost = False

    @property
    def is_inside(self) -> bool:
        """Whether a frame has begun."""
        return self._size > 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the contents of the frames that `data` completes."""
        first, *runs = data.split(START)
        found = self._run(first)
        for run in runs:
            if self._size:
                self._end("cut")
            self._size, self._is_lost = 1, False
            found += self._run(run)
        return found

    def _run(self, run: bytes) -> list[bytes]:
        """Take bytes without a start. Return the contents of the frame that they complete, if any."""
        for at, byte in enumerate(run):
            if not self._size:
                self._lose("no start", len(run) - at)
                break
            self._take(byte)
            if self._is_whole():
                return [*self._whole(), *self._run(run[at + 1 :])]
        return []

    def _take(self, byte: int) -> None:
        self._size += 1
        if byte == ESCAPE[0] and not self._is_escape:
            self._is_escape = True
            return
        self._body.append(byte ^ 0x20 if self._is_escape else byte)
        self._is_escape = False
        if len(self._body) == 2 and not 0 < self._length <= LENGTH_MAX:
            self._end("length")

    @property
    def _length(self) -> int:
        return int.from_bytes(self._body[:2], "big")

    def _is_whole(self) -> bool:
        return len(self._body) >= 2 and len(self._body) == self._length + _HEAD

    def _whole(self) -> list[bytes]:
        contents = bytes(self._body[2:-1])
        if sum(self._body[2:]) & 0xFF != 0xFF:
            self._end("checksum")
            return []
        self._size, self._is_escape = 0, False
        self._body.clear()
        return [contents]

    def _end(self, reason: str) -> None:
        """Forget the frame that has begun, and count its bytes."""
        self._lose(reason, self._size)
        self._size, self._is_escape = 0, False
        self._body.clear()

    def _lose(self, reason: str, size: int) -> None:
        self._reject("" if self._is_lost else reason, size)
        self._is_lost = True

    def give_up(self) -> list[bytes]:
        """Give up the frame that has begun, as no more of it came. There is never one inside it."""
        if self._size:
            self._end("unfinished")
        return []
