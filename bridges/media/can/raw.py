"""A raw socket of SocketCAN, open. Source of its options: linux/can/raw.h."""

import socket
from collections.abc import Sequence
from struct import Struct
from typing import Final

from bridges.media.can.own_socket import SocketPort, prepare
from bridges.media.can.port import Port

Filter = tuple[int, int]
"""An identifier and a mask, with the top bits of `bridges.items`: what is equal under the mask passes."""
_FILTER: Final = Struct("=II")


class OwnBus:
    """The base class of open buses on a socket of our own."""

    socket: socket.socket

    def port(self) -> Port:
        """Return the port of this bus."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Close the socket. Idempotent."""
        self.socket.close()


class RawBus(OwnBus):
    """An open socket on the CAN interface `channel`; only frames that pass a filter come, if there are any.

    Raises `OSError` if there is no such interface, or if it is down.
    """

    def __init__(self, channel: str, filters: Sequence[Filter] | None = None) -> None:
        self.channel, self.socket = channel, bound(channel, filters)
        try:
            prepare(self.socket)
        except OSError:
            self.shutdown()
            raise

    def port(self) -> Port:
        return SocketPort(self, self.channel)


def bound(channel: str, filters: Sequence[Filter] | None) -> socket.socket:
    """Return a socket that is bound to a CAN interface. Raises `OSError`."""
    sock = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
    try:
        if filters:
            packed = b"".join(_FILTER.pack(*one) for one in filters)
            sock.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_FILTER, packed)
        sock.bind((channel,))
    except OSError:
        sock.close()
        raise
    return sock
