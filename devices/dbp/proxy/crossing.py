"""The TLS connection between two proxies: one side dials and redials, the other side listens."""

import asyncio
import logging
import random
import socket
import ssl
from asyncio import Server, StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from typing import Final

from bus.backoff import Backoff
from bus.errors import LinkError, words_of
from bus.transports.binding import Binding, when_bound
from bus.transports.options import Tls
from bus.transports.secure import load_authority, load_own
from bus.urls import split_url

log = logging.getLogger("buscoupler.proxy")

HANDSHAKE_S: Final = 5.0
_RETRY_MIN_S: Final = 0.1
_RETRY_MAX_S: Final = 5.0
CONNECTIONS_MAX: Final = 8

Serve = Callable[[StreamReader, StreamWriter], Awaitable[str]]
"""Serves a connection until it ends, and returns why it ended."""


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
    """The listening side. `url` has the bound port; `fault` says why the last connection ended, or ""."""

    def __init__(self, url: str, tls: Tls, serve: Serve) -> None:
        self.url, self.fault = url, ""
        self._tls, self._serve = context(tls, listens=True), serve
        self._server: Server | None = None
        self._connections: set[StreamWriter] = set()
        self.bindings: list[Binding[socket.socket]] = []

    async def run(self) -> None:
        """Listen until cancelled, as soon as the address is there. Raises `LinkError` if it is taken."""
        url = split_url(self.url)
        host = "" if url.host == "*" else url.host
        sock = await when_bound(self.url, (0, (host, url.port)), self.bindings.append)
        self._server = await asyncio.start_server(
            self._accepted, sock=sock, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_S
        )
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{url.scheme}://{f'[{url.host}]' if ':' in url.host else url.host}:{port}"
        await self._server.serve_forever()

    async def _accepted(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            return writer.close()
        self._connections.add(writer)
        try:
            self.fault = await self._serve(reader, writer)
        finally:
            self._connections.discard(writer)
        return None

    def met(self) -> None:
        """Clear the fault: the other side answered."""
        self.fault = ""

    def close(self) -> None:
        """Stop listening. Idempotent."""
        for binding in self.bindings:
            binding.close()
        self.bindings.clear()
        if self._server is not None:
            self._server.close()


class Dialling:
    """The dialling side, which redials with growing pauses. `fault` says why no connection is up, or ""."""

    def __init__(self, url: str, tls: Tls, serve: Serve) -> None:
        self.url, self.fault = url, ""
        self._tls, self._serve, self._name = context(tls, listens=False), serve, tls.server_name
        self._pauses = Backoff(_RETRY_MIN_S, _RETRY_MAX_S, random.uniform)
        self.bindings: list[Binding[socket.socket]] = []  # none: it dials

    async def run(self) -> None:
        """Keep a connection up until cancelled."""
        url = split_url(self.url)
        while True:
            try:
                reader, writer = await asyncio.open_connection(
                    url.host, url.port, ssl=self._tls, server_hostname=self._name or url.host,
                    ssl_handshake_timeout=HANDSHAKE_S,
                )  # fmt: skip
            except (OSError, UnicodeError) as error:
                self._complain(f"cannot connect: {words_of(error)}")
            else:
                self._complain(await self._serve(reader, writer))
            await asyncio.sleep(self._pauses.next_s())

    def _complain(self, fault: str) -> None:
        if fault != self.fault:
            log.warning("%s: %s; will go on trying", self.url, fault)
        self.fault = fault

    def met(self) -> None:
        """Reset the pauses and the fault: the other side answered."""
        self._pauses.reset()
        self.fault = ""

    def close(self) -> None:
        """Do nothing: when `run` is cancelled, nothing is left open."""
