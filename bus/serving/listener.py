"""The listener of a service: it accepts foreign clients, within bounds, and keeps the live connections."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from functools import partial

from bus.errors import LinkError, words_of
from bus.ledger import Stats
from bus.serving.connection import Connection, OnClosed, OnObjects, Sign
from bus.serving.limits import Limits
from bus.serving.objects import Cutter
from bus.serving.rejections import Rejections
from bus.transports.seats import FULL, ROOM, Seat, Seats, host_of
from bus.transports.secure import SecureSocket, Security
from bus.transports.sockets import Acceptor

Address = tuple[str, int]


class Listener:
    """The listening side of a service, at several addresses. A connection may bring one object or many.

    A connection that has not greeted (`Connection.met`) is closed after `idle_s` without a whole object. When
    no room is left, hosts make room for each other (`bus.transports.seats`). `on_closed` is called for each
    accepted connection when it is gone. `stats` is the ledger of what goes out to all; `reject` counts the
    rest. `sign` makes the sign of life for a greeted peer that was sent nothing for half a heartbeat; None:
    no sign. `half` is the reason of a connection that ends within an object. A connection that fails at TLS
    is counted by the words of the failure.
    """

    def __init__(
        self,
        limits: Limits,
        cutter: Callable[[], Cutter],
        on_objects: OnObjects,
        on_closed: OnClosed,
        reject: Rejections,
        stats: Stats,
        sign: Sign | None = None,
        half: str = "half an object",
    ) -> None:
        self.connections: dict[Connection, Seat] = {}
        self._seats = Seats()
        self.accepted = self.refused = 0
        self._limits, self._cutter = limits, cutter
        self._on_objects, self._on_gone = on_objects, on_closed
        self._reject, self._stats = reject, stats
        self._sign, self._half = sign, half
        self._acceptors: dict[Address, Acceptor] = {}
        self._timer: TimerHandle | None = None
        self._held = False

    def hold(self) -> None:
        """Accept nobody until `release`. New connections wait, also at addresses that are opened later."""
        self._held = True
        for acceptor in self._acceptors.values():
            acceptor.hold()

    def release(self) -> None:
        """Accept the connections that wait, and all that follow."""
        self._held = False
        for acceptor in self._acceptors.values():
            acceptor.release()

    def open(self, loop: AbstractEventLoop, address: Address, security: Security | None = None) -> Address:
        """Listen at one more IPv4 address; return it with the port that was bound. Raises `LinkError`.

        `security` is the TLS of connections at this address; None: plain TCP.
        """
        self._loop = loop
        if security is not None:
            security.open()
        acceptor = Acceptor(0, address)
        try:
            bound: Address = acceptor.open(self._loop, partial(self._take, security), self._on_trouble)
        except OSError as error:
            scheme = "tcp" if security is None else "tls+tcp"
            where = f"{scheme}://{address[0]}:{address[1]}"
            raise LinkError(f"{where}: cannot listen: {words_of(error)}") from error
        self._acceptors[bound] = acceptor
        if self._held:
            acceptor.hold()
        if self._timer is None:
            self._tick()
        return bound

    def revise(self, limits: Limits) -> None:
        """Use other limits, for present connections too, and send these a sign of life now."""
        self._limits = limits
        for connection in list(self.connections):
            connection.revise(limits)
            if connection.greeted and self._sign is not None:
                connection.say(self._sign())
        if self._timer is not None:
            self._timer.cancel()
            self._tick()

    def shut(self, bound: Address) -> None:
        """Stop listening at an address. Connections that were accepted there stay."""
        self._acceptors.pop(bound).close()

    def _on_trouble(self, error: OSError) -> None:
        self._reject(f"cannot accept: {words_of(error)}")

    def _take(self, security: Security | None, sock: socket.socket, name: str) -> None:
        self.accepted += 1
        host = host_of(sock, name)
        if why := self._seats.refusal(host, sock.fileno(), self._limits.connections):
            self.refused += 1
            self._reject(FULL, host, detail=why)
            sock.close()
            return
        seat = self._seats.take_seat(host, sock.fileno(), lambda why: connection.close(why))
        connection = self._connection(sock if security is None else security.secure(sock), name, seat)
        if connection.closed:  # by what it sent in place of TLS
            seat.leave()
            return
        self.connections[connection] = seat
        connection.read()  # a client of one object has already sent it,
        connection.read()  # and closed

    def _connection(self, end: socket.socket | SecureSocket, name: str, seat: Seat) -> Connection:
        return Connection(
            self._loop,
            end,
            name,
            self._cutter(),
            self._on_objects,
            self._closed,
            self._stats,
            self._limits,
            on_met=seat.meet,
        )

    def _closed(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.pop(connection).leave()
        if connection.fault == ROOM:
            self._reject(ROOM, connection.host)
        elif connection.decoder.fault:
            self._reject("framing", connection.host, 0)  # its pipe has counted it
        elif connection.decoder.waiting:
            self._reject(self._half, connection.host)
        elif not connection.ready:
            self._reject(connection.fault, connection.host)
        elif not connection.objects:
            self._reject("nothing said", connection.host)
        self._on_gone(connection)

    def _tick(self) -> None:
        for connection in list(self.connections):
            connection.keep_alive(self._sign)
        self._timer = self._loop.call_later(self._limits.heartbeat_s, self._tick)

    def close(self) -> None:
        """Stop listening and close all accepted connections. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for bound in list(self._acceptors):
            self.shut(bound)
        for connection in list(self.connections):
            connection.close("closed here")
