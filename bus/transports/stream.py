"""A pipe over a connected stream socket, in any framing: it has a bounded send queue, and never waits."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from time import thread_time
from typing import Any, NamedTuple

from bus.errors import words_of
from bus.hub import Pipe
from bus.ledger import Stats
from bus.text import SAID_BYTES, after, quoting
from bus.transports.backlog import SMALL_BYTES, Backlog, cost_of
from bus.transports.budget import PROCESS, REASON, Budget
from bus.transports.entrance import Entrance, Outcome
from bus.transports.framing import Framing
from bus.transports.gathering import Gathering
from bus.transports.parting import hang_up, part
from bus.transports.peers import Identity
from bus.transports.portion import LEAST_BYTES
from bus.transports.reading import Reading
from bus.transports.secure import SecureSocket
from bus.transports.sockets import CLOSED_BY_PEER, CLOSED_HERE, far_host
from bus.wire.batch import Batch, Buffer

_PARTIAL_BYTES = 16 * 1024  # fewer, of a message that is not whole, are not charged


class Bounds(NamedTuple):
    """The bounds of what a pipe keeps for its peer.

    `queue_bytes`: messages that wait; more are dropped and counted. `age_s`: messages that waited for longer
    are dropped; 0: never. `memory` bounds what all pipes of the process keep.
    """

    queue_bytes: int
    age_s: float = 0.0
    memory: Budget = PROCESS


class Calls(NamedTuple):
    """The functions that a pipe calls.

    `on_batch(batch, pipe)` gets what the peer sends. `on_close(pipe)` is called exactly once, when the pipe
    is closed for whatever reason. `on_ready(pipe)` is called once its handshake is done, and `on_drained()`
    when nothing waits any more.
    """

    on_batch: "Callable[[Any, StreamPipe], None]"
    on_close: "Callable[[StreamPipe], None]"
    on_ready: "Callable[[StreamPipe], None]" = lambda _: None
    on_drained: Callable[[], None] = lambda: None


class StreamPipe(Pipe):
    """One peer on a connected non-blocking socket, which may be secure.

    `fault` says why the pipe was closed, "" where it was closed from here. `stats` may be shared with other
    pipes.
    """

    __slots__ = (
        "_age_s",
        "_answer",
        "_budget",
        "_charged_bytes",
        "_encode",
        "_entrance",
        "_framing",
        "_gathering",
        "_gone",
        "_host",
        "_loop",
        "_on_batch",
        "_on_close",
        "_on_drained",
        "_on_ready",
        "_partial_bytes",
        "_queue",
        "_queue_bytes",
        "_reading",
        "_secure",
        "_shares_stats",
        "_socket",
        "accepted",
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
        sock: socket.socket | SecureSocket,
        name: str,
        framing: Framing,
        bounds: Bounds,
        calls: Calls,
        stats: Stats | None = None,
        gathering: type[Gathering] = Gathering,
        link: str = "",
        accepted: bool = False,
        host: str = "",
    ) -> None:
        self.name, self.link, self.accepted = name, link, accepted
        self.stats, self._shares_stats = stats or Stats(), stats is not None
        self.ready = self.closed = False
        self.fault = ""
        self.decoder = framing.decoder(self.stats)
        self._socket = sock
        self._secure = sock if isinstance(sock, SecureSocket) else None
        self._framing, self._encode, self._answer = framing, framing.encode, framing.answer
        self._queue = Backlog(self.stats, framing.divide)
        self._queue_bytes, self._age_s = self._bound(bounds.queue_bytes), bounds.age_s
        self._budget, self._charged_bytes, self._partial_bytes = bounds.memory, 0, 0
        self._on_batch, self._on_close, self._on_ready, self._on_drained = calls
        self._entrance: Entrance | None = None
        self._gathering = gathering(sock)
        self._host = host
        self._gone = ""  # the fault of a peer to which nothing can be sent, while what it sent is read
        self._reading = Reading(sock, host, framing.toil, self.read)

    @property
    def queued_bytes(self) -> int:
        """The bytes that wait for this peer, where `stats` is shared by several."""
        return self._queue.bytes

    def has_room(self, size: int) -> bool:
        """Return whether `size` bytes more would be sent or queued, and not dropped."""
        return not (self.closed or self._gone) and self._queue.cost + cost_of(size) <= self._queue_bytes

    @property
    def gone(self) -> bool:
        """Whether nothing can be sent to the peer any more, while what it sent before may still come."""
        return bool(self._gone)

    def start(self, loop: AbstractEventLoop, handshake_s: float) -> None:
        """Begin the handshakes, which may take `handshake_s`; without any the peer is ready at once."""
        self._loop = loop
        self._reading.open(loop)
        if self._framing.handshake is None and self._secure is None:
            return self._enter(b"")
        outcome = Outcome(self._say, self._enter, self.close)
        own = None if self._shares_stats else self.stats
        self._entrance = Entrance(self._socket, self._framing, own, outcome, self._host)
        return self._entrance.open(loop, handshake_s)

    def _enter(self, rest: bytes) -> None:
        """Take what the peer sends from now on, after the bytes that came with the end of the handshake."""
        self._entrance, self.ready = None, True
        self._reading.begin()
        self._on_ready(self)
        self._replay(rest)
        self._read_on()

    def _replay(self, data: bytes) -> None:
        while data and not self.closed:
            window = self.decoder.buffer()
            size = min(len(window), len(data))
            window[:size], data = data[:size], data[size:]
            self._take(size)

    def _read_on(self) -> None:
        """Read again soon if TLS holds bytes that the loop does not know of."""
        if self._secure is not None and self._secure.pending:
            self._loop.call_soon(self._on_pending)

    def _on_pending(self) -> None:
        if not self.closed:
            self.read()

    def identity(self) -> Identity:
        """Return the identity of the peer. Call it after the handshake."""
        return Identity(far_host(self._socket), self._secure.peer_names() if self._secure is not None else ())

    def rehome(
        self, on_batch: "Callable[[Any, StreamPipe], None]", on_ready: "Callable[[StreamPipe], None]"
    ) -> None:
        """Call other functions with batches, and when the pipe is ready, from now on."""
        self._on_batch, self._on_ready = on_batch, on_ready

    def revise(self, queue_bytes: int, message_bytes: int, age_s: float = 0.0) -> None:
        """Set other bounds from now on. What is queued stays queued."""
        self._queue_bytes, self._age_s = self._bound(queue_bytes), age_s
        self.decoder.revise(message_bytes)

    def _bound(self, queue_bytes: int) -> int:
        """Return the memory for a queue: the longest message must fit, with its head in front."""
        return cost_of(queue_bytes + self._framing.head_bytes)

    @property
    def held_bytes(self) -> int:
        """The bytes of memory held for the peer: waiting messages, and a long one that is not whole."""
        return self._queue.cost + self._partial_bytes

    def _charge(self) -> None:
        """Charge the budget with the bytes held now."""
        change = self.held_bytes - self._charged_bytes
        if change:
            self._charged_bytes += change
            self._budget.charge(self, change)

    def relieve(self) -> None:
        """Drop waiting messages; close the pipe instead if a message from the peer takes more memory."""
        if self._partial_bytes > self._queue.cost:
            self.close("the process holds too much memory for its peers")
        else:
            self._queue.shed(REASON)
            self._charge()

    def pause(self) -> None:
        """Read nothing until `resume`."""
        self._reading.pause()

    def resume(self) -> None:
        """Read again, if the pipe is still open."""
        self._reading.resume()

    def read(self) -> None:
        """Read once, and hand on whole messages."""
        buffer, most_bytes = self.decoder.buffer(), self._reading.portion.size_bytes
        try:
            read_bytes = self._socket.recv_into(buffer if len(buffer) <= most_bytes else buffer[:most_bytes])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.close(self._gone or words_of(error))
        if not read_bytes:
            return self.close(self._gone or CLOSED_BY_PEER)
        self._take(read_bytes)
        if self._secure is not None:
            self._read_on()

    def _take(self, read_bytes: int) -> None:
        """Hand on the messages that are whole with the last read."""
        decoder, reading, is_much = self.decoder, self._reading, read_bytes >= LEAST_BYTES
        began_s = thread_time() if is_much else 0.0
        batch = decoder.feed(read_bytes)
        partial_bytes = decoder.waiting
        if partial_bytes > _PARTIAL_BYTES or self._partial_bytes:
            self._note_partial(partial_bytes)
        if batch is not None:
            self._on_batch(batch, self)
        if self._answer is not None and self._is_leaving(*self._answer(decoder)):
            return self.close(CLOSED_BY_PEER)
        if decoder.fault:
            self.stats.reject(self._framing.lost)
            return self.close(decoder.fault)
        if is_much:
            reading.portion.note(read_bytes, thread_time() - began_s)
        if is_much or reading.toil is not None:
            reading.note(decoder)
        gathering = self._gathering
        if gathering.note(read_bytes, batch.count if batch else 0):
            reading.look_away()
        elif gathering.is_one_way:
            reading.expect_no_answer()

    def _note_partial(self, partial_bytes: int) -> None:
        """Charge a long message that is not yet whole. Short ones are not charged."""
        self._partial_bytes = partial_bytes if partial_bytes > _PARTIAL_BYTES else 0
        self._charge()

    def _is_leaving(self, answer: bytes, leaves: bool) -> bool:
        """Send the answer to a read, unless too much waits. Return whether the peer leaves."""
        if answer and self._queue.cost <= self._queue_bytes:
            self._say(answer)
        return leaves

    def say(self, batch: Batch) -> None:
        """Send messages of the connection itself, which no ledger counts, and nothing drops but its end."""
        if not self.closed:
            self._say(batch.keep() if self._encode is None else self._encode(batch)[0])

    def _say(self, data: bytes) -> None:
        """Send bytes of no message, now or later."""
        if self._gone:
            return None
        self._gathering.spoken, written = True, 0
        if not self._queue and data:
            try:
                written = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                written = 0
            except OSError as error:
                return self._lose(error)
        if written < len(data) and not self.closed:
            self._await_room()
            self._queue.put(data, 0, written)
            self._charge()

    def _drop_unfit(self, count: int) -> None:
        unfit = self._framing.unfit
        for reason, number in ({unfit: count} if isinstance(unfit, str) else unfit()).items():
            self.stats.drop(reason, number)

    def _await_room(self) -> None:
        """Have the loop report when the socket accepts more."""
        if not self._queue:
            self._loop.add_writer(self._socket, self._on_writable)

    def send(self, batch: Batch) -> None:
        """Send at once as much as the kernel accepts, queue the rest, drop the batch if the queue is full."""
        stats, data, count = self.stats, batch.data, batch.count
        stats.offered += count
        if self.closed:
            return stats.drop("closed", count)
        if self._gone:
            return stats.drop("peer gone", count)
        if self._encode is not None:
            data, count = self._encode(batch)
            if count < batch.count:
                self._drop_unfit(batch.count - count)
                if not count:
                    return None
        self._gathering.spoken = True
        if self._queue:
            return self._enqueue(data, 0, count, batch)
        try:
            written = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError as error:
            stats.drop("peer gone", count)
            return self._lose(error)
        if written == len(data):
            stats.sent += count
            stats.sent_bytes += written
            return None
        return self._enqueue(data, written, count, batch)

    def _enqueue(self, data: Buffer, written: int, count: int, batch: Batch) -> None:
        """Queue the rest of a batch, or drop it if it has no room. A message that has begun continues."""
        now = self._drop_old()
        queue, room_bytes = self._queue, self._queue_bytes - self._queue.cost
        fits = cost_of(len(data)) <= room_bytes
        if not written and not fits:
            return self.stats.drop("queue full", count)
        self._await_room()
        owned = data if isinstance(data, bytes) or len(data) <= SMALL_BYTES else batch.keep()
        if fits:
            queue.put(owned, count, written, now)
        else:
            queue.begin(bytes(owned), count, written, room_bytes, "queue full", now)
        self.stats.sent_bytes += written
        return self._charge()

    def _lose(self, error: OSError) -> None:
        """Send no more. Close once all is read that the peer sent before it went."""
        if not self.ready or not isinstance(error, ConnectionError | TimeoutError):
            return self.close(words_of(error))
        self._gone = words_of(error)
        self._loop.remove_writer(self._socket)
        self._queue.drop("closed")
        return self._charge()

    def _drop_old(self) -> float:
        """Drop messages that have waited for too long. Return the time, if age matters."""
        if not self._age_s:
            return 0.0
        now = self._loop.time()
        if self._queue:
            self._queue.shed("stale", now - self._age_s)
        return now

    def _on_writable(self) -> None:
        self._drop_old()
        try:
            if self._queue:
                self._queue.write(self._socket)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._lose(error)
        self._charge()
        if not self._queue:
            self._loop.remove_writer(self._socket)
            self._on_drained()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages that wait and have not begun, and return them.

        Where the framing cannot cut waiting bytes into messages again, the pipe is closed if any wait.
        """
        if self._framing.divide is None:
            return super().purge(reason)
        messages = self._queue.purge(reason)
        self._charge()
        return messages

    def _end(self, fault: str) -> str:
        """Count what came and became no message. Return the fault with it, if that is text."""
        rest = self.decoder.end()
        if not rest:
            return fault
        self.stats.noise_bytes += len(rest)
        if self.ready and self._framing.cut and not self.decoder.fault:
            self.stats.reject(self._framing.cut)
        return self._with_words(fault, bytes(rest[:SAID_BYTES]))

    def _with_words(self, fault: str, rest: bytes) -> str:
        """Return why the pipe ends with what the peer said, unless it has shown in a handshake to be ours."""
        if fault == CLOSED_BY_PEER:
            return after(fault, rest)
        is_foreign = self.decoder.fault and self._framing.handshake is None
        return quoting(fault, rest) if is_foreign else fault

    def close(self, fault: str = "") -> None:
        """Disconnect the peer; queued messages become drops. Idempotent. `fault` says why it was forced."""
        if self.closed:
            return
        self.closed, self.fault = True, self._end(fault)
        if self._entrance is not None:
            self._entrance.close()
        if self.ready and not fault and not self._queue and self._framing.farewell is not None:
            with suppress(OSError):
                self._socket.send(self._framing.farewell())
        # Before the descriptor is closed: its number may be given to another peer at once.
        self._reading.end()
        self._loop.remove_writer(self._socket)
        self._disconnect(is_own=self.ready and fault in ("", CLOSED_HERE))
        self._queue.drop("closed")
        self._partial_bytes = 0
        self._charge()
        self._on_close(self)

    def _disconnect(self, is_own: bool) -> None:
        """Close the socket; at an end of our own, what is on the way to the peer still comes."""
        sock = self._socket.leave() if isinstance(self._socket, SecureSocket) else self._socket
        if is_own:
            part(self._loop, sock)
        else:
            hang_up(sock)
