"""The serial port or the socket that an interface of python-can reads from: counted, and watched for its end.

Some interfaces keep the end to themselves: they return no frame for ever, and take a processor core for it.
"""

import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from bridges.media.hangup import has_ended
from bus.errors import words_of
from bus.text import SAID_BYTES, after

UNFRAMED_BYTES = 256
"""The number of bytes without a frame that is noise: no interface takes more for one."""
_ASCII = bytes(code if code < 128 else ord("?") for code in range(256))


class SourceInput(NamedTuple):
    """The input of a source, in bytes, and what of it was surely in no frame: whole lines, and bytes.

    `left` are the frames that had been read, but not taken, when the source was closed.
    """

    size: int = 0
    noise_lines: int = 0
    noise_bytes: int = 0
    left: int = 0


class Source:
    """A wrapper of a port of pyserial or of a stream socket. It delegates all that it does not count.

    `fault` is why a read failed; "" while none did. Call `note_frame` for each frame that was made of what
    was read. With `text` a byte above 127 is read as `?`, because the interface fails for ever at one.
    """

    __slots__ = ("_heard_bytes", "_noise_bytes", "_port", "_said", "_text", "_unframed_bytes", "fault")

    def __init__(self, port: Any, text: bool = False) -> None:
        object.__setattr__(self, "_port", port)
        self._text, self._said, self.fault = text, b"", ""
        self._heard_bytes = self._unframed_bytes = self._noise_bytes = 0

    def read(self, size: int = 1) -> bytes:
        return self._hear(self._port.read, size)

    def recv(self, size: int) -> bytes:
        return self._hear(self._port.recv, size)

    def _hear(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            data = read(size)
        except (BlockingIOError, InterruptedError):
            raise
        except Exception as error:  # a driver may raise any exception
            self.fault = words_of(error)
            raise
        return self._note(data)

    def _note(self, data: bytes) -> bytes:
        self._heard_bytes += len(data)
        self._unframed_bytes += len(data)
        if self._unframed_bytes > UNFRAMED_BYTES:
            self.end()
        self._keep_said(data)
        return data.translate(_ASCII) if self._text else data

    def _keep_said(self, data: bytes) -> None:
        self._said = (self._said + data)[-SAID_BYTES:]

    def note_frame(self) -> None:
        """Note that what was read so far has made a frame."""
        self._said, self._unframed_bytes = b"", 0

    def take_heard(self) -> SourceInput:
        """Return what came since the last call."""
        heard = SourceInput(self._heard_bytes, 0, self._noise_bytes)
        self._heard_bytes = self._noise_bytes = 0
        return heard

    def end(self) -> None:
        """Count what was read since the last frame as noise, because no more of it comes."""
        self._noise_bytes += self._unframed_bytes
        self._unframed_bytes = 0

    @property
    def ended(self) -> str:
        """The reason why nothing will be read again, with what was said before; "" while something may be."""
        why = self.fault or ("closed by the other end" if self._has_ended() else "")
        return after(f"lost: {why}", self._said) if why else ""

    def _has_ended(self) -> bool:
        try:
            return has_ended(self._port.fileno())
        except (OSError, ValueError):  # a port without a descriptor, or one that is closed
            return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            setattr(self._port, name, value)


def put_source(bus: Any) -> None:
    """Put a `Source` before what an interface reads from, if that is a serial port or a stream socket."""
    for name, value in vars(bus).items():
        is_stream = isinstance(value, socket.socket) and value.type == socket.SOCK_STREAM
        if is_stream or (hasattr(value, "in_waiting") and hasattr(value, "read")):
            setattr(bus, name, Source(value, text=is_stream))
            return


def source_of(bus: Any) -> Source | None:
    """Return the `Source` that was put before what an interface reads from."""
    return next((value for value in vars(bus).values() if isinstance(value, Source)), None)
