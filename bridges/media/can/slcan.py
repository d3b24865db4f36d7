"""Fast, non-blocking reads for slcan adapters: python-can itself reads byte by byte and waits for each."""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from typing import Any

_READ_BYTES = 65536
_LINE_BYTES = 256  # the longest line is shorter: 1 + 8 + 1 + 128 + 4
_ASCII = bytes(code if code < 128 else ord("?") for code in range(256))


class BufferedLine:
    """A wrapper of pyserial's port that reads large blocks without waiting. It delegates everything else.

    python-can never removes a byte above 127 from its buffer, so it fails again at every read; and it does
    not limit the length of a line. The wrapper replaces such bytes by `?` and ends lines that are too long.
    """

    def __init__(self, port: Any) -> None:
        self._port, self._fd = port, port.fileno()
        self._buffer, self._position = b"", 0
        self._line_bytes = 0
        self._hurried = False

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
        if not data:
            raise OSError(errno.ECONNRESET, "the adapter's line has closed")
        return self._bounded(data.translate(_ASCII))

    def _bounded(self, data: bytes) -> bytes:
        end = max(data.rfind(b"\r"), data.rfind(b"\a"))
        self._line_bytes = len(data) - 1 - end + (self._line_bytes if end < 0 else 0)
        if self._line_bytes <= _LINE_BYTES:
            return data
        self._line_bytes = 0
        return data + b"\r"

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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


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
