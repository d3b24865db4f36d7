"""A link that dials an address, again and again."""

import asyncio
import logging
import random
import socket
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from bus.advice import advised
from bus.backoff import Attempts
from bus.errors import words_of
from bus.hub import Hub, Link, Retrying, State
from bus.keys import Keyring
from bus.transports.channel import Channel
from bus.transports.framing import Framing
from bus.transports.options import Tls
from bus.transports.redialling import Redialling
from bus.transports.sockets import connect_by_name, connect_to
from bus.transports.stream import StreamPipe
from bus.transports.stream_link import StreamLink, parse

log = logging.getLogger("buscoupler.bus")

SERVED_S: Final = 1.0
"""The time after which a connection without a handshake was a success, unless it has brought something
before."""

Connect = Callable[[AbstractEventLoop], Awaitable[socket.socket]]
"""A function that makes a connection.

Raises `OSError`, or `UnicodeError` for a name that cannot be looked up.
"""


class DialLink(StreamLink, Retrying):
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
        self._attempts = Attempts(self.options.retry_min_s, self.options.retry_max_s, random.uniform)
        self._has_complained = False
        self._redialling: Redialling[socket.socket] | None = None
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
        self._attempts.reset()
        self._has_complained = False
        connect = partial(self._connect, loop)
        self._redialling = Redialling(connect, self._serve, self._complain, self._attempts.after)
        self._task = loop.create_task(self._redialling.run(), name=f"dial {self.url}")

    def revise(self, other: Link) -> bool:
        revised = super().revise(other)
        self._attempts.revise(self.options.retry_min_s, self.options.retry_max_s)
        return revised

    def hurry(self) -> None:
        """Dial at once if there is no connection, and again after the shortest pauses."""
        self._attempts.reset()
        if self._redialling is not None:
            self._redialling.hurry()

    def _complain(self, error: OSError | UnicodeError) -> None:
        """Note why there is no connection, and log it once, until one was useful."""
        self.fault = f"cannot connect: {words_of(error)}"
        if not self._has_complained:
            log.warning("%s: %s; will go on trying", self.url, advised(self.fault))
        self._has_complained = True

    async def _dial(self, loop: AbstractEventLoop) -> socket.socket:
        family, where = self.address
        if family == socket.AF_UNIX:
            return await connect_to(loop, family, where)
        return (await connect_by_name(loop, where[0], where[1], self._attempts.turn))[0]

    async def _serve(self, sock: socket.socket) -> bool:
        """Run one connection to its end; return whether it was useful, rather than a failed attempt."""
        gone, began_s = asyncio.Event(), self._loop.time()

        def on_close(pipe: StreamPipe) -> None:
            self._forget(pipe)
            gone.set()

        pipe = self._adopt(sock, self.url, on_close)
        await gone.wait()
        served = pipe.stats.received > 0 or self._loop.time() - began_s > SERVED_S
        lasted = served if self._framing.handshake is None else pipe.ready
        self._has_complained = self._has_complained and not lasted
        return lasted

    def close(self) -> None:
        """Stop dialling and close the peer. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        super().close()
