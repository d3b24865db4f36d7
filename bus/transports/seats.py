"""Seats: which connections may stay when room is short, so that no host shuts out the others.

While a process has descriptors to spare, every host may have as many connections as it likes. When there is
no room, the host that has most makes room for one that has fewer. A network of IPv6 (/64) is one host, and
its addresses share in the same way. Some descriptors stay spare, for files, devices and connections of our
own. All listeners of a process share its descriptors, so they share one `Process`.
"""

import os
import resource
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from bus.machine.hosts import HOSTS

SPARE: Final = 32
"""The descriptors that peers cannot take; or a quarter of all, where that is less."""
FULL: Final = "connections full"
"""The reason of a connection that was refused."""
ROOM: Final = "closed to make room"
"""The reason of a connection that was closed for one of a host with fewer."""
_NEW_WEIGHT: Final = 4  # of a connection that has not completed its handshake, against one that has
_CREDENTIALS: Final = struct.Struct("3i")  # process, user and group of a local peer

Close = Callable[[str], object]
"""A function that closes a connection for a reason, at once."""


def room() -> int:
    """Return how many descriptors of this process peers may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - min(SPARE, soft // 4)


def dials(most: int = 1 << 20) -> int:
    """Return how many descriptors may be for what peers make us open: `most`, or a quarter of `room()`."""
    return min(most, room() // 4)


def host_of(sock: socket.socket, peer: str) -> str:
    """Return the host that a connection counts for; `peer` is its address in words, HOST:PORT.

    Over a local socket, each process of our own account counts as a host, and each other account.
    """
    host = peer.rpartition(":")[0].removeprefix("::ffff:")
    if host or sock.family != socket.AF_UNIX:
        return host
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return f"process {process}" if user in (os.geteuid(), 0) else f"account {user}"


def network_of(host: str) -> str:
    """Return what counts as one host: an address, or of IPv6 the /64 that it is in.

    Who has one address of IPv6 has all of its /64 as a rule. The first /64 has ours, and those of IPv4.
    """
    plain, _, scope = host.partition("%")
    try:
        head = socket.inet_pton(socket.AF_INET6, plain.strip("[]"))[:8] if ":" in plain else b""
    except OSError:
        head = b""
    if not any(head):
        return host
    return f"{socket.inet_ntop(socket.AF_INET6, head + bytes(8))}/64{scope and '%' + scope}"


def path_of(host: str) -> tuple[str, ...]:
    """Return what a connection counts for: a host; of IPv6 its network, and in that the address. "": none."""
    network = network_of(host)
    return (network, host) if network != host else (host,) if host else ()


class Seat:
    """The place of one connection. Call `meet` when its handshake is done, and `leave` when it ends."""

    __slots__ = ("_books", "close", "descriptor", "host", "met", "path")

    def __init__(self, host: str, descriptor: int, close: Close, books: "tuple[_Book, ...]") -> None:
        self.host, self.descriptor, self.close, self.met = host, descriptor, close, False
        self.path = path_of(host)
        if self.path:
            HOSTS[descriptor] = self.path[0]
        self._books = books
        for book in books:
            book.take(self)

    def meet(self) -> None:
        """Note that the connection has completed its handshake. Idempotent."""
        if not self.met and self._books:
            self.met = True
            for book in self._books:
                book.meet(self)

    def leave(self) -> None:
        """Free the place. Idempotent."""
        books, self._books = self._books, ()
        if books and self.path and HOSTS.get(self.descriptor) is self.path[0]:  # else it is the next one's
            del HOSTS[self.descriptor]
        for book in books:
            book.leave(self)


class _Host:
    """The seats of one address: those whose handshake is done, and the new ones; the oldest come first."""

    __slots__ = ("met", "new")

    def __init__(self) -> None:
        self.met, self.new = dict[Seat, None](), dict[Seat, None]()

    def __len__(self) -> int:
        return len(self.met) + len(self.new)

    @property
    def weight(self) -> int:
        return len(self.met) + _NEW_WEIGHT * len(self.new)

    def take(self, seat: Seat) -> None:
        self.new[seat] = None

    def meet(self, seat: Seat) -> None:
        del self.new[seat]
        self.met[seat] = None

    def leave(self, seat: Seat) -> None:
        del (self.met if seat.met else self.new)[seat]

    def first(self) -> Seat | None:
        return next(iter(self.new or self.met), None)

    def yields(self, path: Sequence[str]) -> Seat | None:
        return next(iter(self.new), None)


class _Book:
    """The seats of a listener, or of a process, by host; those of a network of IPv6 (`depth` 1), by address.

    A call takes the same time, however many there are. A seat without a path is of a host that need not
    share: it is counted, and never given to others.
    """

    def __init__(self, depth: int = 0) -> None:
        self.weight = 0
        self._depth = depth
        self._count = self._top = 0
        self._members: dict[str, _Host | _Book] = {}
        self._levels: dict[int, dict[str, None]] = {}  # the members by weight

    def __len__(self) -> int:
        return self._count

    def take(self, seat: Seat) -> None:
        self._count += 1
        if seat.path:
            name = seat.path[self._depth]
            member = self._members.get(name)
            if member is None:
                is_last = self._depth + 1 == len(seat.path)
                member = self._members[name] = _Host() if is_last else _Book(self._depth + 1)
            before = member.weight
            member.take(seat)
            self._move(name, before, member.weight)

    def meet(self, seat: Seat) -> None:
        if seat.path:
            name = seat.path[self._depth]
            member = self._members[name]
            before = member.weight
            member.meet(seat)
            self._move(name, before, member.weight)

    def leave(self, seat: Seat) -> None:
        self._count -= 1
        if seat.path:
            name = seat.path[self._depth]
            member = self._members[name]
            before = member.weight
            member.leave(seat)
            self._move(name, before, member.weight)
            if not member:
                del self._members[name]

    def _move(self, name: str, before: int, after: int) -> None:
        self.weight += after - before
        if before:
            level = self._levels[before]
            del level[name]
            if not level:
                del self._levels[before]
        if after:
            self._levels.setdefault(after, {})[name] = None
        self._top = max(self._top, after)
        while self._top and self._top not in self._levels:
            self._top -= 1

    def first(self) -> Seat | None:
        """Return the seat that goes first: one of the member with most."""
        name = next(iter(self._levels.get(self._top, ())), None)
        return None if name is None else self._members[name].first()

    def yields(self, path: Sequence[str]) -> Seat | None:
        """Return the seat that goes for a new connection; None if those of `path` have their share already.

        It is one of the host with most, where a connection without a handshake counts as four; the oldest
        of these goes first. A host that has no less than all others gives up one of these of its own.
        """
        name = path[self._depth] if path else ""
        own = self._members.get(name) or _Host()
        most = next((one for one in self._levels.get(self._top, ()) if one != name), "")
        if most and len(self._members[most]) > len(own) + 1:
            return self._members[most].first()
        return own.yields(path)


class Process(_Book):
    """The seats of all peers of a process, by host: it has one set of descriptors.

    The hosts of the networks `kept` need not share: their connections are never closed for those of others.
    """

    def __init__(self, kept: Iterable[str] = ()) -> None:
        super().__init__()
        self._high = set[Seat]()  # those whose descriptor should be spare
        self._most = 0  # so many there were when descriptors last ran short
        self.revise(kept)

    def revise(self, kept: Iterable[str]) -> None:
        """Set other networks whose hosts need not share, for connections from now on."""
        self._kept = tuple(ip_network(each) for each in kept)

    def take(self, seat: Seat) -> None:
        super().take(seat)
        if seat.descriptor >= room():
            self._high.add(seat)

    def leave(self, seat: Seat) -> None:
        super().leave(seat)
        self._high.discard(seat)

    def is_short(self, descriptor: int) -> bool:
        """Return whether a seat must be freed for the connection that has got this descriptor.

        The system gives the lowest number that is free. While a peer has one that should be spare, there may
        be no more peers than when they ran short.
        """
        if descriptor >= room():
            self._most = len(self)
            return True
        return bool(self._high) and len(self) >= self._most

    def known(self, host: str) -> str:
        """Return the name under which a host is counted: "" for one that need not share."""
        if not self._kept:
            return host
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:  # of a local socket
            return host
        return "" if any(address in network for network in self._kept) else host


PROCESS: Final = Process()
"""The descriptors of this process; `keep_connections_of` of its gateway revises it."""


class Seats(_Book):
    """The seats of one listener. First ask for the `refusal`, then `take_seat`."""

    def __init__(self, process: Process = PROCESS) -> None:
        super().__init__()
        self._process = process

    def refusal(self, host: str, descriptor: int, most: int) -> str:
        """Make room for a connection of `host`, if it may have that. Return "", or why it must go.

        `most` may be connected here. `descriptor` is that of the new connection.
        """
        path = path_of(self._process.known(host))
        if len(self) >= most:
            return self._make_room(self, path, f"{len(self)} are connected")
        if self._process.is_short(descriptor):
            return self._make_room(
                self._process, path, f"the process has no more than {room()} descriptors for peers"
            )
        return ""

    def _make_room(self, book: _Book, path: Sequence[str], why: str) -> str:
        found = book.yields(path)
        if found is None:
            return f"{FULL}: {why}, and {path[0] if path else 'it'} has its share"
        found.close(ROOM)
        found.leave()  # some connections end a turn later
        return ""

    def take_seat(self, host: str, descriptor: int, close: Close) -> Seat:
        """Take a place for a connection of `host`. `close` is called if it must go for another host's."""
        return Seat(self._process.known(host), descriptor, close, (self, self._process))
