"""A listener whose connections are streams of asyncio, for services that need no more than these."""

import logging
import socket
from asyncio import AbstractEventLoop, Future, StreamReader, StreamReaderProtocol, StreamWriter, Task, timeout
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bus.transports.chores import queues_of
from bus.transports.refusals import Answer, Refusals, alerted, unanswered
from bus.transports.seats import FULL, ROOM, Seat, Seats, host_of
from bus.transports.sockets import Acceptor

if TYPE_CHECKING:
    from ssl import SSLContext

log = logging.getLogger("buscoupler.bus")

_HANDSHAKE_S: Final = 0.001
"""About the processor time of a handshake of TLS."""
FAILED_TLS: Final = "failed TLS handshake"
"""The reason of a connection that was not secured."""

Serve = Callable[[StreamReader, StreamWriter, Seat], Awaitable[object]]
"""A function that serves a connection. It calls `Seat.meet` once it knows the peer."""


class StreamListener:
    """A listener of at most `most()` connections, for which hosts make room (`bus.transports.seats`).

    A connection ends when its writer is closed. `reject(reason)` counts a connection that was refused, closed
    for another host, or failed at `tls`, whose handshake may take `handshake_s`. At most `read_bytes` wait to
    be read. Several listeners may share `seats`. `answer` makes what a refused peer is sent; with `tls` that
    is an alert.
    """

    def __init__(
        self,
        serve: Serve,
        most: Callable[[], int],
        reject: Callable[[str], object],
        tls: "SSLContext | None" = None,
        handshake_s: float = 5.0,
        read_bytes: int = 1 << 16,
        seats: Seats | None = None,
        answer: Answer = unanswered,
    ) -> None:
        self._serve, self._most, self._reject = serve, most, reject
        self._tls, self._handshake_s = tls, None if tls is None else handshake_s
        self._read_bytes = read_bytes
        self._seats = Seats() if seats is None else seats
        self._refusals = Refusals(answer if tls is None else alerted)
        self._acceptors: list[Acceptor] = []
        self._tasks: set[Task[None]] = set()

    def __len__(self) -> int:
        """Return how many are connected."""
        return len(self._seats)

    def open(self, loop: AbstractEventLoop, acceptor: Acceptor, on_trouble: Callable[[OSError], None]) -> Any:
        """Listen by one more acceptor, and return the address that was bound. Raises `OSError`.

        `on_trouble` is called as by `Acceptor.open`.
        """
        self._loop = loop
        bound = acceptor.open(loop, self._take, on_trouble)
        self._acceptors.append(acceptor)
        return bound

    def _take(self, sock: socket.socket, peer: str) -> None:
        host = host_of(sock, peer)
        if why := self._seats.refusal(host, sock.fileno(), self._most()):
            self._reject(FULL)
            place = sock.getsockname()
            log.warning("%s: refused a connection: %s", place, why, extra={"cause": f"{place}: refused"})
            return self._refusals.turn_away(self._loop, sock, why)
        seat = self._seats.take_seat(host, sock.fileno(), lambda _: self._evict(task))
        task = self._loop.create_task(self._run(sock, seat))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, seat))
        return None

    def _evict(self, task: Task[None]) -> None:
        self._reject(ROOM)
        task.cancel()

    def _ended(self, seat: Seat, task: Task[None]) -> None:
        seat.leave()
        self._tasks.discard(task)

    async def _run(self, sock: socket.socket, seat: Seat) -> None:
        reader = StreamReader(self._read_bytes, self._loop)
        protocol = StreamReaderProtocol(reader, loop=self._loop)
        try:
            await self._first_byte(sock, seat.host)
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=self._tls, ssl_handshake_timeout=self._handshake_s
            )
        except OSError:
            self._reject(FAILED_TLS)
            return
        try:
            writer = StreamWriter(transport, protocol, reader, self._loop)
            await self._serve(reader, writer, seat)
            with suppress(OSError):
                await writer.wait_closed()
        finally:
            transport.abort()

    async def _first_byte(self, sock: socket.socket, host: str) -> None:
        """Wait until a client begins its handshake of TLS, and then for its turn.

        Who is silent costs no more than a seat.
        """
        if self._tls is None:
            return
        spoken: Future[None] = self._loop.create_future()
        self._loop.add_reader(sock, _set, spoken)
        try:
            async with timeout(self._handshake_s):
                await spoken
                self._loop.remove_reader(sock)
                await queues_of(self._loop).chores.turn(host, _HANDSHAKE_S)
        except BaseException:
            self._loop.remove_reader(sock)
            sock.close()
            raise

    def shut(self) -> None:
        """Stop listening. Connections stay. Idempotent."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors.clear()

    def close(self) -> None:
        """Stop listening, and end all connections. Idempotent."""
        self.shut()
        if self._refusals:
            self._refusals.close(self._loop)
        for task in list(self._tasks):
            task.cancel()


def _set(spoken: Future[None]) -> None:
    if not spoken.done():
        spoken.set_result(None)
