"""One TCP connection that carries many packets both ways, whoever made it."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable

from bus.errors import words_of
from bus.hub import Stats
from bus.tmq.wire import Address, Cutter
from bus.transports.backlog import Backlog
from bus.transports.sockets import tune

READ_BYTES = 256 * 1024

OnFrames = Callable[["Connection", list[bytes]], None]
OnClosed = Callable[["Connection"], None]


class Connection:
    """Frames over a connected non-blocking socket, with a bounded queue out.

    `greeted`: the other side has said that it takes many packets here. `address` is where it listens, if it
    said so; `fault` is why it was closed. `stats` counts what goes out, in frames; it may be shared.
    """

    __slots__ = (
        "_closed",
        "_cutter",
        "_loop",
        "_lost",
        "_on_closed",
        "_on_frames",
        "_queue",
        "_queue_bytes",
        "_socket",
        "address",
        "fault",
        "frames",
        "greeted",
        "heard_s",
        "host",
        "lawless",
        "name",
        "node",
        "said_s",
        "silence_s",
        "stats",
    )

    def __init__(
        self,
        loop: AbstractEventLoop,
        sock: socket.socket,
        name: str,
        on_frames: OnFrames,
        on_closed: OnClosed,
        stats: Stats | None = None,
        queue_bytes: int = 1 << 20,
    ) -> None:
        self.name, self.host = name, name.rpartition(":")[0]
        self.greeted = self.lawless = False
        self.address: Address | None = None
        self.node = 0
        self.fault = ""
        self.frames = 0
        self.silence_s = 0.0
        self.heard_s = self.said_s = loop.time()
        self.stats = stats or Stats()
        self._loop, self._socket = loop, sock
        self._on_frames, self._on_closed = on_frames, on_closed
        self._cutter = Cutter()
        self._queue, self._queue_bytes = Backlog(self.stats), queue_bytes
        self._lost: list[Callable[[Connection], None]] = []
        self._closed = False
        tune(sock)
        loop.add_reader(sock, self.read)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def queued_bytes(self) -> int:
        return self._queue.bytes

    @property
    def half(self) -> bool:
        """Whether it has brought part of a frame."""
        return bool(self._cutter.waiting)

    def on_lost(self, callback: "Callable[[Connection], None]") -> None:
        """Call `callback(connection)` once, when it is gone; at once if it is already."""
        if self._closed:
            callback(self)
        else:
            self._lost.append(callback)

    def read(self) -> None:
        """Take what is there, once; hand on whole frames."""
        if self._closed:
            return
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.close(words_of(error))
        if not data:
            return self.close("closed by the peer")
        frames = self._cutter.feed(data)
        if frames:
            self.heard_s = self._loop.time()
            self.frames += len(frames)
            self._on_frames(self, frames)
        if self._cutter.fault:
            self.lawless = True
            self.close(self._cutter.fault)

    def ended(self) -> bool:
        """Whether the other side has already closed behind what it sent."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def say(self, frame: bytes) -> None:
        """Send a frame that no ledger counts."""
        self._send(frame, 0)

    def send(self, data: bytes, count: int = 1) -> bool:
        """Send `count` whole frames now or later; False: dropped and counted. Never blocks, never raises."""
        self.stats.offered += count
        return self._send(data, count)

    def _send(self, data: bytes, count: int) -> bool:
        if self._closed:
            self.stats.drop("closed", count) if count else None
            return False
        if self._queue:
            return self._enqueue(memoryview(data), count)
        try:
            written = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError as error:
            self.stats.drop("peer gone", count) if count else None
            self.close(words_of(error))
            return False
        self.said_s = self._loop.time()
        self.stats.sent_bytes += written
        if written == len(data):
            self.stats.sent += count
            return True
        return self._enqueue(memoryview(data)[written:], count, begun=written > 0)

    def _enqueue(self, view: memoryview, count: int, begun: bool = False) -> bool:
        if not begun and self._queue.bytes + len(view) > self._queue_bytes:
            self.stats.drop("queue full", count) if count else None
            return False
        if not self._queue:
            self._loop.add_writer(self._socket, self._on_writable)
        self._queue.put(view, count)
        return True

    def _on_writable(self) -> None:
        try:
            self._queue.write(self._socket)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.close(words_of(error))
        self.said_s = self._loop.time()
        if not self._queue:
            self._loop.remove_writer(self._socket)

    def close(self, why: str = "") -> None:
        """Let go; what was queued becomes counted drops. Idempotent."""
        if self._closed:
            return
        self._closed, self.fault = True, why
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._queue.drop("peer gone")
        self._on_closed(self)
        lost, self._lost = self._lost, []
        for callback in lost:
            callback(self)
