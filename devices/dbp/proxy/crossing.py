"""The TLS connection between two proxies: one side dials and redials, the other side listens."""

import asyncio
import logging
import random
import ssl
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from bus.advice import advised
from bus.backoff import Attempts
from bus.errors import LinkError, words_of
from bus.serving.lasting import open_stream
from bus.serving.streams import StreamListener
from bus.transports.binding import Binding, SocketPlace
from bus.transports.options import Tls
from bus.transports.redialling import Redialling
from bus.transports.seats import Seat
from bus.transports.secure import load_authority, load_own
from bus.transports.sockets import Acceptor
from bus.urls import split_url

log = logging.getLogger("buscoupler.proxy")

HANDSHAKE_S: Final = 5.0
_RETRY_MIN_S: Final = 0.1
_RETRY_MAX_S: Final = 5.0
CONNECTIONS_MAX: Final = 1024
"""The connections at a time, nearly all of them of strangers: there is one other proxy."""

Serve = Callable[[StreamReader, StreamWriter], Awaitable[str]]
"""A function that serves a connection until it ends, and returns why it ended."""


def context(tls: Tls, listens: bool) -> ssl.SSLContext:
    """Return the TLS context of one side: it proves itself by a certificate, and requires one of the other.

    Raises `LinkError` for certificate files that cannot be used.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        load_authority(made, tls)
        load_own(made, tls)
    except (OSError, ValueError) as error:
        raise LinkError(f"certificates of the proxy: {words_of(error)}") from error
    return made


class Listening:
    """The listening side. `url` has the bound port; `fault` says why the last connection ended, or "".

    `rejected` counts connections that came to nothing, by reason.
    """

    def __init__(self, url: str, tls: Tls, serve: Serve) -> None:
        self.url, self.fault = url, ""
        self.rejected = Counter[str]()
        self._serve = serve
        self._listener = StreamListener(
            self._accepted,
            lambda: CONNECTIONS_MAX,
            self._reject,
            context(tls, listens=True),
            HANDSHAKE_S,
        )
        where = split_url(url)
        place = 0, ("" if where.host == "*" else where.host, where.port)
        self.bindings: list[Binding[Any]] = [Binding(url, place, self._bind, self._listens)]

    async def run(self) -> None:
        """Listen, as soon as the address is there. Raises `LinkError` if it is taken."""
        self._loop = asyncio.get_running_loop()
        self.bindings[0].open(self._loop)

    def _bind(self, place: SocketPlace) -> Any:
        return self._listener.open(self._loop, Acceptor(*place), self._on_trouble)

    def _listens(self, bound: Any) -> None:
        url = split_url(self.url)
        self.url = f"{url.scheme}://{f'[{url.host}]' if ':' in url.host else url.host}:{bound[1]}"

    def _reject(self, reason: str) -> None:
        self.rejected[reason] += 1

    def _on_trouble(self, error: OSError) -> None:
        self.fault = f"cannot accept: {words_of(error)}"
        log.warning("%s: %s; will go on trying", self.url, self.fault)

    async def _accepted(self, reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        seat.meet()  # it has shown its certificate
        self.fault = await self._serve(reader, writer)

    def met(self) -> None:
        """Clear the fault: the other side answered."""
        self.fault = ""

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self.bindings[0].close()
        self._listener.close()


class Dialling:
    """The dialling side, which redials with growing pauses. `fault` says why no connection is up, or ""."""

    def __init__(self, url: str, tls: Tls, serve: Serve) -> None:
        self.url, self.fault = url, ""
        self.rejected = Counter[str]()
        self._tls, self._serve, self._name = context(tls, listens=False), serve, tls.server_name
        self._attempts = Attempts(_RETRY_MIN_S, _RETRY_MAX_S, random.uniform)
        self._was_met = False  # in this connection
        self.bindings: list[Binding[Any]] = []  # none: it dials

    async def run(self) -> None:
        """Keep a connection up until cancelled."""
        await Redialling(self._connect, self._served, self._failed, self._attempts.after).run()

    async def _connect(self) -> tuple[StreamReader, StreamWriter]:
        url, self._was_met = split_url(self.url), False
        return await open_stream(
            url.host, url.port, self._attempts.turn, ssl=self._tls, server_hostname=self._name or url.host,
            ssl_handshake_timeout=HANDSHAKE_S,
        )  # fmt: skip

    async def _served(self, streams: tuple[StreamReader, StreamWriter]) -> bool:
        self._complain(await self._serve(*streams))
        return self._was_met

    def _failed(self, error: OSError | UnicodeError) -> None:
        self._complain(f"cannot connect: {words_of(error)}")

    def _complain(self, fault: str) -> None:
        if fault != self.fault:
            log.warning("%s: %s; will go on trying", self.url, advised(fault))
        self.fault = fault

    def met(self) -> None:
        """Clear the fault: the other side answered."""
        self._was_met, self.fault = True, ""

    def close(self) -> None:
        """Do nothing: when `run` is cancelled, nothing is left open."""
