"""Fast, non-blocking reads for slcan adapters: python-can itself reads byte by byte and waits for each.

Lines that are no frame are counted and left out. Firmware ends lines with CR, LF or both.
"""

import contextlib
import errno
import os
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from bridges.media.can.codec import FD_LENGTHS
from bridges.media.can.source import Source, SourceInput
from bridges.media.hangup import has_ended
from bus.machine.addresses import dialled
from bus.text import SAID_BYTES

_READ_BYTES = 65536
_LINE_BYTES = 256  # the longest line is shorter: 1 + 8 + 1 + 128 + 8
_SAYS_S = 0.5
_STAMP_DIGITS = 8  # a time may stand behind a frame
_ENDS = re.compile(rb"[\r\n\a]")
_HEX = re.compile(rb"[0-9A-Fa-f]+")
_REPLY = re.compile(rb"|[zZ]|[VvNF][0-9A-Fa-f]{1,8}")  # to our commands; an error (BEL) is an empty line
_HEADS = {letter: 5 if letter.islower() else 10 for letter in "tTrRdDbB"} | {"x": 10}


def is_frame(line: bytes) -> bool:
    """Return whether a line, without its end, is a whole CAN frame of the protocol of slcan."""
    letter = chr(line[0]) if line else ""
    head = _HEADS.get(letter, 0)
    if not head or len(line) < head or not _HEX.fullmatch(line, 1):
        return False
    code = int(line[head - 1 : head], 16)
    if letter not in "dDbB" and code > 8:
        return False
    size = 0 if letter in "rR" else 2 * FD_LENGTHS[code]
    return 0 <= len(line) - head - size <= _STAMP_DIGITS


def said_at(channel: str) -> bytes:
    """Return what a serial server says to who connects, such as that its port is in use; b"" for nothing.

    It says so before it hangs up, and python-can, which writes at once, reads nothing of it. Blocks shortly.
    """
    url = urlsplit(channel)
    if url.scheme != "socket":
        return b""
    said = b""
    try:
        with dialled(url.hostname or "", url.port or 0, _SAYS_S) as server:
            while len(said) < SAID_BYTES and (more := server.recv(SAID_BYTES)):
                said += more
    except (OSError, ValueError):
        pass  # it says no more
    return said


class BufferedLine(Source):
    """A source that reads large blocks of lines without waiting, and gives only those that are frames.

    python-can does not bound the length of a line, and takes one that was cut for a shorter frame.
    """

    __slots__ = (
        "_buffer",
        "_fd",
        "_hurried",
        "_left_frames",
        "_noise_bytes",
        "_noise_lines",
        "_part",
        "_position",
        "_skipping",
    )

    def __init__(self, port: Any) -> None:
        super().__init__(port)
        self._fd = port.fileno()
        self._buffer, self._position, self._part = b"", 0, b""
        self._noise_lines = self._left_frames = 0
        self._skipping = self._hurried = False

    @property
    def left(self) -> int:
        """The number of bytes in our buffer: read from the descriptor, but not yet taken."""
        return len(self._buffer) - self._position

    @property
    def in_waiting(self) -> int:
        """The number of bytes that can be read now. Raises `OSError` when the line has closed."""
        if not self.left:
            self._buffer, self._position = self._fill(), 0
        return self.left

    def _fill(self) -> bytes:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return b""
        if not data and has_ended(self._fd):  # a tty gives nothing when it has nothing
            self.fault = "the adapter's line has closed"
            raise OSError(errno.ECONNRESET, self.fault)
        self._keep_said(data)
        return self._frames(data)

    def _frames(self, data: bytes) -> bytes:
        """Return the lines of `data` that are frames. Keep the beginning of a line."""
        *lines, part = _ENDS.split(self._part + data)
        frames = []
        for line in lines:
            if not self._skipping and is_frame(line):
                frames.append(line + b"\r")
            elif self._skipping or not _REPLY.fullmatch(line):
                self._count(line)
            self._skipping = False
        self._part = part
        if len(part) > _LINE_BYTES:
            self._noise_lines += not self._skipping
            self._noise_bytes += len(part)
            self._part, self._skipping = b"", True
        return b"".join(frames)

    def _count(self, line: bytes) -> None:
        self._noise_lines += not self._skipping
        self._noise_bytes += len(line)

    def take_heard(self) -> SourceInput:
        """Return what came since the last call and was no frame; answers to our commands are not counted."""
        lines, size, self._noise_lines, self._noise_bytes = self._noise_lines, self._noise_bytes, 0, 0
        left, self._left_frames = self._left_frames, 0
        return SourceInput(size, lines, size, left)

    def end(self) -> None:
        self._left_frames += self._buffer.count(b"\r", self._position)
        self._buffer, self._position = b"", 0
        if self._part:
            self._count(self._part)
            self._part = b""

    def read(self, size: int = 1) -> bytes:
        start = self._position
        self._position = min(start + size, len(self._buffer))
        return self._buffer[start : self._position]

    @property
    def write_timeout(self) -> Any:
        return self._port.write_timeout

    @write_timeout.setter
    def write_timeout(self, seconds: Any) -> None:
        if not self._hurried:
            self._port.write_timeout = seconds

    def flush(self) -> None:
        """Wait until all bytes are written. Returns at once after `hurry`."""
        if not self._hurried:
            self._port.flush()

    def hurry(self) -> None:
        """Never wait from now on, because the line may be blocked: closing a tty then takes up to 30 s."""
        self._hurried = True
        with contextlib.suppress(Exception):
            self._port.write_timeout = 0
            if getattr(self._port, "out_waiting", 0):
                self._port.reset_output_buffer()

    def close(self) -> None:
        """Close the port. Idempotent.

        Closes a socket itself: pyserial waits 0.3 s for that, and leaks a socket whose peer is gone.
        """
        sock = getattr(self._port, "_socket", None)
        if isinstance(sock, socket.socket):
            self._port.is_open = False
            sock.close()
        else:
            self._port.close()


@contextlib.contextmanager
def socket_of(descriptor: int) -> Iterator[socket.socket]:
    """Lend a socket for a copy of `descriptor`. Raises `OSError` if that is no socket."""
    copy = os.dup(descriptor)
    try:
        sock = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with sock:
        yield sock


def prepare_slcan(bus: Any, bitrate: int | None, data_bitrate: int | None) -> None:
    """Set the data rate, because python-can's constructor cannot; read in blocks; send without delay.

    Raises `ValueError` for rates that slcan has no code for. Does not wrap a port without a descriptor.
    """
    if data_bitrate is not None:
        bus.set_bitrate(bitrate, data_bitrate)
    try:
        line = BufferedLine(bus.serialPortOrig)
    except OSError:  # io.UnsupportedOperation is an OSError
        return
    bus.serialPortOrig = line
    with contextlib.suppress(OSError), socket_of(line.fileno()) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
