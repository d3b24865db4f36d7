"""The line from a service to its catalog: a DEALER, and datagrams to the same port."""

import asyncio
import logging
import socket
import time
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable
from contextlib import suppress

from bus.errors import LinkError, words_of
from bus.transports.sockets import numeric
from bus.urls import check_dial, split_url
from devices.dbp.beacon.finding import find_catalog
from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.wire import Command, Received
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket

log = logging.getLogger("buscoupler.nodes")

_READS = 64  # datagrams read in one wake-up
_DATAGRAM_BYTES = 512
_PAUSE_S = 0.5  # between two searches for a catalog

Hears = Callable[[Received], object]
"""A function that takes a command of the catalog."""


def check_catalog(url: str) -> tuple[str, int]:
    """Return host and port of the URL of a catalog. Raises `LinkError`."""
    try:
        check_dial(url)
        parts = split_url(url)
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from None
    if parts.scheme != "tcp":
        raise LinkError(f"{url}: a catalog is at tcp://HOST:PORT")
    return parts.host, parts.port


class Line:
    """The connection to a catalog: `hears` gets commands that come by TCP, `datagram` those by UDP.

    Without a `url`, each connection first searches for the beacon of a catalog. `refused` counts messages
    that were no command. Datagrams go where the first command came from.
    """

    def __init__(self, url: str | None, hears: Hears, datagram: Hears, limits: Limits) -> None:
        self.refused = 0
        self._fault, self._is_searching = "", False
        self._address = check_catalog(url) if url else None
        self._hears, self._datagram, self._limits = hears, datagram, limits
        self._bounds = Bounds()
        self._dealer: Socket | None = None
        self._udp: socket.socket | None = None
        self._waiting: list[Command] = []
        self._task: Task[None] | None = None

    @property
    def fault(self) -> str:
        """The reason why there is no connection; "" if none is known, or there is one."""
        if self._fault or self._dealer is None or not self._dealer.fault:
            return self._fault
        return f"the catalog at {self._host}:{self._port}: {self._dealer.fault}"

    def renew(self, loop: AbstractEventLoop) -> None:
        """Close the connection, and make another one. A search for a beacon goes on."""
        if self._is_searching:
            self._waiting = []
            return
        self.close()
        self._loop = loop
        self._task = loop.create_task(self._connect())

    async def _connect(self) -> None:
        self._host, self._port = self._address or await self._found()
        self._dealer = Socket("dealer", self._on_messages, self._limits)
        self._dealer.open(self._loop)
        self._dealer.connect(self._host, self._port)
        for command in self._waiting:
            self.say(command)
        self._waiting.clear()

    async def _found(self) -> tuple[str, int]:
        self._is_searching = True
        try:
            while True:
                try:
                    found, self._fault = check_catalog(await find_catalog()), ""
                    return found
                except LinkError as error:
                    if str(error) != self._fault:
                        log.warning("%s; will go on searching", error)
                    self._fault = str(error)
                await asyncio.sleep(_PAUSE_S)
        finally:
            self._is_searching = False

    def _datagrams(self, host: str) -> socket.socket | None:
        """Return a UDP socket connected to the catalog; None if there can be none: TCP is then enough."""
        try:
            family, place = numeric(host, self._port)
            sock = socket.socket(family, socket.SOCK_DGRAM)
        except OSError as error:
            log.warning("no heartbeats by UDP to %s: %s", host, words_of(error))
            return None
        try:
            sock.setblocking(False)
            sock.connect(place)
        except OSError as error:
            sock.close()
            log.warning("no heartbeats by UDP to %s: %s", host, words_of(error))
            return None
        self._loop.add_reader(sock, self._on_readable, sock)
        return sock

    def _on_readable(self, sock: socket.socket) -> None:
        for _ in range(_READS):
            if self._udp is not sock:
                return
            try:
                data = sock.recv(_DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # of an earlier datagram: the catalog does not listen now
                continue
            received = wire.parse_datagram(data, self._bounds)
            if isinstance(received, Received):
                self._datagram(received)
            else:
                self.refused += 1

    def _on_messages(self, messages: list[Message]) -> None:
        if self._udp is None:
            self._udp = self._datagrams(messages[0].host)
        for message in messages:
            received = wire.parse(message.frames, self._bounds)
            if isinstance(received, Received):
                self._hears(received)
            else:
                self.refused += 1

    def say(self, command: Command) -> None:
        """Send a command over the connection, once it is made. Of commands that wait, the last 8 are kept."""
        if self._dealer is None:
            self._waiting = [*self._waiting, command][-8:]
        else:
            self._dealer.send(wire.pack(command, False, time.time()))

    def beat(self, name: str) -> None:
        """Send a heartbeat by UDP. A lost one has no answer, and the registration then uses TCP."""
        if self._udp is not None:
            with suppress(OSError):  # of an earlier datagram, or as the network is down now
                self._udp.send(wire.pack_datagram(wire.HEARTBEAT, name, time.time()))

    async def drain(self, within_s: float) -> None:
        """Wait at most `within_s` seconds until all commands are sent."""
        end_s = self._loop.time() + within_s
        while self._dealer is not None and self._dealer.stats.queued and self._loop.time() < end_s:
            await asyncio.sleep(0.005)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._is_searching = False
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._dealer is not None:
            self._dealer.close()
            self._dealer = None
        if self._udp is not None:
            self._loop.remove_reader(self._udp)
            self._udp.close()
            self._udp = None
        self._waiting = []
