"""Sockets of multicast groups: joined where the machine has a way to them, and hearing their own only.

Linux gives a socket that is bound to a port the datagrams of every group that any program of the machine has
joined at that port, unless it is told otherwise. Source: ip(7), ipv6(7).
"""

import socket
from errno import ENODEV
from ipaddress import ip_address
from struct import pack
from typing import Final

from bus.errors import words_of

_ALL: Final = {socket.AF_INET: (socket.IPPROTO_IP, 49), socket.AF_INET6: (socket.IPPROTO_IPV6, 29)}
"""IP_MULTICAST_ALL and IPV6_MULTICAST_ALL (Linux 4.20), which Python does not name."""
_JOIN: Final = {
    socket.AF_INET: (socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP),
    socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP),
}


def hear_own(sock: socket.socket) -> None:
    """Let a socket hear only the groups that it has joined. Raises `OSError` where the kernel cannot."""
    level, option = _ALL[sock.family]
    sock.setsockopt(level, option, 0)


def join(sock: socket.socket, group: str, zone: int = 0) -> None:
    """Let a socket join a group, an address without a zone, on the interface of that number, of IPv6; with 0
    on the one to which the machine's route to the group leads. Raises `OSError`."""
    family = socket.AddressFamily(sock.family)
    try:
        sock.setsockopt(*_JOIN[family], socket.inet_pton(family, group) + pack("@I", zone))
    except OSError as error:
        raise _without_route(error, family, group) from error


def trouble(group: str) -> str:
    """Return why this machine cannot join a group now, and what to do about it; "" if it can."""
    plain, _, zone = group.partition("%")
    try:
        is_group = ip_address(plain).is_multicast
    except ValueError:
        is_group = False
    if not is_group:
        return f"{group} is no multicast group: 224.0.0.0/4 or ff00::/8"
    try:
        with socket.socket(socket.AF_INET6 if ":" in plain else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            join(sock, plain, interface_of(zone))
    except OSError as error:
        return words_of(error)
    return ""


def interface_of(zone: str) -> int:
    """Return the number of the interface of a zone, 0 of none. Raises `OSError` if it is not there."""
    return int(zone) if zone.isdecimal() else socket.if_nametoindex(zone) if zone else 0


def _without_route(error: OSError, family: int, group: str) -> OSError:
    """Return what to raise for a group that was not joined: a machine without a route there has no way to
    choose an interface, and the kernel's words, no such device, say nothing of that."""
    if error.errno != ENODEV:
        return error
    ip = "ip -6" if family == socket.AF_INET6 else "ip"
    return OSError(
        f"there is no route to {group}: run {ip} route add {group} dev INTERFACE (lo: this machine)"
    )
