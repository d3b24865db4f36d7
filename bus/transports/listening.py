"""A link that listens at an address, and keeps the peers that come."""

import logging
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from bus.errors import LinkError, words_of
from bus.hub import Hub, State
from bus.keys import Keyring
from bus.transports.binding import Binding, SocketPlace
from bus.transports.channel import Channel
from bus.transports.framing import Framing
from bus.transports.options import Tls
from bus.transports.refusals import Answer, Refusals, alerted, unanswered, unavailable
from bus.transports.seats import FULL, ROOM, Seat, Seats, host_of
from bus.transports.sockets import Acceptor, OnPeer
from bus.transports.stream import StreamPipe
from bus.transports.stream_link import StreamLink, parse
from bus.urls import Url, split_url, with_host

log = logging.getLogger("buscoupler.bus")

_ANSWERS: dict[str, Answer] = {"ws": unavailable, "wss": alerted, "tls+tcp": alerted}
"""The answer to a refused peer, by the scheme; SP over TCP has no word for it."""


class Accepting(Protocol):
    """A source of connections; see `Acceptor`."""

    def open(
        self, loop: AbstractEventLoop, on_peer: OnPeer, on_trouble: Callable[[OSError], None]
    ) -> Any: ...
    def close(self) -> None: ...


class ListenLink(StreamLink):
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

    def _bind(self, place: SocketPlace) -> Any:
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


def _bound(url: Url, host: str, port: int) -> str:
    """Return an address with the port that was bound. A name stays, because a certificate may be for it."""
    plain = url.scheme == "tcp" or url.host == "*"
    return with_host(url._replace(port=port), host if plain else url.host)
