"""A listener whose connections are streams of asyncio, for services that need no more than these."""

import logging
import socket
from asyncio import AbstractEventLoop, StreamWriter, Task, TimerHandle
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bus.serving.lasting import LastingProtocol, LastingReader, LastingWriter
from bus.transports.chores import queues_of
from bus.transports.refusals import Answer, Refusals, alerted, unanswered
from bus.transports.seats import FULL, ROOM, Seat, Seats, host_of
from bus.transports.sockets import Acceptor

if TYPE_CHECKING:
    from ssl import SSLContext

log = logging.getLogger("buscoupler.bus")

_BEGIN_S: Final = 0.0005
_HANDSHAKE_S: Final = 0.001
"""The processor time of the beginning of a stream, and of a handshake of TLS, about."""
FAILED_TLS: Final = "failed TLS handshake"
"""The reason of a connection that was not secured."""

Serve = Callable[[LastingReader, StreamWriter, Seat], Awaitable[object]]
"""A function that serves a connection. It calls `Seat.meet` once it knows the peer."""


Run = Callable[[], Coroutine[Any, Any, None]]


class _Guest:
    """A connection from its beginning. Who is silent costs no more than a seat; a task serves who speaks.

    `gone(guest)` is called once, when it has ended.
    """

    __slots__ = ("_gone", "_loop", "_task", "_timer", "sock")

    def __init__(
        self, loop: AbstractEventLoop, sock: socket.socket, gone: "Callable[[_Guest], object]"
    ) -> None:
        self._loop, self.sock, self._gone = loop, sock, gone
        self._task: Task[None] | None = None
        self._timer: TimerHandle | None = None

    def wait(self, run: Run, within_s: float, silent: Callable[[], object]) -> None:
        """Begin with the first word. Call `silent`, and end, if none comes in time, or none can come."""
        self._timer = self._loop.call_later(within_s, self._give_up, silent)
        self._loop.add_reader(self.sock, self._on_word, run, silent)

    def _on_word(self, run: Run, silent: Callable[[], object]) -> None:
        try:
            is_over = not self.sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            is_over = True
        self._give_up(silent) if is_over else self.begin(run)

    def _give_up(self, silent: Callable[[], object]) -> None:
        silent()
        self.end()

    def begin(self, run: Run) -> None:
        """Serve now, until the task ends."""
        self._wait_no_more()
        self._task = self._loop.create_task(run())
        self._task.add_done_callback(self._end)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._loop.remove_reader(self.sock)

    def end(self) -> None:
        """End now, or a turn later. Idempotent."""
        if self._task is not None:
            self._task.cancel()
        elif self._timer is not None:
            self._wait_no_more()
            self._end()

    def _end(self, _: object = None) -> None:
        self.sock.close()  # also that of a task that was cancelled before it began
        self._gone(self)


class StreamListener:
    """A listener of at most `most()` connections, for which hosts make room (`bus.transports.seats`).

    A connection ends when its writer is closed. `reject(reason)` counts a connection that was refused, closed
    for another host, or failed at `tls`, whose handshake may take `handshake_s`. At most `read_bytes` wait to
    be read. Several listeners may share `seats`. `answer` makes what a refused peer is sent; with `tls` that
    is an alert. In a protocol where clients begin, one that says nothing for `silent_s` is closed.
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
        silent_s: float = 0.0,
    ) -> None:
        self._serve, self._most, self._reject = serve, most, reject
        self._tls, self._handshake_s = tls, None if tls is None else handshake_s
        self._silent_s = silent_s if tls is None else handshake_s
        self._begin_s = _BEGIN_S if tls is None else _HANDSHAKE_S
        self._read_bytes = read_bytes
        self._seats = Seats() if seats is None else seats
        self._refusals = Refusals(answer if tls is None else alerted)
        self._acceptors: list[Acceptor] = []
        self._guests = dict[_Guest, Seat]()

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
        guest = _Guest(self._loop, sock, self._ended)
        seat = self._seats.take_seat(host, sock.fileno(), partial(self._evict, guest))
        self._guests[guest] = seat
        run = partial(self._run, sock, seat)
        if self._silent_s:
            return guest.wait(run, self._silent_s, self._on_silence)
        return guest.begin(run)

    def _evict(self, guest: _Guest, _: str) -> None:
        self._reject(ROOM)
        guest.end()

    def _ended(self, guest: _Guest) -> None:
        self._guests.pop(guest).leave()

    def _on_silence(self) -> None:
        if self._tls is not None:
            self._reject(FAILED_TLS)

    async def _run(self, sock: socket.socket, seat: Seat) -> None:
        reader = LastingReader(self._read_bytes, self._loop)
        protocol = LastingProtocol(reader, self._loop)
        if self._silent_s:
            await queues_of(self._loop).chores.turn(seat.host, self._begin_s)
        try:
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=self._tls, ssl_handshake_timeout=self._handshake_s
            )
        except OSError:
            self._reject(FAILED_TLS)
            return
        try:
            writer = LastingWriter(transport, protocol, reader, self._loop)
            with suppress(OSError, EOFError):  # who goes in the midst of a word is no error of ours
                await self._serve(reader, writer, seat)
                await writer.wait_closed()
        finally:
            reader.let_go()
            transport.abort()

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
        for guest in list(self._guests):
            guest.end()
