"""Bytes that have left a connection, and have not come to the other machine yet.

When a TCP connection is closed while something lies unread in it, or comes later, the kernel resets it, and
drops what is on the way. Source: RFC 1122, section 4.2.2.13; tcp(7), SIOCOUTQ.
"""

import fcntl
import os
import socket
import stat
import termios
from array import array
from collections.abc import Collection
from contextlib import suppress

from bus.urls import url_host

_OPEN = "/proc/self/fd"


def on_the_way_bytes(descriptor: int) -> int:
    """Return the bytes that the other machine has not acknowledged; 0 where the kernel does not tell."""
    waiting = array("i", (0,))
    with suppress(OSError):
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, waiting)
    return waiting[0]


def of_process_bytes(peers: Collection[str] | None = None) -> int:
    """Return the bytes on the way over all TCP connections of this process, also over those of a library
    whose descriptors nobody else knows. 0 without Linux's /proc.

    With `peers` ("127.0.0.1:5555", "[::1]:5555"), only those to them.
    """
    found = 0
    with suppress(OSError):
        for name in os.listdir(_OPEN):
            with suppress(OSError):  # closed meanwhile
                found += _to_bytes(int(name), peers)
    return found


def _to_bytes(descriptor: int, peers: Collection[str] | None) -> int:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return 0
    with socket.socket(fileno=os.dup(descriptor)) as sock:  # another thread may close its own at any time
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return 0
        host, port, *_ = sock.getpeername()
        place = f"{url_host(host)}:{port}"
        return on_the_way_bytes(sock.fileno()) if peers is None or place in peers else 0
