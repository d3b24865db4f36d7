"""Links over stream sockets, listening and dialling, with SP or another framing; not for inproc."""

import asyncio
import errno
import logging
import os
import random
import socket
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

from bus.backoff import Backoff
from bus.errors import LinkError, words_of
from bus.hub import Hub, Link, State
from bus.keys import Keyring
from bus.ledger import Stats
from bus.machine.wake_hook import Standstill, stood_still
from bus.transports.binding import Binding, Place
from bus.transports.channel import Channel
from bus.transports.framing import Framing
from bus.transports.options import STREAMS, StreamOptions, Tls
from bus.transports.refusals import Answer, Refusals, alerted, unanswered, unavailable
from bus.transports.seats import FULL, ROOM, Seat, Seats, host_of
from bus.transports.sockets import CLOSED_BY_PEER, Acceptor, OnPeer, connect_by_name, connect_to, tune
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.urls import BEACON, Url, split_url, with_host
from bus.vacancy import NO_PEER
from bus.wire.batch import Batch
from bus.wire.signed import SIGNS, Session, begins_with_hello

log = logging.getLogger("buscoupler.bus")

_ANSWERS: dict[str, Answer] = {"ws": unavailable, "wss": alerted, "tls+tcp": alerted}
"""The answer to a refused peer, by the scheme; SP over TCP has no word for it."""

_LEFT = {CLOSED_BY_PEER} | {
    words_of(OSError(number, os.strerror(number)))
    for number in (errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.EHOSTUNREACH)
}  # faults of a peer that has gone
SERVED_S: Final = 1.0
"""Without a handshake, a connection that lasted so long or brought something was a success."""

Connect = Callable[[AbstractEventLoop], Awaitable[socket.socket]]
"""A function that makes a connection.

Raises `OSError`, or `UnicodeError` for a name that cannot be looked up.
"""


class Accepting(Protocol):
    """A source of connections; see `Acceptor`."""

    def open(
        self, loop: AbstractEventLoop, on_peer: OnPeer, on_trouble: Callable[[OSError], None]
    ) -> Any: ...
    def close(self) -> None: ...


class _StreamLink:
    """The base of listening and dialling links: their limits, their framing, the live pipes."""

    condition = ""
    peers_leave = True
    """Whether a peer that leaves is no fault."""
    _hub: Hub
    _loop: AbstractEventLoop

    def __init__(self, url: str, channel: Channel, name: str, wary: bool, options: dict[str, Any]) -> None:
        self.name, self.url = name or url, url
        self.options = StreamOptions(**options)
        self.queue_bytes = self.options.queue_bytes
        self.pipes: set[StreamPipe] = set()
        self.fault = ""
        self.losses = 0
        self.channel, self._wary = channel, wary
        self._sessions: dict[StreamPipe, Session] = {}
        self._refused = Stats()
        self._framing = channel.framing(self.options.message_bytes)
        self._is_open = self._enlisted = False
        self._standstill = Standstill(self._woke)

    def _begin(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start on a hub and a loop. Raises `LinkError` for unusable certificates."""
        self._hub, self._loop = hub, loop
        self.channel.open()
        self._join(hub)
        self._standstill.watch(loop, self.options.age_s)

    def revise(self, other: Link) -> bool:
        """Take over the limits of another link to the same address, for present peers too."""
        if not isinstance(other, _StreamLink):
            return False
        self.options, self.queue_bytes = other.options, other.queue_bytes
        self.channel.revise(other.channel)
        self._framing = self.channel.framing(self.options.message_bytes)
        for pipe in tuple(self.pipes):
            pipe.revise(self.queue_bytes, self.options.message_bytes, self.options.age_s)
            if not self._is_trusted(pipe):
                pipe.close("its key is in force no more")
        if self._is_open:
            self._standstill.watch(self._loop, self.options.age_s)
        return True

    def _is_trusted(self, pipe: StreamPipe) -> bool:
        """Tell whether the keys of a connection are still in force; without any, whether no keys are."""
        session, keys = self._sessions.get(pipe), self.channel.keys
        return keys is None if session is None else session.is_trusted(keys)

    @property
    def state(self) -> State:
        raise NotImplementedError

    def _adopt(
        self, sock: socket.socket, name: str, on_close: Callable[[StreamPipe], None], host: str = ""
    ) -> StreamPipe:
        if sock.family != socket.AF_UNIX:
            tune(sock, self.options.silence_s or self.options.age_s)
        session, framing = self.channel.session(), self._framing_of_peer()
        if session is not None:
            from bus.transports.signing import signed  # late: few links have keys

            framing = signed(framing, session, self.options.message_bytes)
        on_batch = self._first if self._wary and session is None else self._hub.publish
        pipe = StreamPipe(
            self.channel.secure(sock),
            name,
            framing,
            Bounds(self.queue_bytes, self.options.age_s),
            Calls(on_batch, on_close, self._enter),
            link=self.name,
            accepted=self.peers_leave,
            host=host,
        )
        self.pipes.add(pipe)
        if session is not None:
            self._sessions[pipe] = session
        pipe.start(self._loop, self.options.handshake_s)
        return pipe

    def _framing_of_peer(self) -> Framing:
        """Return the framing of the next peer."""
        return self._framing

    def _enter(self, pipe: StreamPipe) -> None:
        self._hub.attach(pipe)
        if pipe.closed:  # the hub has turned it away
            return
        self._hub.welcome(pipe)
        session = self._sessions.get(pipe)
        signed_by = "" if session is None else f", signed with {' and '.join(session.keys)}"
        log.info("%s: connected%s", pipe.name, signed_by, extra={"cause": f"{self.name}: connected"})

    def _first(self, batch: Batch, pipe: StreamPipe) -> None:
        """Handle the first batch of a peer where there are no keys: close it if it begins to sign."""
        pipe.rehome(self._hub.publish, self._enter)
        if begins_with_hello(batch):
            pipe.stats.reject("signed")
            return pipe.close(SIGNS)
        return self._hub.publish(batch, pipe)

    def _join(self, hub: Hub) -> None:
        """Have a hub count what the link misses without peers, and the input of peers that never attach."""
        hub.enlist(self.name, NO_PEER)
        self._enlisted = True
        self._refused = Stats()
        hub.keep(self.name, self._refused)

    def _leave_hub(self) -> None:
        if self._enlisted:
            self._hub.strike(self.name)
            self._hub.fold(self.name, self._refused)
        self._enlisted = False

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""
        for pipe in tuple(self.pipes):
            pipe.rehome(hub.publish, self._enter)
            if pipe.ready:
                self._hub.detach(pipe)
                hub.attach(pipe)
        self._leave_hub()
        self._hub = hub
        self._join(hub)

    def _forget(self, pipe: StreamPipe) -> None:
        """Detach a closed pipe from the hub, and note why it closed."""
        self._hub.detach(pipe)
        self.pipes.discard(pipe)
        self._sessions.pop(pipe, None)
        if not pipe.ready:
            self._refused.noise_bytes += pipe.stats.noise_bytes
        for reason, count in pipe.stats.rejected.items() if not pipe.ready else ():
            self._refused.reject(reason, count)
        if pipe.fault:
            self.losses += pipe.ready
            expected = self.peers_leave and pipe.fault in _LEFT
            if not expected:
                self.fault = f"{pipe.name}: {pipe.fault}"
            level, cause = logging.INFO if expected else logging.WARNING, f"{self.name}: {pipe.fault}"
            words = pipe.fault if pipe.fault.startswith("closed") else f"closed: {pipe.fault}"
            log.log(level, "%s: %s", pipe.name, words, extra={"cause": cause, "place": self.name})

    def _woke(self, slept_s: float) -> None:
        """Close the peers: input that came from them and was not read may be too old."""
        for pipe in tuple(self.pipes):
            pipe.close(stood_still(slept_s))

    def close(self) -> None:
        """Stop the link, and close all peers. Idempotent."""
        self._is_open = False
        self._standstill.end()
        for pipe in tuple(self.pipes):
            pipe.close()
        self._leave_hub()


class ListenLink(_StreamLink):
    """A link that accepts peers at an address. `url` has the port that was bound, where 0 was asked for.

    `framing` is SP unless given; `acceptor` brings the connections, from sockets unless given; `name` is the
    URL unless given; `tls`, `origins` and `keys` are those of `Channel`. A `wary` link without keys closes
    peers that sign. `options` are the fields of `StreamOptions`.
    """

    def __init__(
        self,
        url: str,
        framing: Framing | None = None,
        acceptor: Accepting | None = None,
        name: str = "",
        tls: Tls | None = None,
        origins: tuple[str, ...] = (),
        keys: Keyring | None = None,
        wary: bool = False,
        **options: Any,
    ) -> None:
        place = parse(url) if acceptor is None else (socket.AF_UNIX, url)  # that knows its own place
        super().__init__(url, Channel(url, True, framing, tls, origins, keys), name, wary, options)
        self._given, self._acceptor = acceptor, acceptor
        self._binding = Binding[Any](url, place, self._bind, self._on_bound)
        self._seats = Seats()
        scheme = url.partition(":")[0]
        self._refusals = Refusals(_ANSWERS.get(scheme, unanswered))
        self._seat_of: dict[StreamPipe, Seat] = {}

    @property
    def state(self) -> State:
        return "closed" if not self._is_open else self._binding.state

    @property
    def fault(self) -> str:
        return self._binding.fault or self._fault

    @fault.setter
    def fault(self, fault: str) -> None:
        self._fault = fault

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Bind and listen, or go on trying if the address is not there yet. Raises `LinkError`."""
        self._begin(hub, loop)
        try:
            self._binding.open(loop)
        except LinkError:
            self._leave_hub()
            raise
        self._is_open = True

    def _bind(self, place: Place) -> Any:
        acceptor = self._given or Acceptor(*place)
        bound = acceptor.open(self._loop, self._accepted, self._on_trouble)
        self._acceptor = acceptor
        return bound

    def _on_bound(self, bound: Any) -> None:
        if isinstance(bound, tuple):
            self.url = _bound(split_url(self.url), *bound[:2])

    def _accepted(self, sock: socket.socket, peer: str) -> None:
        host = host_of(sock, peer)
        if why := self._seats.refusal(host, sock.fileno(), self.options.peers):
            self._refused.reject(FULL)
            log.warning("%s: refused a peer: %s", self.name, why, extra={"cause": f"{self.name}: refused"})
            return self._refusals.turn_away(self._loop, sock, why)
        seat = self._seats.take_seat(host, sock.fileno(), lambda why: pipe.close(why))
        pipe = self._adopt(sock, f"{self.url} from {peer}", partial(self._left, seat), host)
        if not pipe.closed:
            self._sit(pipe, seat)
        return None

    def _sit(self, pipe: StreamPipe, seat: Seat) -> None:
        self._seat_of[pipe] = seat
        if pipe.ready:
            seat.meet()

    def _enter(self, pipe: StreamPipe) -> None:
        if pipe in self._seat_of:  # else it is ready at once
            self._seat_of[pipe].meet()
        super()._enter(pipe)

    def _left(self, seat: Seat, pipe: StreamPipe) -> None:
        seat.leave()
        self._seat_of.pop(pipe, None)
        if pipe.fault == ROOM:
            self._refused.reject(ROOM)
        self._forget(pipe)

    def _on_trouble(self, error: OSError) -> None:
        self.fault = f"cannot accept: {words_of(error)}"
        log.warning("%s: %s; will go on trying", self.name, self.fault)

    def close(self) -> None:
        """Stop accepting and close all peers. Idempotent."""
        self._binding.close()
        if self._acceptor is not None:
            self._acceptor.close()
        if self._refusals:
            self._refusals.close(self._loop)
        super().close()


class DialLink(_StreamLink):
    """A link that keeps one connection to an address, and dials again with growing, jittered pauses.

    `framing` is SP unless given; `connect` makes the connections, by sockets unless given; `name` is the URL
    unless given; `tls`, `keys` and `wary` are as in `ListenLink`. `options` are the fields of
    `StreamOptions`.
    """

    peers_leave = False

    def __init__(
        self,
        url: str,
        framing: Framing | None = None,
        connect: Connect | None = None,
        name: str = "",
        tls: Tls | None = None,
        keys: Keyring | None = None,
        wary: bool = False,
        **options: Any,
    ) -> None:
        self.address = parse(url)
        super().__init__(url, Channel(url, False, framing, tls, keys=keys), name, wary, options)
        self._connect = connect or self._dial
        self._pauses = Backoff(self.options.retry_min_s, self.options.retry_max_s, random.uniform)
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> State:
        if not self._is_open:
            return "closed"
        if any(pipe.ready for pipe in self.pipes):
            return "up"
        return "waiting" if self.fault else "opening"

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start dialling; returns at once. Raises `LinkError` for unusable certificates."""
        self._begin(hub, loop)
        self._is_open = True
        self._pauses.reset()
        self._task = loop.create_task(self._keep_connected(), name=f"dial {self.url}")

    async def _keep_connected(self) -> None:
        complained = False
        while self._is_open:
            try:
                sock = await self._connect(self._loop)
            except (OSError, UnicodeError) as error:  # the second: a name that cannot be looked up
                self.fault = f"cannot connect: {words_of(error)}"
                if not complained:
                    log.warning("%s: %s; will go on trying", self.url, self.fault)
                complained = True
            else:
                if await self._serve(sock):
                    self._pauses.reset()
                    complained = False
            await asyncio.sleep(self._pauses.next_s())

    async def _dial(self, loop: AbstractEventLoop) -> socket.socket:
        family, where = self.address
        if family == socket.AF_UNIX:
            return await connect_to(loop, family, where)
        return (await connect_by_name(loop, *where))[0]

    async def _serve(self, sock: socket.socket) -> bool:
        """Run one connection to its end; return whether it was useful, rather than a failed attempt."""
        gone, began_s = asyncio.Event(), self._loop.time()

        def on_close(pipe: StreamPipe) -> None:
            self._forget(pipe)
            gone.set()

        pipe = self._adopt(sock, self.url, on_close)
        await gone.wait()
        if self._framing.handshake is not None:
            return pipe.ready
        return pipe.stats.received > 0 or self._loop.time() - began_s > SERVED_S

    def close(self) -> None:
        """Stop dialling and close the peer. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        super().close()


def _bound(url: Url, host: str, port: int) -> str:
    """Return an address with the port that was bound. A name stays, because a certificate may be for it."""
    plain = url.scheme == "tcp" or url.host == "*"
    return with_host(url._replace(port=port), host if plain else url.host)


def parse(url: str) -> tuple[int, Any]:
    """Return the family and address of a URL of our streams. Raises `LinkError` that says what is wrong.

    TCP and the schemes on it: (0, (host, port)), host `""` for `*`; IPC: (AF_UNIX, path).
    """
    try:
        parts = split_url(url)
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from error
    if parts.scheme == "ipc":
        return socket.AF_UNIX, parts.path
    if parts.scheme == BEACON:  # such a link is told how to connect
        return 0, (parts.path, 0)
    if parts.scheme not in STREAMS:
        raise LinkError(f"{url}: not an address of a stream: use one of {', '.join(STREAMS)}")
    return 0, ("" if parts.host == "*" else parts.host, parts.port)
