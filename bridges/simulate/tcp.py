"""A simulated network that carries TCP, for the real links of a bus with their framing."""

import asyncio
import errno
import socket
from asyncio import AbstractEventLoop, TimerHandle
from functools import partial
from typing import Any

from bridges.media.device import cancel
from bridges.simulate.loop import socket_pair
from bridges.simulate.wire import Faults, Order, Wire, WireEnd, trouble
from bus.transports.dialling import DialLink
from bus.transports.listening import ListenLink
from bus.transports.sockets import OnPeer

_URL = "tcp://server:1"
_READ_BYTES = 65536
_SEGMENT_BYTES = 1460
_BUFFER_BYTES = 65536  # of a socket, as on a small device
_RETRANSMIT_S = 0.2  # Linux's minimum
_CONNECT_S = 5.0
_KEEPALIVE_S = 25.0  # 10 s idle and 3 probes 5 s apart, as `bus.transports.sockets.tune` sets them


class TcpWire(Wire):
    """A network with one listener and any number of dialers, at `rate_bytes_s` per direction of a connection.

    TCP retransmits after `loss`: each lost segment delays the data behind it by 0.2 s. TCP hides duplication,
    reordering and corruption, so these faults do not exist here. With `stuck = True` nothing passes, and the
    connections end after `patience_s`, as by keepalive, or by `age_s` of a bus's links. So they do while one
    direction is `cut()`: what comes the other way arrives, and is not confirmed. `reset()` ends all.
    """

    has = frozenset({"loss", "delay_s", "jitter_s"})

    def __init__(
        self,
        rate_bytes_s: float = 12.5e6,
        seed: int = 0,
        faults: Faults | None = None,
        patience_s: float = _KEEPALIVE_S,
    ) -> None:
        super().__init__(seed, faults)
        self.patience_s = patience_s
        self.rate_bytes_s = rate_bytes_s
        self.server = TcpEnd(self, "server")
        self.clients: list[TcpEnd] = []
        self.on_peer: OnPeer | None = None
        self.connections: list[_Connection] = []
        self._unreached = set[TcpEnd]()

    def listen(self, **options: Any) -> ListenLink:
        """Return the listening link of a bus: the real one, except for its sockets.

        `options` are those of the link.
        """
        return ListenLink(_URL, acceptor=_Acceptor(self), **options)

    def dial(self, name: str = "", **options: Any) -> DialLink:
        """Add a host and return a dialling link of a bus on it; see `TcpEnd.dial`."""
        return self.client(name).dial(**options)

    def client(self, name: str = "") -> "TcpEnd":
        """Add a host that can dial."""
        self.clients.append(TcpEnd(self, name or f"client{len(self.clients)}"))
        return self.clients[-1]

    def join(self, client: "TcpEnd", loop: AbstractEventLoop) -> tuple[socket.socket, socket.socket]:
        """Make a connection of `client` to the server at once. Return the sockets of both programs."""
        connection = _Connection(self, client, loop)
        self.connections.append(connection)
        self.note(loop, client.name, "connected")
        return connection.sockets

    def _on_stuck(self) -> None:
        for connection in tuple(self.connections):
            connection.go_on()

    def cut(self, end: "TcpEnd", cut: bool = True) -> None:
        """Let nothing through to an end, or let it through again: a partition in one direction."""
        (self._unreached.add if cut else self._unreached.discard)(end)
        self._on_stuck()

    def reaches(self, end: "TcpEnd") -> bool:
        """Tell whether anything comes through to an end."""
        return not self.stuck and end not in self._unreached

    @property
    def severed(self) -> bool:
        """Whether nobody can connect: that takes both directions."""
        return self.stuck or bool(self._unreached)

    def halt(self) -> None:
        """Leave all connections half open: nothing passes any more, and they end after `patience_s`."""
        for connection in tuple(self.connections):
            connection.halted = True
            connection.go_on()

    def reset(self, end: "TcpEnd | None" = None) -> None:
        """End all connections, or only those of `end`, as when a program is killed."""
        for connection in tuple(self.connections):
            if end is None or end in connection.ends:
                connection.close("reset")


class TcpEnd(WireEnd):
    """A host on the network. With `clogged = True` it reads nothing.

    `unplug()` ends its connections and refuses new ones until `plug()`.
    """

    def __init__(self, wire: TcpWire, name: str) -> None:
        super().__init__(name)
        self.wire = wire

    def _on_clogged(self) -> None:
        for connection in tuple(self.wire.connections):
            connection.go_on()

    def unplug(self) -> None:
        self.plugged = False
        self.wire.reset(self)

    def dial(self, **options: Any) -> DialLink:
        """Return a dialling link of a bus on this host: the real one, except for its socket."""
        return DialLink(_URL, connect=self.connect, **options)

    async def connect(self, loop: AbstractEventLoop) -> socket.socket:
        """Connect to the listener; return the socket. Raises `OSError`: refused, unreachable or timed out."""
        wire = self.wire
        await asyncio.sleep(2 * wire.delay_s() if not wire.severed else _CONNECT_S)
        if wire.severed:
            raise trouble(errno.ETIMEDOUT)
        if not self.plugged or not wire.server.plugged:
            raise trouble(errno.EHOSTUNREACH)
        if wire.on_peer is None:
            raise trouble(errno.ECONNREFUSED)
        near, far = wire.join(self, loop)
        wire.on_peer(far, f"{self.name}:0")
        return near


def _tcp_pair(loop: AbstractEventLoop) -> tuple[socket.socket, socket.socket]:
    """Return the wire's and the program's end of a stream, with a small device's buffers."""
    pair = socket_pair(loop)
    for sock in pair:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return pair


class _Connection:
    """A connection of two programs: one `_Direction` each way."""

    def __init__(self, wire: TcpWire, client: TcpEnd, loop: AbstractEventLoop) -> None:
        self.wire, self.loop = wire, loop
        self.ends = client, wire.server
        self.halted = False
        near, far = _tcp_pair(loop), _tcp_pair(loop)
        self.sockets = near[1], far[1]
        self._ours = near[0], far[0]
        forth = _Direction(self, near[0], far[0], wire.server)
        self._directions = forth, _Direction(self, far[0], near[0], client)
        self._timer: TimerHandle | None = None
        self._closed = False

    def blocks(self, end: TcpEnd) -> bool:
        """Tell whether nothing gets through to an end of this connection."""
        return self.halted or end.clogged or not self.wire.reaches(end)

    def go_on(self) -> None:
        """Adapt to an end or wire that was clogged, stuck, cut or set free."""
        if not self.halted and all(map(self.wire.reaches, self.ends)):
            cancel(self._timer)
            self._timer = None
        elif self._timer is None:
            self._timer = self.loop.call_later(self.wire.patience_s, self.close, "timed out")
        for direction in self._directions:
            direction.go_on()

    def close(self, why: str) -> None:
        if self._closed:
            return
        self._closed = True
        self.wire.note(self.loop, self.ends[0].name, why)
        cancel(self._timer)
        for direction in self._directions:
            direction.stop()
        for sock in self._ours:
            sock.close()
        self.wire.connections.remove(self)


class _Direction:
    """One direction of a connection: it delivers the sender's bytes after the wire's delay."""

    def __init__(
        self, connection: _Connection, source: socket.socket, sink: socket.socket, receiver: TcpEnd
    ) -> None:
        self._connection, self._source, self._sink, self._receiver = connection, source, sink, receiver
        self._loop, self._wire = connection.loop, connection.wire
        self._order = Order()
        self._unread = b""
        self._closed = self._carrying = self._over = False
        self._reads = self._writes = False
        self.go_on()

    def go_on(self) -> None:
        """Write the bytes that have arrived to the receiver, and read from the sender when none are left."""
        if self._closed:
            return
        blocked = self._connection.blocks(self._receiver)
        self._watch(
            bool(self._unread) and not blocked, not (self._unread or self._carrying or self._over or blocked)
        )

    def _watch(self, writes: bool, reads: bool) -> None:
        """Wait for room at the receiver, or for the sender's next bytes. Changes alone cost something.

        The loop gets numbers: of a socket that it does not know, `selectors` would compose a text each time.
        """
        if writes != self._writes:
            self._writes = writes
            if writes:
                self._loop.add_writer(self._sink.fileno(), self._on_writable)
            else:
                self._loop.remove_writer(self._sink.fileno())
        if reads != self._reads:
            self._reads = reads
            if reads:
                self._loop.add_reader(self._source.fileno(), self._on_readable)
            else:
                self._loop.remove_reader(self._source.fileno())

    def _on_readable(self) -> None:
        try:
            data = self._source.recv(_READ_BYTES)
        except OSError:
            data = b""
        if data:
            self._carrying = True
            self._loop.call_later(len(data) / self._wire.rate_bytes_s, self._carried)
            self._order.at(self._loop, self._late_s(data), partial(self._come_out, data))
        else:
            self._over = True
            self._order.at(self._loop, self._wire.delay_s(), self._end)
        self.go_on()

    def _late_s(self, data: bytes) -> float:
        wire = self._wire
        lost = sum(wire.chance(wire.faults.loss) for _ in range(-(-len(data) // _SEGMENT_BYTES)))
        if lost:
            wire.note(self._loop, self._receiver.name, "retransmitted", data)
        return len(data) / wire.rate_bytes_s + wire.delay_s() + _RETRANSMIT_S * lost

    def _carried(self) -> None:
        self._carrying = False
        self.go_on()

    def _come_out(self, data: bytes) -> None:
        if self._closed:
            return
        self._unread += data
        if self._connection.blocks(self._receiver) or self._writes:
            return self.go_on()
        self._on_writable()

    def _on_writable(self) -> None:
        """Write as many bytes as there is room for; wait for room for the rest."""
        try:
            taken = self._sink.send(self._unread)
        except BlockingIOError:
            return self.go_on()
        except OSError:
            return self._end()
        self._wire.note(self._loop, self._receiver.name, "heard", self._unread[:taken])
        self._unread = self._unread[taken:]
        self.go_on()

    def _end(self) -> None:
        self._connection.close("closed")

    def stop(self) -> None:
        self._closed = True
        self._watch(False, False)


class _Acceptor:
    """The acceptor of a listening link: it brings the connections of a simulated network, not of a socket."""

    def __init__(self, wire: TcpWire) -> None:
        self._wire = wire

    def open(self, _: AbstractEventLoop, on_peer: OnPeer, on_trouble: object) -> None:
        self._wire.on_peer = on_peer

    def close(self) -> None:
        self._wire.on_peer = None
