"""Our ends of the lines: a pseudo-terminal, or a multicast group that is a CAN bus of python-can."""

import os
import socket
import struct
import tty
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from benchmarks.relayed.systems import GROUP, LineLoad

_CAN_PORT = 43113  # of python-can
_IP_MULTICAST_ALL = 49


class End(NamedTuple):
    """Our end of a line: a descriptor, its kind in load.c, and the name of the gateway's end."""

    fd: int
    kind: str
    path: str


@contextmanager
def end_of(load: LineLoad) -> Iterator[End]:
    """Yield our end of the line of a load, for writing where it leads to TCP, else for reading."""
    if load.line == "uart":
        with _terminal() as end:
            yield end
    else:
        with closing(_sender() if load.to_tcp else _receiver()) as sock:
            yield End(sock.fileno(), "dg", "")


@contextmanager
def _terminal() -> Iterator[End]:
    ours, other = os.openpty()
    for end in (ours, other):
        tty.setraw(end)
    try:
        yield End(ours, "fd", os.ttyname(other))
    finally:
        os.close(ours)
        os.close(other)


def _sender() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
    sock.connect((GROUP, _CAN_PORT))
    return sock


def _receiver() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
    sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    sock.bind((GROUP, _CAN_PORT))
    sock.setsockopt(
        socket.IPPROTO_IP,
        socket.IP_ADD_MEMBERSHIP,
        struct.pack("4sl", socket.inet_aton(GROUP), socket.INADDR_ANY),
    )
    return sock
