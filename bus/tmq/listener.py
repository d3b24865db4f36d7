"""Accepts TMQ connections, within bounds, and keeps those that are alive."""

import contextlib
import logging
import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Callable, Iterator

from bus.errors import LinkError, words_of
from bus.hub import Stats
from bus.tmq.connection import Connection, OnFrames
from bus.tmq.options import Options, Rejections
from bus.tmq.wire import ANSWER, ANSWERED, Address, Hello, data_of, pack_hello, unpack_hello

log = logging.getLogger("buscoupler.tmq")

_ACCEPTS = 64  # in one wake-up
_PAUSE_S = 0.2  # when the process has no descriptors left


def bind(address: Address) -> socket.socket:
    """A listening IPv4 socket. Raises `LinkError` with the address."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise LinkError(f"tcp://{address[0]}:{address[1]}: cannot listen: {words_of(error)}") from error
    return sock


class Listener:
    """Takes connections on bound sockets; each may bring one packet or many.

    After its first whole frame a connection that is still open is greeted: who understands that answers with
    a greeting of its own, keeps it open, and both say so again each heartbeat. The others bring what they
    have and go, or are closed after `idle_s`. When full, the one that was longest silent and has not
    greeted makes room.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        options: Options,
        hello: Callable[[int], Hello],
        on_frames: OnFrames,
        on_closed: Callable[[Connection], None],
        reject: Rejections,
        stats: Stats | None = None,
    ) -> None:
        self.connections: dict[Connection, None] = {}
        self.accepted = self.refused = 0
        self._loop, self._options, self._hello, self._reject = loop, options, hello, reject
        self._on_frames, self._on_gone = on_frames, on_closed
        self._stats = stats
        self._sockets: list[socket.socket] = []
        self._timer: TimerHandle | None = None

    def open(self, sock: socket.socket) -> None:
        """Accept on a bound socket, which is ours from now on."""
        self._sockets.append(sock)
        self._loop.add_reader(sock, self._on_acceptable, sock)
        if self._timer is None:
            self._tick()

    def _on_acceptable(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS):
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                return self._pause(listener, error)
            self._take(sock, f"{peer[0]}:{peer[1]}")

    def _pause(self, listener: socket.socket, error: OSError) -> None:
        self._reject(f"cannot accept: {words_of(error)}")
        self._loop.remove_reader(listener)
        self._loop.call_later(_PAUSE_S, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if listener in self._sockets:
            self._loop.add_reader(listener, self._on_acceptable, listener)

    def _take(self, sock: socket.socket, name: str) -> None:
        self.accepted += 1
        if len(self.connections) >= self._options.connections and not self._make_room(
            name.rpartition(":")[0]
        ):
            self.refused += 1
            self._reject("connections full", name.rpartition(":")[0])
            sock.close()
            return
        sock.setblocking(False)
        connection = Connection(
            self._loop, sock, name, self._heard, self._closed, self._stats, self._options.queue_bytes
        )
        self.connections[connection] = None
        connection.read()  # a reference client has already sent its one packet,
        connection.read()  # and closed

    def _make_room(self, host: str) -> bool:
        """Close whoever has not greeted, else one of a host other than this that has more than half."""
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
        """What `on_frames` hands back: a frame of type HELLO. None where it is none."""
        hello = unpack_hello(data_of(frame))
        if hello is None:
            self._reject("greeting", connection.host)
            return None
        connection.greeted, connection.node = True, hello.node
        connection.silence_s = hello.silence_ms / 1000
        if hello.flags & ANSWER:
            connection.say(pack_hello(self._hello(ANSWERED)))
        return hello

    def _closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if connection.lawless:
            self._reject("framing", connection.host)
        elif connection.half:
            self._reject("half a packet", connection.host)
        elif not connection.frames:
            self._reject(connection.fault if "room" in connection.fault else "nothing said", connection.host)
        self._on_gone(connection)

    def _tick(self) -> None:
        now_s = self._loop.time()
        for connection in list(self.connections):
            keep_alive(connection, self._options, now_s, self._hello)
        self._timer = self._loop.call_later(self._options.heartbeat_s, self._tick)

    def bound(self) -> Iterator[Address]:
        """Where it listens."""
        for sock in self._sockets:
            host, port = sock.getsockname()[:2]
            yield host, port

    def close(self) -> None:
        """Stop listening and close what was accepted. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for sock in self._sockets:
            self._loop.remove_reader(sock)
            with contextlib.suppress(OSError):
                sock.close()
        self._sockets = []
        for connection in list(self.connections):
            connection.close("closed here")


def keep_alive(connection: Connection, options: Options, now_s: float, hello: Callable[[int], Hello]) -> None:
    """Once a heartbeat: say that we live, and close what is silent."""
    quiet_s = now_s - connection.heard_s
    if not connection.greeted:
        if quiet_s > options.idle_s:
            connection.close("idle")
        return
    if connection.silence_s and quiet_s > max(connection.silence_s, options.heartbeat_s):
        connection.close(f"silent for {quiet_s:.1f} s")
    elif now_s - connection.said_s > options.heartbeat_s / 2 and not connection.queued_bytes:
        connection.say(pack_hello(hello(0)))
