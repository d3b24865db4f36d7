"""One TCP connection that carries many packets both ways, whoever made it."""

import socket
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable

from bus.ledger import Stats
from bus.tmq.options import Options
from bus.tmq.wire import Address, Cutter, Hello, pack_hello
from bus.transports.framing import Framing
from bus.transports.gathering import NoGathering
from bus.transports.sockets import tune
from bus.transports.stream import StreamPipe
from bus.wire.batch import Batch

READ_BYTES = 256 * 1024

OnFrames = Callable[["Connection", list[bytes]], None]
OnClosed = Callable[["Connection"], None]


class _Scratch(threading.local):
    """The buffer that all connections of a thread, and so of an event loop, read into."""

    def __init__(self) -> None:
        self.data = memoryview(bytearray(READ_BYTES))


_scratch = _Scratch()


class _Frames:
    """The whole frames of one read."""

    __slots__ = ("count", "frames")

    def __init__(self, frames: list[bytes]) -> None:
        self.frames, self.count = frames, len(frames)


class _Decoder(Cutter):
    """Cuts into frames what a stream pipe reads."""

    __slots__ = ()

    def buffer(self) -> memoryview:
        return _scratch.data

    def feed(self, read_bytes: int) -> _Frames | None:
        frames = self.cut(bytes(_scratch.data[:read_bytes]))
        return _Frames(frames) if frames else None

    def revise(self, message_bytes: int) -> None:
        """Change nothing: the format bounds its frames."""


class Connection:
    """Frames over a connected non-blocking socket, with a bounded queue out: a stream pipe with a memory.

    `greeted`: the other side has said that it takes many packets here. `address` is where it listens, if it
    said so. `heard_s` and `said_s` are when frames last came and went, on the loop's clock; `frames` counts
    those that came; `cutter` holds part of one, or the fault of what is no frame. `stats` counts what goes
    out, in frames; it may be shared.
    """

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
        self.greeted = False
        self.address: Address | None = None
        self.node = 0
        self.frames = 0
        self.silence_s = 0.0
        self.heard_s = self.said_s = loop.time()
        self._loop, self._socket = loop, sock
        self._on_frames, self._on_closed = on_frames, on_closed
        self._lost: list[OnClosed] = []
        self.cutter = _Decoder()
        tune(sock)
        framing, batch, gone = Framing(lambda _: self.cutter), self._on_batch, self._on_gone
        self._pipe = StreamPipe(
            sock, name, framing, queue_bytes, batch, gone, stats=stats, gathering=NoGathering
        )
        self.stats = self._pipe.stats
        self._pipe.start(loop, 0.0)

    @property
    def closed(self) -> bool:
        return self._pipe.closed

    @property
    def fault(self) -> str:
        """Why it was closed."""
        return self._pipe.fault

    @property
    def queued_bytes(self) -> int:
        return self._pipe.queued_bytes

    def met(self, hello: Hello) -> bool:
        """Note what the other side says of itself. Return whether this is the first time."""
        first, self.greeted = not self.greeted, True
        self.node, self.silence_s = hello.node, hello.silence_ms / 1000
        return first

    def on_lost(self, callback: OnClosed) -> None:
        """Call `callback(connection)` once, when the connection is gone; at once if it already is."""
        if self.closed:
            callback(self)
        else:
            self._lost.append(callback)

    def read(self) -> None:
        """Read once what is there, and hand on whole frames."""
        if not self.closed:
            self._pipe.read()

    def _on_batch(self, batch: _Frames, _: StreamPipe) -> None:
        self.heard_s = self._loop.time()
        self.frames += batch.count
        self._on_frames(self, batch.frames)

    def ended(self) -> bool:
        """Return whether the other side has already closed behind what it sent."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def say(self, frame: bytes) -> None:
        """Send a frame that no ledger counts."""
        self.send(frame, 0)

    def send(self, data: bytes, count: int = 1) -> bool:
        """Send `count` whole frames now or later, or drop and count them. Never blocks, never raises.

        Returns False once the connection is closed.
        """
        self.said_s = self._loop.time()
        self._pipe.send(Batch(data, count))
        return not self.closed

    def keep_alive(self, options: Options, hello: Callable[[int], Hello]) -> None:
        """Greet again if we have been quiet, close if the peer has. Call it once a heartbeat."""
        now_s = self._loop.time()
        quiet_s = now_s - self.heard_s
        if not self.greeted:
            if quiet_s > options.idle_s:
                self.close("idle")
        elif self.silence_s and quiet_s > max(self.silence_s, options.heartbeat_s):
            self.close(f"silent for {quiet_s:.1f} s")
        elif now_s - self.said_s > options.heartbeat_s / 2 and not self.queued_bytes:
            self.say(pack_hello(hello(0)))

    def close(self, why: str = "") -> None:
        """Disconnect; what was queued becomes counted drops. Idempotent."""
        self._pipe.close(why)

    def _on_gone(self, _: StreamPipe) -> None:
        self._on_closed(self)
        lost, self._lost = self._lost, []
        for callback in lost:
            callback(self)
