"""CAN frames in datagrams to a multicast group: the bus that python-can calls `udp_multicast`.

A datagram is one frame: a map of MessagePack with the fields of python-can's `Message`.
Source: python-can 4.6, can/interfaces/udp_multicast.
"""

import socket
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, ClassVar, Final

from msgpack import packb, unpackb

from bridges.items import ERROR, EXTENDED, FD, IDENTIFIER, REMOTE, STANDARD_MAX, STATE, SWITCH, CanFrame
from bridges.media.can.inbox import DONTWAIT, NOTE_BYTES, SO_RXQ_OVFL, SO_TIMESTAMPNS, Arrived, noted
from bridges.media.can.medium import UDP_PORT
from bridges.media.can.own_socket import DirectPort, widen
from bridges.media.can.port import Port
from bridges.media.can.raw import OwnBus
from bridges.media.can.state import State
from bus.machine.groups import hear_own, join
from bus.transports.sockets import numeric

_DATAGRAM_BYTES: Final = 4096
_CLASSIC_BYTES, _FD_BYTES = 8, 64
_HOPS: Final = {
    socket.AF_INET: (socket.IPPROTO_IP, socket.IP_MULTICAST_TTL),
    socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS),
}


def datagram_of(frame: CanFrame) -> bytes:
    """Return the datagram of a frame. A remote frame has the length of its data, and no data."""
    identifier, data, marks = frame
    is_remote = bool(identifier & REMOTE)
    packed: bytes = packb(
        {
            "timestamp": 0.0,
            "arbitration_id": identifier & IDENTIFIER,
            "is_extended_id": bool(identifier & EXTENDED),
            "is_remote_frame": is_remote,
            "is_error_frame": False,
            "channel": None,
            "dlc": len(data),
            "data": b"" if is_remote else bytes(data),
            "is_fd": bool(marks & FD),
            "bitrate_switch": bool(marks & SWITCH),
            "error_state_indicator": bool(marks & STATE),
        }
    )
    return packed


def frame_in(datagram: bytes) -> CanFrame | None:
    """Return the frame in a datagram; None if it has none, or one that no CAN bus can carry."""
    try:
        told = unpackb(datagram)
        return _frame_of(told) if isinstance(told, dict) else None
    except Exception:  # msgpack and strange values raise many
        return None


def _frame_of(told: Mapping[str, Any]) -> CanFrame | None:
    """Return the frame of the fields of a message; None if they contradict each other. Raises for types."""
    is_remote, is_fd = bool(told.get("is_remote_frame")), bool(told.get("is_fd"))
    data = b"" if is_remote else bytes(memoryview(told.get("data") or b""))
    size = len(data) if told.get("dlc") is None else index(told["dlc"])
    identifier = index(told["arbitration_id"])
    is_extended, is_error = bool(told.get("is_extended_id", True)), bool(told.get("is_error_frame"))
    switch, state = bool(told.get("bitrate_switch")), bool(told.get("error_state_indicator"))
    possible = (
        0 <= identifier <= (IDENTIFIER if is_extended else STANDARD_MAX)
        and 0 <= size <= (_FD_BYTES if is_fd else _CLASSIC_BYTES)
        and (is_remote or size == len(data))
        and not (is_remote and (is_fd or is_error))
        and (is_fd or not (switch or state))
    )
    if not possible:
        return None
    kind = (EXTENDED if is_extended else 0) | (REMOTE if is_remote else 0) | (ERROR if is_error else 0)
    marks = FD | (SWITCH if switch else 0) | (STATE if state else 0) if is_fd else 0
    return identifier | kind, bytes(size) if is_remote else data, marks


class GroupBus(OwnBus):
    """An open socket in the group `channel`, IPv4 or IPv6, at a port; datagrams pass `hop_limit` routers.

    Raises `OSError` if the group cannot be joined.
    """

    def __init__(self, channel: str, port: int = UDP_PORT, hop_limit: int = 1) -> None:
        family, address = numeric(channel, port)
        self.address: tuple[Any, ...] = address
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._join(port, hop_limit)
        except OSError:
            self.socket.close()
            raise

    def _join(self, port: int, hop_limit: int) -> None:
        sock = self.socket
        sock.setsockopt(*_HOPS[socket.AddressFamily(sock.family)], hop_limit)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT, SO_TIMESTAMPNS, SO_RXQ_OVFL):
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
        widen(sock)
        hear_own(sock)
        sock.bind(("", port))
        group, *more = self.address
        join(sock, group, more[-1] if sock.family == socket.AF_INET6 else 0)

    def port(self) -> Port:
        return GroupPort(self)


class _Datagrams:
    """The inbox of a group: one datagram after the other."""

    slots: ClassVar[int] = 1

    def __init__(self, sock: socket.socket) -> None:
        self._receive = sock.recvmsg

    def read(self) -> Arrived:
        """Return the next frame. Raises `OSError`: EAGAIN if there is none."""
        raw, notes, _, _ = self._receive(_DATAGRAM_BYTES, NOTE_BYTES, DONTWAIT)
        return Arrived((frame_in(raw),), *noted(notes))


class GroupPort(DirectPort):
    """A multicast group as a CAN bus. It confirms no frame, and has no controller."""

    confirms = False

    def __init__(self, bus: GroupBus) -> None:
        super().__init__(bus, _Datagrams(bus.socket))
        self._address = bus.address

    def write(self, frame: CanFrame) -> None:
        self._socket.sendto(datagram_of(frame), DONTWAIT, self._address)

    def write_some(self, frames: Sequence[CanFrame]) -> int:
        self.write(frames[0])
        return 1

    def state(self) -> State:
        return "unknown"
