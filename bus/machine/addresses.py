"""The IP addresses of this machine, as they are at the moment."""

import errno
import os
import socket
import struct
from contextlib import suppress
from stat import S_ISSOCK

from bus.urls import is_loopback

_PORT = 9  # of no meaning: nothing is sent
_AT_ONCE = struct.pack("ii", 1, 0)  # of SO_LINGER: the port is free as soon as the socket is closed


def host_towards(host: str) -> str:
    """Return our address from which packets to a host would leave; "" where there is no route."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((host, _PORT))
        return str(sock.getsockname()[0])
    return ""


def is_own(host: str) -> bool:
    """Return whether an IP address belongs to this machine. An IPv4 address may be mapped to IPv6.

    Packets to an own address leave from it. That holds also where other addresses can be bound
    (`ip_nonlocal_bind`).
    """
    plain = host.partition("%")[0].removeprefix("::ffff:")
    return is_loopback(plain) or (bool(plain) and host_towards(plain) == plain)


def is_its_own_peer(sock: socket.socket) -> bool:
    """Return whether a socket is connected to itself.

    Who dials a port of this machine at which nobody listens gets that port as its own once in some thousand
    times, and is connected: it would hear all that it says, and keep the port from who is to listen there.
    """
    try:
        own, other = sock.getsockname(), sock.getpeername()
    except OSError:  # not connected yet, or no more
        return False
    return bool(own) and own == other  # ends of a pair have no address


def refuse_itself(sock: socket.socket) -> None:
    """Raise `ConnectionRefusedError` for a TCP socket that is its own peer; it has to be closed then."""
    if is_its_own_peer(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def let_others_have_it() -> None:
    """Let others listen at once at the ports of all sockets of this process that are connected to themselves.

    It is for those that a library closes, in an orderly way: the kernel keeps the port for a minute then.
    """
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # it was closed meanwhile
            if S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as sock:
                    if sock.type == socket.SOCK_STREAM and is_its_own_peer(sock):
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def dialled(host: str, port: int, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to another one: it blocks, as `socket.create_connection` does.

    Raises `OSError`.
    """
    sock = socket.create_connection((host, port), timeout=timeout_s)
    try:
        refuse_itself(sock)
    except OSError:
        sock.close()
        raise
    return sock
