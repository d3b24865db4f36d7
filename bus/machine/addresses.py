"""The IP addresses of this machine, as they are at the moment."""

import socket
from contextlib import suppress

from bus.urls import is_loopback

_PORT = 9  # of no meaning: nothing is sent


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
