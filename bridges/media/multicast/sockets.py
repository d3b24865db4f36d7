"""The sockets of one multicast group on one interface. They are opened, checked and closed together."""

import contextlib
import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from random import SystemRandom

from bridges.media.multicast.interfaces import Interface, Watch, find
from bridges.media.multicast.medium import Multicast
from bridges.media.rtnetlink import Address
from bus.machine.groups import hear_own
from bus.transports.inlet import Held, held_by, widen

HEADER_BYTES = {4: 20 + 8, 6: 40 + 8}
"""The bytes of the IP and UDP headers, by IP version."""
_RECEIVE_BYTES = 4 * 1024 * 1024
_SEND_BYTES = 1024 * 1024
# Linux's names that `socket` does not have (in.h, in6.h, socket.h); the numbers are the kernel's interface.
_IP_RECVERR = 11
_IPV6_RECVERR = 25


@dataclass(slots=True)
class Sockets:
    """A socket that receives from the group, one that sends to it, and the watch over the interface.

    Sender and receiver are two sockets, so that our datagrams have a source address and port of their own.
    """

    interface: Interface
    watch: Watch
    receiver: socket.socket
    sender: socket.socket
    own: tuple[object, ...] = field(init=False)
    """The address of the sender, as the receiver gets it with each datagram."""

    def __post_init__(self) -> None:
        self.own = self.sender.getsockname()

    def held(self) -> Held | None:
        """Return what the kernel tells of the receiver's buffer."""
        return held_by(self.receiver)

    @contextlib.contextmanager
    def unheard_here(self) -> Iterator[None]:
        """Send through the interface only, not to programs of this host, within this context."""
        v4 = self.sender.family == socket.AF_INET
        level = socket.IPPROTO_IP if v4 else socket.IPPROTO_IPV6
        option = socket.IP_MULTICAST_LOOP if v4 else socket.IPV6_MULTICAST_LOOP
        before = self.sender.getsockopt(level, option)
        self.sender.setsockopt(level, option, 0)
        try:
            yield
        finally:
            self.sender.setsockopt(level, option, before)

    def stamp(self) -> tuple[int, int]:
        """Return a random origin and first sequence number for the envelopes that fragments need."""
        chance = SystemRandom()
        return chance.getrandbits(32), chance.getrandbits(32)

    def close(self) -> None:
        for part in (self.receiver, self.sender, self.watch):
            part.close()


def open_sockets(options: Multicast, loopback: bool) -> Sockets:
    """Open the sockets and the watch on the chosen interface. Raises OSError that says what is wrong."""
    group, port = ip_address(options.group), options.port
    with contextlib.ExitStack() as undo:
        watch = Watch()  # first, so that no later change is missed
        undo.callback(watch.close)
        interface = find(options.interface, group)
        receiver = _udp(group, undo)
        _join(receiver, group, port, interface)
        sender = _udp(group, undo)
        _aim(sender, group, port, interface, options.hops, loopback)
        _verify(group, interface)
        undo.pop_all()
        return Sockets(interface, watch, receiver, sender)


def _udp(group: Address, undo: contextlib.ExitStack) -> socket.socket:
    family = socket.AF_INET if group.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    undo.callback(sock.close)
    return sock


def _join(sock: socket.socket, group: Address, port: int, interface: Interface) -> None:
    """Receive this group on this interface only: bind to the group, and turn `MULTICAST_ALL` off."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    widen(sock, _RECEIVE_BYTES)
    if isinstance(group, IPv4Address):
        hear_own(sock)
        sock.bind((str(group), port))
        request = struct.pack("=4s4si", group.packed, bytes(4), interface.index)
        return sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    # An IPv6 socket that joined a group on one interface receives it from all: bind to the interface.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.name.encode())
    sock.bind((str(group), port, 0, interface.index))
    sock.setsockopt(
        socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, struct.pack("=16sI", group.packed, interface.index)
    )


def _aim(
    sock: socket.socket, group: Address, port: int, interface: Interface, hops: int, loopback: bool
) -> None:
    """Set the sender to this group and interface, and connect it.

    Connecting reports a missing route now and makes sending cheaper. Without RECVERR, Linux does not report
    datagrams that the queue of the interface dropped.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
    try:
        _aim_by_family(sock, group, port, interface, hops, loopback)
    except OSError as error:
        if error.errno == errno.ENETUNREACH:
            raise OSError(f"no route to {group} by {interface.name}") from error
        raise


def _aim_by_family(
    sock: socket.socket, group: Address, port: int, interface: Interface, hops: int, loopback: bool
) -> None:
    if isinstance(group, IPv4Address):
        level, peer, own = socket.IPPROTO_IP, (str(group), port), (str(interface.address), 0)
        request = struct.pack("=4s4si", bytes(4), interface.address.packed, interface.index)
        sock.setsockopt(level, socket.IP_MULTICAST_IF, request)
        sock.setsockopt(level, socket.IP_MULTICAST_TTL, hops)
        sock.setsockopt(level, socket.IP_MULTICAST_LOOP, loopback)
        sock.setsockopt(level, _IP_RECVERR, 1)
        sock.bind(own)
        return sock.connect(peer)
    level = socket.IPPROTO_IPV6
    sock.setsockopt(level, socket.IPV6_MULTICAST_IF, interface.index)
    sock.setsockopt(level, socket.IPV6_MULTICAST_HOPS, hops)
    sock.setsockopt(level, socket.IPV6_MULTICAST_LOOP, loopback)
    sock.setsockopt(level, _IPV6_RECVERR, 1)
    sock.bind((str(interface.address), 0, 0, interface.index))
    sock.connect((str(group), port, 0, interface.index))


def _verify(group: Address, interface: Interface) -> None:
    """Check that the kernel lists the group at this interface, if it lists groups at all. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if not is_member(group, interface.name):
            raise OSError(f"{interface.name} did not join {group}")


def is_member(group: Address, name: str) -> bool:
    """Return whether the kernel lists `group` at interface `name`. Raises OSError if it has no list."""
    if group.version == 4:
        return _is_in_igmp(Path("/proc/net/igmp").read_text(), group, name)
    wanted = [name, group.packed.hex()]
    return any(line.split()[1:3] == wanted for line in Path("/proc/net/igmp6").read_text().splitlines())


def _is_in_igmp(listing: str, group: Address, name: str) -> bool:
    """Find a group (in the CPU's byte order) among the indented lines below the interface's line."""
    word = f"{struct.unpack('=I', group.packed)[0]:08X}"
    current = ""
    for line in listing.splitlines():
        fields = line.split()
        if not line[:1].isspace() and len(fields) > 1:
            current = fields[1].rstrip(":")
        elif current == name and fields[:1] == [word]:
            return True
    return False
