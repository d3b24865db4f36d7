"""A pipe over a connected stream socket: SP framing, a bounded send queue, and no waiting for anyone."""

import logging
import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from dataclasses import dataclass

from bus.errors import words_of
from bus.hub import Hub, Pipe, Stats
from bus.transports.backlog import Backlog
from bus.transports.gathering import Gathering
from bus.wire.batch import Batch
from bus.wire.sp import HANDSHAKE, LEAD_IPC, Decoder, add_lead, handshake_fault

log = logging.getLogger("buscoupler.bus")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Limits of each peer of a stream link."""

    queue_bytes: int = 8 * 1024 * 1024  # waiting for one slow peer; more is dropped and counted
    message_bytes: int = 1024 * 1024  # a peer that announces more is closed
    handshake_s: float = 5.0
    peers: int = 16384
    retry_min_s: float = 0.1
    retry_max_s: float = 10.0

    def __post_init__(self) -> None:
        if self.queue_bytes < self.message_bytes:
            raise ValueError("queue_bytes must be at least message_bytes: else the largest never fits")


class StreamPipe(Pipe):
    """One peer on a connected non-blocking socket. Attaches to the hub once its handshake is right.

    `on_close(pipe)` is called exactly once, when the pipe is gone for whatever reason.
    """

    __slots__ = (
        "_closed",
        "_decoder",
        "_gathering",
        "_greeting",
        "_hub",
        "_lead",
        "_loop",
        "_on_close",
        "_queue",
        "_queue_bytes",
        "_socket",
        "_timer",
        "name",
        "ready",
        "stats",
    )

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        scratch: bytearray,
        options: StreamOptions,
        on_close: "Callable[[StreamPipe], None]",
    ) -> None:
        self.name = name
        self.stats = Stats()
        self.ready = False
        self._socket = sock
        self._lead = len(LEAD_IPC) if sock.family == socket.AF_UNIX else 0
        self._decoder = Decoder(scratch, options.message_bytes, self._lead)
        self._queue_bytes = options.queue_bytes
        self._queue = Backlog(self.stats)
        self._greeting = b""
        self._on_close = on_close
        self._closed = False
        self._gathering = Gathering(sock)
        self._timer: TimerHandle | None = None

    def start(self, hub: Hub, loop: AbstractEventLoop, handshake_s: float) -> None:
        """Greet the peer and wait for its greeting, for so long."""
        self._hub, self._loop = hub, loop
        self._timer = loop.call_later(handshake_s, self._fail, f"no SP handshake within {handshake_s:g} s")
        loop.add_reader(self._socket, self._on_greeting)
        try:
            self._socket.send(HANDSHAKE)
        except OSError as error:
            self._fail(words_of(error))

    def _on_greeting(self) -> None:
        try:
            received = self._socket.recv(len(HANDSHAKE) - len(self._greeting))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._fail(words_of(error))
        self._greeting += received
        fault = handshake_fault(self._greeting) if received else "closed during the SP handshake"
        if fault:
            self._fail(fault)
        elif len(self._greeting) == len(HANDSHAKE):
            self._enter()

    def _enter(self) -> None:
        self._disarm()
        self._greeting = b""
        self.ready = True
        self._loop.add_reader(self._socket, self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        self._gathering.wait()
        decoder = self._decoder
        try:
            read_bytes = self._socket.recv_into(decoder.buffer())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._fail(words_of(error))
        if not read_bytes:
            return self._fail("closed by the peer", expected=True)
        batch = decoder.feed(read_bytes)
        if batch is not None:
            self._hub.publish(batch, self)
        if decoder.fault:
            self.stats.reject("framing")
            return self._fail(decoder.fault)
        self._gathering.note(read_bytes, batch.count if batch else 0)

    def send(self, batch: Batch) -> None:
        """Send at once what the kernel takes, queue the rest, drop the batch if the queue is full."""
        stats = self.stats
        stats.offered += batch.count
        if self._closed:
            return stats.drop("closed", batch.count)
        data = add_lead(batch) if self._lead else batch.data
        if self._queue:
            return self._enqueue(data, 0, batch)
        try:
            written = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError as error:
            stats.drop("peer gone", batch.count)
            return self._fail(words_of(error))
        if written == len(data):
            stats.sent += batch.count
            stats.sent_bytes += written
            return None
        return self._enqueue(data, written, batch)

    def _enqueue(self, data: bytes | bytearray | memoryview, written: int, batch: Batch) -> None:
        """Queue what is left of a batch. A batch that has begun must go on, whatever its size."""
        if not written and self._queue.bytes + len(data) > self._queue_bytes:
            return self.stats.drop("queue full", batch.count)
        owned = data if isinstance(data, bytes) else batch.keep()
        if not self._queue:
            self._loop.add_writer(self._socket, self._on_writable)
        self._queue.put(memoryview(owned)[written:], batch.count)
        self.stats.sent_bytes += written
        return None

    def _on_writable(self) -> None:
        try:
            self._queue.write(self._socket)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._fail(words_of(error))
        if not self._queue:
            self._loop.remove_writer(self._socket)

    def purge(self, reason: str) -> list[bytes]:
        """Drop what waits and has not begun; those messages."""
        return self._queue.purge(reason, self._lead)

    def _fail(self, reason: str, expected: bool = False) -> None:
        if not self._closed:
            level = logging.INFO if expected else logging.WARNING
            log.log(level, "%s: closed: %s", self.name, reason)
            self.close()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Let go of the peer; queued messages become drops. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._disarm()
        # Before the descriptor is closed: its number may be given to another peer at once.
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._queue.drop("closed")
        self._hub.detach(self)
        self._on_close(self)
