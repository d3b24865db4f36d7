"""Listens for beacons, and collects their announcements."""

import asyncio
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from bus.errors import LinkError, words_of
from bus.machine.groups import hear_own
from bus.transports.inlet import FULL, Inlet, widen
from bus.transports.intake import Received, Turns, drained, ignore
from devices.dbp import ports
from devices.dbp.beacon.interfaces import interfaces
from devices.dbp.beacon.sending import GROUP
from devices.dbp.beacon.wire import DATAGRAM_BYTES, Beacon, parse

WITHIN_S: Final = 3.0
FOUND_MAX: Final = 1024
FOUND_PER_HOST: Final = 64
_RECEIVE_BYTES: Final = 4 << 20


class Found(NamedTuple):
    """An announcement that was heard. `host` is the address that its beacon came from."""

    beacon: Beacon
    host: str

    @property
    def url(self) -> str:
        """The URL that is announced."""
        return self.beacon.url(self.host)


class Listener:
    """Listens for beacons on both ports. `heard(found)` is called for each; `refused` counts other datagrams.

    Several processes of a machine can listen, and each gets all beacons.
    """

    def __init__(self, heard: Callable[[Found], object]) -> None:
        self.refused: dict[str, int] = {}
        self._heard = heard
        self._sockets: dict[socket.socket, Turns] = {}

    def open(self, loop: AbstractEventLoop) -> None:
        """Listen on all interfaces that are up now. Raises `LinkError` if that cannot be."""
        self._loop = loop
        try:
            addresses = [one.address for one in interfaces() if not one.is_loopback]
        except OSError as error:  # no descriptor is free
            raise LinkError(f"cannot listen for beacons: {words_of(error)}") from error
        for port in (ports.BEACON, ports.ANNOUNCED):
            try:
                sock = _listen(port, addresses)
            except OSError as error:
                self.close()
                raise LinkError(f"udp port {port}: cannot listen: {words_of(error)}") from error
            inlet = Inlet(sock, self._refuse)
            turns = Turns(loop, self._hear, ignore, self._lose, inlet)
            self._sockets[sock] = turns
            loop.add_reader(sock, self._on_readable, sock, turns, inlet)

    def _on_readable(self, sock: socket.socket, turns: Turns, inlet: Inlet) -> None:
        turns.hear(drained(sock, DATAGRAM_BYTES + 1, passing=OSError), inlet.look())

    def _hear(self, received: Sequence[Received]) -> None:
        for data, sender in received:
            assert isinstance(sender, tuple)
            self._take(data, sender[0])

    def _lose(self, count: int) -> None:
        self._refuse(FULL, count)

    def _take(self, data: bytes, host: str) -> None:
        beacon = parse(data)
        if isinstance(beacon, Beacon):
            self._heard(Found(beacon, host))
        else:
            self._refuse(beacon, 1)

    def _refuse(self, reason: str, count: int) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + count

    def close(self) -> None:
        """Stop listening. Idempotent."""
        for sock, turns in self._sockets.items():
            self._loop.remove_reader(sock)
            turns.end()
            sock.close()
        self._sockets = {}


def _listen(port: int, addresses: list[str]) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        widen(sock, _RECEIVE_BYTES)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):  # others share a port by one of the two
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
        hear_own(sock)
        sock.bind(("", port))
    except OSError:
        sock.close()
        raise
    for address in addresses:
        with suppress(OSError):  # an interface without multicast, or more than the kernel lets us join
            member = socket.inet_aton(GROUP) + socket.inet_aton(address)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return sock


class Findings:
    """A collection of announcements, each once, bounded in total and for each host.

    `left_out` counts those beyond the bounds. A catalog in the first form of beacons is the same as one with
    a name at the same address.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._found: dict[Found, None] = {}
        self._per_host: dict[str, int] = {}

    def __call__(self, found: Found) -> None:
        if found in self._found:
            return
        count = self._per_host.get(found.host, 0)
        if len(self._found) >= FOUND_MAX or count >= FOUND_PER_HOST:
            self.left_out += 1
            return
        self._per_host[found.host] = count + 1
        self._found[found] = None

    def all(self) -> list[Found]:
        """Return the announcements, sorted by kind, name and address."""
        named = {(one.url, one.beacon.kind) for one in self._found if one.beacon.name}
        kept = [one for one in self._found if one.beacon.name or (one.url, one.beacon.kind) not in named]
        return sorted(kept, key=lambda one: (one.beacon.kind, one.beacon.name, one.url))


async def find(within_s: float = WITHIN_S) -> list[Found]:
    """Listen for `within_s` seconds, and return all announcements. Raises `LinkError` if a port is taken."""
    findings = Findings()
    listener = Listener(findings)
    listener.open(asyncio.get_running_loop())
    try:
        await asyncio.sleep(within_s)
    finally:
        listener.close()
    return findings.all()


async def first(matches: Callable[[Found], bool], within_s: float | None) -> Found:
    """Return the first announcement that matches. Without `within_s`, wait for ever.

    Raises `TimeoutError` after `within_s` seconds, and `LinkError` if a port is taken.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Found] = loop.create_future()

    def heard(found: Found) -> None:
        if matches(found) and not result.done():
            result.set_result(found)

    listener = Listener(heard)
    listener.open(loop)
    try:
        async with asyncio.timeout(within_s):
            return await result
    finally:
        listener.close()


async def find_catalog(within_s: float = WITHIN_S) -> str:
    """Return the URL of the first catalog that is heard. Raises `LinkError` after `within_s` seconds."""
    try:
        return (await first(lambda found: found.beacon.kind == "catalog", within_s)).url
    except TimeoutError:
        raise LinkError(f"no catalog announced itself within {within_s:g} s: name its address") from None
