"""Sockets of multicast groups that hear their own groups only.

Linux gives a socket that is bound to a port the datagrams of every group that any program of the machine has
joined at that port, unless it is told otherwise. Source: ip(7), ipv6(7).
"""

import socket
from typing import Final

_ALL: Final = {socket.AF_INET: (socket.IPPROTO_IP, 49), socket.AF_INET6: (socket.IPPROTO_IPV6, 29)}
"""IP_MULTICAST_ALL and IPV6_MULTICAST_ALL (Linux 4.20), which Python does not name."""


def hear_own(sock: socket.socket) -> None:
    """Let a socket hear only the groups that it has joined. Raises `OSError` where the kernel cannot."""
    level, option = _ALL[sock.family]
    sock.setsockopt(level, option, 0)
