"""One listening address that frames are sent to: one connection for all, or one for each frame.

A peer that takes many packets on one connection greets after the first (docs/tmq.md); a reference peer reads
that one packet and closes. So the first packet goes out alone, and the rest waits for the verdict.
"""

import errno
import logging
import os
import random
import socket
import sys
from asyncio import AbstractEventLoop, Task, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Literal, NamedTuple

from bus.backoff import Attempts
from bus.errors import words_of
from bus.ledger import Stats
from bus.machine.addresses import refuse_itself
from bus.serving.connection import Connection, OnObjects
from bus.text import quoting
from bus.tmq.address import connect
from bus.tmq.options import Options
from bus.tmq.unread import LIMIT, Unread
from bus.tmq.wire import HELLO, HELLO_MASK, Address, Cutter, Hello, data_of, pack_hello, unpack_hello
from bus.transports.sockets import CLOSED_HERE
from bus.urls import is_ip

log = logging.getLogger("buscoupler.tmq")

State = Literal["idle", "connecting", "doubted", "asking", "streaming", "down", "closed"]
LOCAL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EACCES}
_RESET = words_of(OSError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
SILENT = "takes connections, and does not answer"
_IN_PROGRESS = {0, errno.EINPROGRESS, errno.EWOULDBLOCK}


class PeerOwner:
    """The owner of peers, as they call it; each method does nothing unless overridden."""

    def peer_failed(self, peer: "Peer", reason: str) -> None:
        """Note that a peer took no connection."""

    def peer_hindered(self, peer: "Peer", reason: str) -> None:
        """Note that a peer was not dialled, by a trouble of our own such as too few descriptors."""

    def peer_done(self, peer: "Peer") -> None:
        """Note that nothing waits for a peer any more, or that it turned out to take many packets."""

    def peer_hello(self, peer: "Peer", hello: Hello) -> None:
        """Note that a peer greeted: the first time, or again as a sign of life."""

    def peer_lost(self, peer: "Peer") -> None:
        """Note that the connection of a peer that took many packets is gone."""


class PeerSetup(NamedTuple):
    """All that the peers of one owner have in common.

    `hello(flags)` makes our greeting. `stats` counts what goes out to any of them. `on_frames` gets what
    comes back. `answers`: the peer greets or closes the first connection, however busy it is; one that does
    neither within `connect_s` has failed. `patient`: an attempt that times out puts a peer in doubt, and what
    is queued stays. The peer has failed if the next attempt, `doubt_s` later, fails too. It is in doubt again
    only after it has taken a connection.
    """

    loop: AbstractEventLoop
    options: Options
    hello: Callable[[int], Hello]
    stats: Stats
    owner: PeerOwner
    on_frames: OnObjects
    patient: bool = False
    answers: bool = False


class Peer:
    """An address to send to. `send` never waits: it sends, queues within `queue_bytes`, or counts a drop.

    A name is looked up each time that it is dialled. After a failure the peer is tried again with the first
    frame that comes after a growing pause. `each`: it takes one packet a connection. `connected` is a socket
    that is connected to it, if there is one.
    """

    def __init__(self, address: Address, setup: PeerSetup, connected: socket.socket | None = None) -> None:
        loop, options = setup.loop, setup.options
        self.address, self.name = address, f"{address[0]}:{address[1]}"
        self.state: State = "idle"
        self.each = False
        self.fault, self._lack = "", "peer gone"  # the reason of what is dropped while nobody can be dialled
        self.node = 0  # the number in its greeting
        self.connection: Connection | None = None
        self._cutter = Cutter()  # of the connection
        self._loop, self._options, self._hello, self._stats = loop, options, setup.hello, setup.stats
        self._owner, self._on_frames = setup.owner, setup.on_frames
        self._patient = self._may_doubt = setup.patient
        self._answers = setup.answers
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._flushing = False
        self._unread = Unread(loop, options.connect_s, self._on_closed_unread)
        self._socket = connected
        self._dialling: Task[None] | None = None
        self._timer: TimerHandle | None = None
        self._attempts = Attempts(options.retry_min_s, options.retry_max_s, random.uniform)
        self._retry_s = self._asked_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether something is queued or a connection is being made."""
        return bool(self._waiting) or self.state in ("connecting", "doubted", "asking")

    @property
    def queued_bytes(self) -> int:
        return self._waiting_bytes + (self.connection.queued_bytes if self.connection else 0)

    @property
    def on_the_way_bytes(self) -> int:
        """The bytes that have left, and have not come to the peer's machine yet."""
        return self.connection.on_the_way_bytes if self.connection else 0

    def revise(self, heartbeat_s: float) -> None:
        """Greet at another interval, in seconds, and now."""
        self._options = replace(self._options, heartbeat_s=heartbeat_s)
        if self.connection is not None:
            self.connection.revise(self._options)
            if self.connection.greeted:
                self.connection.say(self._greeting())

    def _greeting(self) -> bytes:
        return pack_hello(self._hello(0))

    def send(self, *frames: bytes) -> None:
        """Send frames, one after the other, after those before them."""
        stats, count, size = self._stats, len(frames), sum(map(len, frames))
        full = self._waiting_bytes + size > self._options.queue_bytes
        if full and count > 1:  # some of them may fit
            for frame in frames:
                self.send(frame)
            return
        stats.offered += count
        if self.state in ("down", "closed") and (self.state == "closed" or self._loop.time() < self._retry_s):
            return stats.drop(self._lack if self.state == "down" else "peer gone", count)
        if full:
            return stats.drop("queue full", count)
        self._waiting.extend(frames)
        self._waiting_bytes += size
        stats.queued += count
        stats.queued_bytes += size
        if self.state in ("streaming", "idle", "down"):
            self._flush_soon()

    def takes(self) -> int:
        """Return how many frames go out without waiting for others: 0, 1, or as many as there are."""
        if self._waiting or self.gone:
            return 0
        if self.connection is not None and self.state == "streaming":
            return 0 if self.connection.queued_bytes or self.connection.deaf else sys.maxsize
        return int(self.state in ("idle", "down") and not self._unread.full)

    @property
    def gone(self) -> bool:
        """Whether the peer takes nothing: it is closed, or in a pause after a failure."""
        return self.state == "closed" or (self.state == "down" and self._loop.time() < self._retry_s)

    def pass_on(self, frames: Sequence[bytes]) -> bool:
        """Send frames at once, no more than the peer `takes`.

        Return False if none of them can have arrived.
        """
        if self.connection is not None and self.state == "streaming":
            return self.connection.send(b"".join(frames), len(frames))
        self.send(*frames)
        return True

    def forget(self) -> None:
        """Forget how the peer takes packets: another program may listen at the address by now."""
        self.each = False

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what waits: all of it on a connection that takes it, else one frame each, as there is room."""
        self._flushing = True  # what comes meanwhile is seen here
        if self.state == "streaming" and self.connection is not None and not self.connection.deaf:
            self._stream(self.connection)
        for _ in range(LIMIT):
            if self._may_connect:
                self._connect()
        self._flushing = False
        if self._may_connect:
            self._flush_soon()

    @property
    def _may_connect(self) -> bool:
        return self.state in ("idle", "down") and bool(self._waiting) and not self._unread.full

    def _on_closed_unread(self) -> None:
        """Use the free connection at once: a busy loop comes back late."""
        self._on_room()
        self._flush()

    def _stream(self, connection: Connection) -> None:
        count = len(self._waiting)
        if count:
            data = b"".join(self._waiting)
            self._unqueue_all()
            self._stats.offered -= count  # the connection offers them again
            connection.send(data, count)

    def _unqueue_all(self) -> None:
        self._stats.queued -= len(self._waiting)
        self._stats.queued_bytes -= self._waiting_bytes
        self._waiting.clear()
        self._waiting_bytes = 0

    def _connect(self) -> None:
        self.state = "connecting"
        if self._socket is not None:
            self._begin(self._socket)
        elif is_ip(self.address[0]):
            self._dial()
        else:
            self._dialling = self._loop.create_task(self._dial_by_name(), name=f"dial {self.name}")

    async def _dial_by_name(self) -> None:
        """Look the name of the address up, each time that it is dialled: it may have moved."""
        turn, limit_s = self._attempts.turn, self._options.connect_s
        try:
            self._socket, _ = await connect(self._loop, self.address, turn, limit_s)
        except OSError as error:
            self._fail(error)
        else:
            self._begin(self._socket)

    def _dial(self) -> None:
        """Dial an IP address without a task: many are dialled for one packet each."""
        try:
            self._socket = sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            code = sock.connect_ex(self.address)
        except (OSError, OverflowError) as error:
            return self._fail(error if isinstance(error, OSError) else OSError(str(error)))
        if code not in _IN_PROGRESS:
            return self._fail(OSError(code, os.strerror(code)))
        return self._begin(sock)

    def _begin(self, sock: socket.socket) -> None:
        # At once: loopback is connected by now, and a reference peer blocks without a packet.
        if not self._say_first(sock):
            self._loop.add_writer(sock, self._say_first, sock)
            late = TimeoutError(errno.ETIMEDOUT, "timed out")
            self._arm(self._options.connect_s, partial(self._fail, late))

    def _say_first(self, sock: socket.socket) -> bool:
        """Send the first frame. Returns False if the socket is not connected yet."""
        try:
            refuse_itself(sock)
            sent = sock.send(self._waiting[0])
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._fail(error)
        else:
            self._connected(sock, sent)
        return True

    def _connected(self, sock: socket.socket, sent: int) -> None:
        self._loop.remove_writer(sock)
        self._arm(0, None)
        self.fault = ""
        self._attempts.reset()
        self._may_doubt = self._patient
        self._socket = None
        self._sent_one(sent)  # a fresh connection takes a whole packet
        if self.each:
            self._unread.add(sock)
            return self._next()
        self.state, self._asked_s = "asking", self._loop.time()
        heard, closed, options, self._cutter = self._heard, self._closed, self._options, Cutter()
        self.connection = Connection(
            self._loop, sock, self.name, self._cutter, heard, closed, self._stats, options, self._on_room
        )
        if self._answers:
            self._arm(self._options.connect_s, partial(self.connection.close, SILENT))
        else:
            self._arm(self._options.verdict_s, partial(self.connection.close, "one packet a connection"))

    def _sent_one(self, sent: int) -> None:
        frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        self._stats.queued -= 1
        self._stats.queued_bytes -= len(frame)
        self._stats.sent += 1
        self._stats.sent_bytes += sent

    def _next(self) -> None:
        self.state = "idle"
        self._on_room()

    def _on_room(self) -> None:
        if self._waiting:
            self._flush_soon()
        else:
            self._owner.peer_done(self)

    def _heard(self, connection: Connection, frames: list[bytes]) -> None:
        for greets, run in groupby(frames, lambda frame: frame[0] & HELLO_MASK == HELLO):
            if greets:
                for hello in filter(None, map(unpack_hello, map(data_of, run))):
                    self._greeted(connection, hello)
            elif not connection.closed:
                self._on_frames(connection, list(run))

    def _greeted(self, connection: Connection, hello: Hello) -> None:
        self.node = hello.node
        if connection.met(hello.silence_ms / 1000):
            self._arm(0, None)
            self.state = "streaming"
            connection.say(self._greeting())
            self._owner.peer_hello(self, hello)  # first: the owner may not want to send there
            if not connection.closed:
                self._stream(connection)
                self._owner.peer_done(self)
        elif not connection.closed:
            self._owner.peer_hello(self, hello)

    def _closed(self, connection: Connection) -> None:
        self.connection = None
        self._arm(0, None)
        if self.state == "closed":
            return
        if not connection.greeted and self._cutter.unframed:  # no reference peer says a word here
            return self._fail(OSError(errno.EPROTO, _not_a_packet(self._cutter.unframed)))
        if not self._patient and not connection.greeted and connection.fault == _RESET:
            return self._fail(ConnectionRefusedError(errno.ECONNREFUSED, "closed without a word"))
        if connection.fault == SILENT:
            return self._fail(TimeoutError(errno.ETIMEDOUT, SILENT))
        self.each = not connection.greeted
        self._next()
        if connection.greeted:
            self._owner.peer_lost(self)

    def retry_now(self) -> None:
        """End the pause between attempts: the peer is known to be alive."""
        self._retry_s = 0.0

    def tick(self, now_s: float) -> None:
        """Keep the connection alive, or ask again for many packets. Call it once a heartbeat."""
        if self.connection is not None and self.state == "streaming":
            self.connection.keep_alive(self._greeting)
        elif self.each and now_s - self._asked_s > self._options.refresh_s:
            self.each = False

    def _arm(self, seconds: float, callback: Callable[[], None] | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, callback) if callback is not None else None

    def _fail(self, error: OSError) -> None:
        self._let_go()
        self.fault = words_of(error)
        if error.errno == errno.ETIMEDOUT and self._may_doubt:
            self.state, self._may_doubt = "doubted", False
            self._attempts.move_on()
            return self._arm(self._options.doubt_s, self._connect)
        self.state, self.each = "down", False
        self._retry_s = self._loop.time() + self._attempts.after(lasted=False)
        self._lack = "refused" if error.errno in LOCAL else "peer gone"
        self._drop(self._lack)
        if error.errno in LOCAL:
            self._owner.peer_hindered(self, self.fault)
        else:
            self._owner.peer_failed(self, self.fault)
        return self._owner.peer_done(self)

    def _drop(self, reason: str) -> None:
        self._stats.drop(reason, len(self._waiting))
        self._unqueue_all()

    def _let_go(self) -> None:
        self._arm(0, None)
        if self._socket is not None:
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Disconnect; queued frames become counted drops. Idempotent."""
        if self.state != "closed":
            self.state = "closed"
            if self._dialling is not None:
                self._dialling.cancel()
            self._let_go()
            self._unread.close()
            self._drop("closed")
            if self.connection is not None:
                self.connection.close(CLOSED_HERE)


def _not_a_packet(said: bytes) -> str:
    """Return why a program is none of ours, with what it said."""
    return quoting(f"not a TMQ packet: {said[:8].hex(' ')}", said)
