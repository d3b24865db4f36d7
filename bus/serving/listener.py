"""The listener of a service: it accepts foreign clients, within bounds, and keeps the live connections."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from bus.errors import words_of
from bus.ledger import Stats
from bus.serving.connection import Connection, OnClosed, OnObjects, Sign
from bus.serving.limits import Limits
from bus.serving.objects import Cutter
from bus.serving.rejections import Rejections
from bus.transports.binding import Binding, SocketPlace, bind_now
from bus.transports.refusals import Answer, Refusals, alerted, unanswered
from bus.transports.seats import FULL, ROOM, Seat, Seats, host_of
from bus.transports.secure import SecureSocket, Security
from bus.transports.sockets import CLOSED_HERE, Acceptor

Address = tuple[str, int]
_AT_ONCE = 64  # connections looked after in one turn of the loop


class Listener:
    """The listening side of a service, at several addresses. A connection may bring one object or many.

    A connection that has not greeted (`Connection.met`) is closed after `idle_s` without a whole object. When
    no room is left, hosts make room for each other (`bus.transports.seats`). `on_closed` is called for each
    accepted connection when it is gone. `stats` is the ledger of what goes out to all; `reject` counts the
    rest. `sign` makes the sign of life for a greeted peer that was sent nothing for half a heartbeat; None:
    no sign. `half` is the reason of a connection that ends within an object. A connection that fails at TLS
    is counted by the words of the failure. `answer` makes what a peer is sent that is refused, or must go;
    one that is refused at an address with TLS gets an alert.
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
        answer: Answer = unanswered,
    ) -> None:
        self.connections: dict[Connection, Seat] = {}
        self._seats = Seats()
        self.accepted = self.refused = 0
        self._limits, self._cutter = limits, cutter
        self._on_objects, self._on_gone = on_objects, on_closed
        self._reject, self._stats = reject, stats
        self._sign, self._half, self._answer = sign, half, answer
        self._refusals, self._alerts = Refusals(answer), Refusals(alerted)
        self._acceptors: dict[Address, Acceptor] = {}
        self.bindings: dict[Address, Binding[Address]] = {}
        """Those that wait for their address, or did, by the address that was asked for."""
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

    def open(
        self,
        loop: AbstractEventLoop,
        address: Address,
        security: Security | None = None,
        family: int = 0,
        tries: int = 1,
    ) -> Address:
        """Listen at one more address; return it with the port that was bound. Raises `LinkError`.

        `security` is the TLS of connections at this address; None: plain TCP. `family` is AF_INET where
        only IPv4 will do. `tries`: of how many ports it takes the first that is free.
        """
        url = self._prepare(loop, address, security)
        return bind_now(url, (family, address), partial(self._bind, security, None), tries=tries)

    def await_address(
        self,
        loop: AbstractEventLoop,
        address: Address,
        on_bound: Callable[[Address], object],
        security: Security | None = None,
        family: int = 0,
    ) -> None:
        """Listen as `open` does, but go on trying if the address is not there yet.

        `on_bound` gets the bound address, at once or later. Raises `LinkError` for what can never work.
        """
        url = self._prepare(loop, address, security)
        keep = partial(self._bind, security, address)
        binding = self.bindings[address] = Binding(url, (family, address), keep, on_bound)
        try:
            binding.open(loop)
        except BaseException:
            del self.bindings[address]
            raise

    def _prepare(self, loop: AbstractEventLoop, address: Address, security: Security | None) -> str:
        """Begin to serve, and return the URL of an address."""
        self._loop = loop
        if security is not None:
            security.open()
        if self._timer is None:
            self._tick()
        scheme, (host, port) = "tcp" if security is None else "tls+tcp", address
        return f"{scheme}://{host}:{port}"

    def _bind(self, security: Security | None, asked: Address | None, place: SocketPlace) -> Address:
        """Listen at a numeric place, which `shut` knows by the address that was asked for, or as it is."""
        acceptor = Acceptor(*place)
        bound: Address = acceptor.open(self._loop, partial(self._take, security), self._on_trouble)
        self._acceptors[asked or bound] = acceptor
        if self._held:
            acceptor.hold()
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

    def shut(self, address: Address) -> None:
        """Stop listening at an address, or waiting for it. Connections that were accepted there stay."""
        binding, acceptor = self.bindings.pop(address, None), self._acceptors.pop(address, None)
        if binding is not None:
            binding.close()
        if acceptor is not None:
            acceptor.close()

    def _on_trouble(self, error: OSError) -> None:
        self._reject(f"cannot accept: {words_of(error)}")

    def _take(self, security: Security | None, sock: socket.socket, name: str) -> None:
        self.accepted += 1
        host = host_of(sock, name)
        if why := self._seats.refusal(host, sock.fileno(), self._limits.connections):
            self.refused += 1
            self._reject(FULL, host, detail=why)
            refusals = self._refusals if security is None else self._alerts
            return refusals.turn_away(self._loop, sock, why)
        seat = self._seats.take_seat(host, sock.fileno(), lambda why: self._send_away(connection, why))
        connection = self._connection(sock if security is None else security.secure(sock), name, seat)
        if connection.closed:  # by what it sent in place of TLS
            return seat.leave()
        self.connections[connection] = seat
        connection.read()  # a client of one object has already sent it,
        connection.read()  # and closed
        return None

    def _send_away(self, connection: Connection, why: str) -> None:
        """Close a connection for one of another host; a peer that has greeted is told."""
        if connection.greeted and not connection.closed:
            connection.say(self._answer(b"", why))
        connection.close(why)

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
            self._reject("framing", connection.host, 0, connection.fault)  # its pipe has counted it
        elif connection.decoder.waiting:
            self._reject(self._half, connection.host)
        elif not connection.ready:
            self._reject(connection.fault, connection.host)
        elif not connection.objects:
            self._reject("nothing said", connection.host)
        self._on_gone(connection)

    def _tick(self) -> None:
        self._keep_alive(iter(tuple(self.connections)))
        self._timer = self._loop.call_later(self._limits.heartbeat_s, self._tick)

    def _keep_alive(self, left: Iterator[Connection]) -> None:
        """Look after some connections in this turn of the loop, and the others in the next ones."""
        some = tuple(islice(left, _AT_ONCE))
        for connection in some:
            connection.keep_alive(self._sign)
        if len(some) == _AT_ONCE and self._timer is not None:
            self._loop.call_soon(self._keep_alive, left)

    def close(self) -> None:
        """Stop listening and close all accepted connections. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for address in [*self.bindings, *self._acceptors]:
            self.shut(address)
        for refusals in (self._refusals, self._alerts):
            if refusals:
                refusals.close(self._loop)
        for connection in list(self.connections):
            connection.close(CLOSED_HERE)
