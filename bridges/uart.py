"""A link over a serial line: one device, one pipe (docs/wire/uart.md)."""

import contextlib
import os
import socket
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from itertools import islice
from threading import Thread
from typing import Any, Protocol
from urllib.parse import urlsplit

from bridges.codecs.uart import (
    MESSAGE_BYTES_MAX,
    MESSAGE_BYTES_MIN,
    WIRE_BYTES_MAX,
    Decoder,
    encode,
    wire_bytes_max,
)
from bridges.device import DeviceLink, DevicePipe
from bus.batch import Batch, from_payloads, payloads
from bus.errors import LinkError
from bus.hub import Hub, Stats

_READ_BYTES = 65536
_WRITE_FRAMES = 64  # joined into one write
_CONNECT_S = 5.0


class Port(Protocol):
    """What is needed of an open port; its descriptor does not block."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class UartLink(DeviceLink[Port]):
    """A serial port as a link: a device path, or `socket://host:port` for a serial server.

    `queue_bytes` bounds what waits for the line, as encoded; more is dropped and counted `queue full`.
    `retry_min_s`, `retry_max_s`, `jitter`: see `DeviceLink`.
    Raises `LinkError` for what can never work: a URL without a descriptor, a baud rate of 0.
    """

    def __init__(
        self,
        port: str,
        baud: int = 115200,
        exclusive: bool = True,
        parity: str = "N",
        stopbits: float = 1,
        rtscts: bool = False,
        queue_bytes: int = 64 * 1024,
        **retry: Any,
    ) -> None:
        super().__init__(f"uart:{port}", **retry)
        _check(self.name, port, baud, parity, stopbits, queue_bytes)
        self.port, self.queue_bytes = port, queue_bytes
        self._settings: dict[str, Any] = {
            "baudrate": baud,
            "exclusive": exclusive,
            "parity": parity,
            "stopbits": stopbits,
            "rtscts": rtscts,
        }

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start opening the port. Raises `LinkError` where pyserial is missing."""
        try:
            import serial  # noqa: F401
        except ImportError as error:
            raise LinkError(f"{self.name}: needs pyserial: install buscoupler[uart]") from error
        super().open(hub, loop)

    def _open_device(self) -> Port:
        if self.port.startswith("socket://"):
            return _connect(self.port)
        import serial

        return serial.serial_for_url(self.port, timeout=0, write_timeout=0, **self._settings)

    def _release(self, device: Port) -> None:
        _release(device)

    def _make_pipe(self, device: Port, on_close: Callable[[str], None]) -> DevicePipe:
        return UartPipe(self.name, device, self.stats, self._hub, self._loop, self.queue_bytes, on_close)


def _check(name: str, port: str, baud: int, parity: str, stopbits: float, queue_bytes: int) -> None:
    scheme = urlsplit(port).scheme if "://" in port else ""
    if scheme not in ("", "socket", "hwgrep"):
        raise LinkError(
            f"{name}: {scheme}:// has no descriptor to wait on: use a device path or socket://host:port"
        )
    if scheme == "socket":
        _socket_address(name, port)
    if baud <= 0:
        raise LinkError(f"{name}: baud must be above 0, not {baud}")
    if parity not in ("N", "E", "O", "M", "S") or stopbits not in (1, 1.5, 2):
        raise LinkError(f"{name}: parity is one of N E O M S, stopbits one of 1 1.5 2")
    if queue_bytes < WIRE_BYTES_MAX:
        raise LinkError(
            f"{name}: queue_bytes must be at least {WIRE_BYTES_MAX}, else the longest frame never fits"
        )


def _socket_address(name: str, url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise LinkError(f"{name}: {error}") from error
    if not host or not port:
        raise LinkError(f"{name}: write it as socket://host:port")
    return host, port


def _connect(url: str) -> socket.socket:
    """Our own socket: pyserial's waits 0.3 s in close() and leaks it where the far end has gone."""
    sock = socket.create_connection(_socket_address(url, url), timeout=_CONNECT_S)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _release(port: Port) -> None:
    """Closing a tty waits for what it still has to send, up to 30 s: not on the loop."""
    waiting = 0
    with contextlib.suppress(OSError):
        waiting = getattr(port, "out_waiting", 0)
    if waiting:
        Thread(target=_close, args=(port,), daemon=True, name="uart close").start()
    else:
        _close(port)


def _close(port: Port) -> None:
    with contextlib.suppress(OSError):
        port.close()


class UartPipe:
    """The one peer of a serial line: everything at its far end."""

    def __init__(
        self,
        name: str,
        port: Port,
        stats: Stats,
        hub: Hub,
        loop: AbstractEventLoop,
        queue_bytes: int,
        on_close: Callable[[str], None],
    ) -> None:
        self.name, self.stats = name, stats
        self._port, self._fd = port, port.fileno()
        self._hub, self._loop, self._on_close = hub, loop, on_close
        self._queue_bytes = queue_bytes
        self._decoder = Decoder(stats.rejected)
        self._queue: deque[bytes] = deque()
        self._written = 0  # bytes of the queue's head that the line has already
        self._waiting = self._closed = False

    def start(self) -> None:
        self._loop.add_reader(self._fd, self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._gone(f"lost: {error.strerror}")
        if not data:
            return self._gone("lost: end of file")
        messages = self._decoder.feed(data)
        if messages:
            self._hub.publish(from_payloads(messages), self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        enqueue(payloads(batch), self._queue, self.stats, self._queue_bytes)
        if not self._waiting:
            self._flush()
        return None

    def _flush(self) -> None:
        while self._queue:
            chunk = b"".join(islice(self._queue, _WRITE_FRAMES))[self._written :]
            try:
                count = os.write(self._fd, chunk)
            except (BlockingIOError, InterruptedError):
                count = 0
            except OSError as error:
                return self._gone(f"lost: {error.strerror}")
            self._written = settle(self._queue, self.stats, self._written + count)
            if count < len(chunk):
                return self._wait()
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._flush)

    def close(self) -> None:
        self._gone("closed")

    def _gone(self, why: str) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._hub.detach(self)
        if self._queue:
            self.stats.drop("closed", len(self._queue))
            self._queue.clear()
        self.stats.queued = self.stats.queued_bytes = 0
        _release(self._port)
        self._on_close(why)


def enqueue(messages: list[bytes], queue: deque[bytes], stats: Stats, queue_bytes: int) -> None:
    """Encode and queue what fits below `queue_bytes`; count the rest as dropped."""
    for message in messages:
        if not MESSAGE_BYTES_MIN <= len(message) <= MESSAGE_BYTES_MAX:
            stats.drop("oversize" if message else "empty")
        elif stats.queued_bytes + wire_bytes_max(len(message)) > queue_bytes:
            stats.drop("queue full")
        else:
            coded = encode(message)
            queue.append(coded)
            stats.queued += 1
            stats.queued_bytes += len(coded)


def settle(queue: deque[bytes], stats: Stats, written: int) -> int:
    """Take the frames off the queue that `written` bytes complete; returns the bytes left over."""
    while queue and written >= len(queue[0]):
        size = len(queue.popleft())
        written -= size
        stats.queued -= 1
        stats.queued_bytes -= size
        stats.sent += 1
        stats.sent_bytes += size
    return written
