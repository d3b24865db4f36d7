"""Pipes over a descriptor of bytes: what came before the far end went is heard though writing fails first."""

from typing import Protocol

from bridges.media.device import OpenPipe, PipeContext
from bridges.media.hangup import waiting_bytes
from bus.errors import words_of
from bus.text import SAID_BYTES, after


class BytePort(Protocol):
    """An open device of bytes. `read` and `write` return at once and raise `OSError` when it is gone."""

    def fileno(self) -> int: ...
    def read(self) -> bytes: ...
    def write(self, data: bytes) -> int: ...
    def waiting(self) -> int: ...
    def close(self) -> None: ...


class ByteStreamPipe(OpenPipe):
    """A pipe that reads a port. A medium overrides `_came`, and calls `_lose` where it cannot write."""

    def __init__(self, port: BytePort, context: PipeContext) -> None:
        super().__init__(context)
        self._port, self._fd = port, port.fileno()
        self._said = b""  # the end of what came since something was last understood
        self._lost = ""

    def start(self) -> None:
        self._loop.add_reader(self._fd, self._on_readable)
        self._hub.attach(self)
        self._loop.call_soon(self._read_early)

    def _read_early(self) -> None:
        """Read what came before the link was up, for which no descriptor is readable."""
        if not self._closed:
            self._on_readable()

    def _came(self, data: bytes) -> None:
        """Take what came, which may be nothing. Never raises."""
        raise NotImplementedError

    def _on_readable(self) -> None:
        try:
            data = self._port.read()
        except OSError as error:
            return self._gone(after(f"lost: {words_of(error)}", self._said))
        return self._came(data)

    def _keep(self, data: bytes, found: int) -> None:
        """Keep what may be the words of a server that is about to hang up, unless something was found."""
        self._said = b"" if found else (self._said + data)[-SAID_BYTES:]

    def _lose(self, error: OSError) -> None:
        """End the pipe because writing failed, once what the far end sent before is read. Idempotent."""
        if not self._lost:
            self._lost = f"lost: {words_of(error)}"
            self._loop.call_soon(self._read_rest)

    def _read_rest(self) -> None:
        if not self._closed:
            self._on_readable()
        if not self._closed and waiting_bytes(self._fd):
            self._loop.call_soon(self._read_rest)
        else:
            self._gone(after(self._lost, self._said))
