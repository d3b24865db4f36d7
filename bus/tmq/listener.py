"""Accepts TMQ connections, within bounds, and keeps those that are alive."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from bus.errors import LinkError, words_of
from bus.ledger import Stats
from bus.tmq.connection import Connection, OnFrames
from bus.tmq.options import Options, Rejections
from bus.tmq.wire import ANSWER, ANSWERED, Address, Hello, data_of, pack_hello, unpack_hello
from bus.transports.sockets import Acceptor


class Listener:
    """Accepts connections at its addresses; each may bring one packet or many.

    After its first whole frame a connection that is still open is greeted: one that understands answers with
    a greeting of its own, keeps it open, and both say so again each heartbeat. The others bring what they
    have and go, or are closed after `idle_s`. When full, the one that was longest silent and has not
    greeted makes room.
    """

    def __init__(
        self,
        options: Options,
        hello: Callable[[int], Hello],
        on_frames: OnFrames,
        on_closed: Callable[[Connection], None],
        reject: Rejections,
        stats: Stats,
    ) -> None:
        self.connections: dict[Connection, None] = {}
        self.accepted = self.refused = 0
        self._options, self._hello, self._reject = options, hello, reject
        self._on_frames, self._on_gone = on_frames, on_closed
        self._stats = stats
        self._acceptors: dict[Address, Acceptor] = {}
        self._timer: TimerHandle | None = None

    def open(self, loop: AbstractEventLoop, address: Address) -> Address:
        """Listen at one more IPv4 address; return it with the port that was bound. Raises `LinkError`."""
        self._loop = loop
        acceptor = Acceptor(0, address)
        try:
            bound: Address = acceptor.open(self._loop, self._take, self._on_trouble)
        except OSError as error:
            raise LinkError(f"tcp://{address[0]}:{address[1]}: cannot listen: {words_of(error)}") from error
        self._acceptors[bound] = acceptor
        if self._timer is None:
            self._tick()
        return bound

    def revise(self, heartbeat_s: float) -> None:
        """Greet at another interval, and now."""
        self._options = replace(self._options, heartbeat_s=heartbeat_s)
        for connection in list(self.connections):
            if connection.greeted:
                connection.say(pack_hello(self._hello(0)))
        if self._timer is not None:
            self._timer.cancel()
            self._tick()

    def shut(self, bound: Address) -> None:
        """Accept no more at an address. Connections that came by it stay."""
        self._acceptors.pop(bound).close()

    def _on_trouble(self, error: OSError) -> None:
        self._reject(f"cannot accept: {words_of(error)}")

    def _take(self, sock: socket.socket, name: str) -> None:
        self.accepted += 1
        host, full = name.rpartition(":")[0], len(self.connections) >= self._options.connections
        if full and not self._make_room(host):
            self.refused += 1
            self._reject("connections full", host)
            sock.close()
            return
        stats, queue_bytes = self._stats, self._options.queue_bytes
        connection = Connection(self._loop, sock, name, self._heard, self._closed, stats, queue_bytes)
        self.connections[connection] = None
        connection.read()  # a reference client has already sent its one packet,
        connection.read()  # and closed

    def _make_room(self, host: str) -> bool:
        """Close the longest silent connection that has not greeted, else one of a host that has over half.

        Returns False where there is none, or where that host is `host` itself.
        """
        found = [c for c in self.connections if not c.greeted]
        if not found:
            greedy, count = Counter(c.host for c in self.connections).most_common(1)[0]
            if greedy == host or 2 * count <= self._options.connections:
                return False
            found = [c for c in self.connections if c.host == greedy]
        oldest = min(found, key=lambda c: c.heard_s)
        oldest.close("closed to make room")
        return True

    def _heard(self, connection: Connection, frames: list[bytes]) -> None:
        first = connection.frames == len(frames)
        self._on_frames(connection, frames)
        if first and not connection.closed and not connection.ended():
            connection.say(pack_hello(self._hello(0)))

    def greeting(self, connection: Connection, frame: bytes) -> Hello | None:
        """Take a frame of type HELLO, which `on_frames` must hand back. Returns None for a malformed one."""
        hello = unpack_hello(data_of(frame))
        if hello is None:
            self._reject("greeting", connection.host)
            return None
        connection.met(hello)
        if hello.flags & ANSWER:
            connection.say(pack_hello(self._hello(ANSWERED)))
        return hello

    def _closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if connection.cutter.fault:
            self._reject("framing", connection.host, 0)  # its pipe has counted it
        elif connection.cutter.waiting:
            self._reject("half a packet", connection.host)
        elif not connection.frames:
            self._reject(connection.fault if "room" in connection.fault else "nothing said", connection.host)
        self._on_gone(connection)

    def _tick(self) -> None:
        for connection in list(self.connections):
            connection.keep_alive(self._options, self._hello)
        self._timer = self._loop.call_later(self._options.heartbeat_s, self._tick)

    def close(self) -> None:
        """Stop listening and close what was accepted. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for bound in list(self._acceptors):
            self.shut(bound)
        for connection in list(self.connections):
            connection.close("closed here")
