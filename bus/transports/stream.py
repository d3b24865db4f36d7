"""A pipe over a connected stream socket, in any framing: a bounded send queue, and no waiting for anyone."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bus.errors import words_of
from bus.hub import Pipe
from bus.ledger import Stats
from bus.transports.backlog import Backlog
from bus.transports.framing import Framing
from bus.transports.gathering import Gathering
from bus.transports.options import MESSAGE_BYTES, QUEUE_BYTES, check_fit
from bus.wire.batch import LENGTH_BYTES, Batch

CLOSED_BY_PEER = "closed by the peer"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Limits of each peer of a stream link."""

    queue_bytes: int = QUEUE_BYTES  # waiting for one slow peer; more is dropped and counted
    message_bytes: int = MESSAGE_BYTES  # a peer that announces more is closed
    handshake_s: float = 5.0
    peers: int = 16384
    retry_min_s: float = 0.1
    retry_max_s: float = 10.0
    silence_s: float = 0.0  # a peer that acknowledges nothing for so long is closed; 0: as the system does

    def __post_init__(self) -> None:
        check_fit(self.queue_bytes, self.message_bytes)


class StreamPipe(Pipe):
    """One peer on a connected non-blocking socket.

    `on_ready(pipe)` is called once its greeting is right, `on_batch(batch, pipe)` with what it sends, and
    `on_close(pipe)` exactly once, when the pipe is gone for whatever reason; `fault` says why, "" where it
    was closed from here. `on_drained()` is called when nothing waits any more.
    """

    __slots__ = (
        "_encode",
        "_framing",
        "_gathering",
        "_greeting",
        "_loop",
        "_on_batch",
        "_on_close",
        "_on_drained",
        "_on_ready",
        "_queue",
        "_queue_bytes",
        "_socket",
        "_timer",
        "closed",
        "decoder",
        "fault",
        "link",
        "name",
        "ready",
        "stats",
    )

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        framing: Framing,
        queue_bytes: int,
        on_batch: "Callable[[Any, StreamPipe], None]",
        on_close: "Callable[[StreamPipe], None]",
        on_ready: "Callable[[StreamPipe], None]" = lambda _: None,
        stats: Stats | None = None,
        gathering: type[Gathering] = Gathering,
        link: str = "",
        on_drained: "Callable[[], None]" = lambda: None,
    ) -> None:
        self.name, self.link = name, link
        self.stats = stats or Stats()
        self.ready = self.closed = False
        self.fault = ""
        self.decoder = framing.decoder(self.stats.rejected)
        self._socket = sock
        self._framing, self._encode = framing, framing.encode
        # The longest message is queued with its length in front, and the bound must have room for both.
        head_bytes = 0 if framing.lead is None else framing.lead + LENGTH_BYTES
        self._queue, self._queue_bytes = Backlog(self.stats), queue_bytes + head_bytes
        self._on_batch, self._on_close, self._on_ready = on_batch, on_close, on_ready
        self._on_drained = on_drained
        self._greeting = b""
        self._gathering = gathering(sock)
        self._timer: TimerHandle | None = None

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait for this peer, where `stats` is shared by several."""
        return self._queue.bytes

    def start(self, loop: AbstractEventLoop, handshake_s: float) -> None:
        """Greet the peer and wait for its greeting, for so long; without a greeting it is ready at once."""
        self._loop = loop
        greeting = self._framing.greeting
        if not greeting:
            return self._enter()
        self._timer = loop.call_later(handshake_s, self.close, f"no handshake within {handshake_s:g} s")
        loop.add_reader(self._socket, self._on_greeting)
        try:
            self._socket.send(greeting)
        except OSError as error:
            self.close(words_of(error))
        return None

    def _on_greeting(self) -> None:
        greeting = self._framing.greeting
        try:
            received = self._socket.recv(len(greeting) - len(self._greeting))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.close(words_of(error))
        self._greeting += received
        fault = self._framing.greeting_fault(self._greeting)
        if not received:  # who says nothing only looked whether anybody listens
            fault = "closed during the handshake" if self._greeting else CLOSED_BY_PEER
        if fault:
            self.close(fault)
        elif len(self._greeting) == len(greeting):
            self._enter()

    def _enter(self) -> None:
        self._disarm()
        self._greeting = b""
        self.ready = True
        self._loop.add_reader(self._socket, self.read)
        self._on_ready(self)

    def rehome(
        self, on_batch: "Callable[[Any, StreamPipe], None]", on_ready: "Callable[[StreamPipe], None]"
    ) -> None:
        """Hand what comes from now on to somebody else."""
        self._on_batch, self._on_ready = on_batch, on_ready

    def revise(self, queue_bytes: int, message_bytes: int) -> None:
        """Take other bounds from now on. What is queued stays queued."""
        self._queue_bytes = queue_bytes
        self.decoder.revise(message_bytes)

    def pause(self) -> None:
        """Read nothing until `resume`."""
        if not self.closed:
            self._loop.remove_reader(self._socket)

    def resume(self) -> None:
        """Read again, if it is still open."""
        if not self.closed:
            self._loop.add_reader(self._socket, self.read)

    def read(self) -> None:
        """Read once what is there, and hand on whole messages."""
        self._gathering.wait()
        decoder = self.decoder
        try:
            read_bytes = self._socket.recv_into(decoder.buffer())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.close(words_of(error))
        if not read_bytes:
            return self.close(CLOSED_BY_PEER)
        batch = decoder.feed(read_bytes)
        if batch is not None:
            self._on_batch(batch, self)
        if decoder.fault:
            self.stats.reject("framing")
            return self.close(decoder.fault)
        self._gathering.note(read_bytes, batch.count if batch else 0)

    def send(self, batch: Batch) -> None:
        """Send at once what the kernel takes, queue the rest, drop the batch if the queue is full."""
        stats, data, count = self.stats, batch.data, batch.count
        stats.offered += count
        if self.closed:
            return stats.drop("closed", count)
        if self._encode is not None:
            data, count = self._encode(batch)
            if count < batch.count:
                stats.drop(self._framing.unfit, batch.count - count)
                if not count:
                    return None
        if self._queue:
            return self._enqueue(data, 0, count, batch)
        try:
            written = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError as error:
            stats.drop("peer gone", count)
            return self.close(words_of(error))
        if written == len(data):
            stats.sent += count
            stats.sent_bytes += written
            return None
        return self._enqueue(data, written, count, batch)

    def _enqueue(self, data: bytes | bytearray | memoryview, written: int, count: int, batch: Batch) -> None:
        """Queue what is left of a batch. A batch that has begun must go on, whatever its size."""
        if not written and self._queue.bytes + len(data) > self._queue_bytes:
            return self.stats.drop("queue full", count)
        owned = data if isinstance(data, bytes) else batch.keep()
        if not self._queue:
            self._loop.add_writer(self._socket, self._on_writable)
        self._queue.put(memoryview(owned)[written:], count)
        self.stats.sent_bytes += written
        return None

    def _on_writable(self) -> None:
        try:
            self._queue.write(self._socket)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.close(words_of(error))
        if not self._queue:
            self._loop.remove_writer(self._socket)
            self._on_drained()

    def purge(self, reason: str) -> list[bytes]:
        """Drop what waits and has not begun, and return those messages.

        Where the framing cannot cut what waits into messages again, the pipe is closed if anything does.
        """
        lead = self._framing.lead
        return super().purge(reason) if lead is None else self._queue.purge(reason, lead)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self, fault: str = "") -> None:
        """Let go of the peer; queued messages become drops. Idempotent. `fault` says what forced it."""
        if self.closed:
            return
        self.closed, self.fault = True, fault
        self._disarm()
        # Before the descriptor is closed: its number may be given to another peer at once.
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._queue.drop("closed")
        self._on_close(self)
