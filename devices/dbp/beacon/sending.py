"""Sends beacons once a second on each interface."""

import asyncio
import socket
from asyncio import AbstractEventLoop, Task, TimerHandle
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from bus.errors import words_of
from bus.machine.aside import aside
from bus.machine.touch import touching
from bus.urls import is_ip, is_wildcard, split_url
from devices.dbp import ports
from devices.dbp.beacon.interfaces import Interface, interfaces
from devices.dbp.beacon.wire import Beacon, Kind, pack

GROUP: Final = "239.255.52.45"  # of the site-local scope, RFC 2365; with a TTL of 1 it stays on the LAN
INTERVAL_S: Final = 1.0
_LOOK_S: Final = 5.0


class Announcement(NamedTuple):
    """A beacon, and the address on which its service listens; `host` "" is every interface."""

    host: str
    beacon: Beacon


def announcement(kind: Kind, url: str, name: str) -> Announcement | None:
    """Return the announcement of a URL; None if a beacon cannot have it: no host, no port, or IPv6."""
    try:
        parts = split_url(url)
        beacon = Beacon(kind, parts.port, parts.scheme, name)
        pack(beacon)
    except ValueError:
        return None
    host = "" if is_wildcard(parts.host) else parts.host
    return None if ":" in host else Announcement(host, beacon)


class Sender:
    """Sends beacons. `fault` says why one of the last round could not be sent, or "". `sent` counts them.

    The interfaces are read for each round, so new ones are served.
    """

    def __init__(self, announcements: Collection[Announcement], interval_s: float = INTERVAL_S) -> None:
        self.fault = ""
        self.sent = 0
        self._announcements, self._interval_s = tuple(announcements), interval_s
        self._sockets: dict[str, socket.socket] = {}
        self._timer: TimerHandle | None = None
        self._task: Task[None] | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to send. A missing network is no error: it may come later."""
        self._loop = loop
        if any(one.host and not is_ip(one.host) for one in self._announcements):
            self._task = loop.create_task(self._look_up())
        self._beat()

    async def _look_up(self) -> None:
        """Replace the names of hosts by their addresses, as soon as these are known."""
        while any(one.host and not is_ip(one.host) for one in self._announcements):
            found = await aside(lambda: tuple(map(_looked_up, self._announcements)))
            if found == self._announcements:
                await asyncio.sleep(_LOOK_S)
            self._announcements = found

    def _beat(self) -> None:
        self._timer = self._loop.call_later(self._interval_s, self._beat)
        self.fault = ""
        try:
            found = interfaces()
        except OSError as error:  # no descriptor is free
            self.fault = words_of(error)
            return
        self._forget({one.address for one in found})
        for interface in found:
            for datagram, port in _datagrams(self._announcements, interface):
                self._say(interface, datagram, port)

    def _say(self, interface: Interface, datagram: bytes, port: int) -> None:
        try:
            sock = self._sockets.get(interface.address) or self._open(interface)
        except OSError as error:
            self.fault = f"{interface.address}: {words_of(error)}"
            return
        for to in _targets(interface):
            try:
                sock.sendto(datagram, (to, port))
            except OSError as error:
                self.fault = f"{interface.address}: {words_of(error)}"
            else:
                self.sent += 1

    def _open(self, interface: Interface) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface.address))
            sock.bind((interface.address, 0))
        except OSError:
            sock.close()
            raise
        self._sockets[interface.address] = sock
        return sock

    def _forget(self, present: Collection[str]) -> None:
        for address in [address for address in self._sockets if address not in present]:
            self._sockets.pop(address).close()

    def close(self) -> None:
        """Stop sending. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._forget(())


def _datagrams(announcements: Collection[Announcement], interface: Interface) -> Iterator[tuple[bytes, int]]:
    """Yield the datagrams for an interface, each with its port."""
    for host, beacon in announcements:
        if host in ("", interface.address):
            yield pack(beacon), ports.ANNOUNCED
            if beacon.kind == "catalog":
                yield pack(Beacon("catalog", beacon.port)), ports.BEACON


def _targets(interface: Interface) -> Iterator[str]:
    if interface.broadcast:
        yield interface.broadcast
    if not interface.is_loopback:
        yield GROUP


def _looked_up(one: Announcement) -> Announcement:
    """Return an announcement with the address of its host; as it is, to be announced nowhere, if unknown."""
    if not one.host or is_ip(one.host):
        return one
    with suppress(OSError, UnicodeError), touching(f"the name server that is asked for {one.host}"):
        return one._replace(host=str(socket.getaddrinfo(one.host, None, socket.AF_INET)[0][4][0]))
    return one
