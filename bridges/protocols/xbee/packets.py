"""The contents of API frames of XBee modules: requests to send, received packets, statuses. Pure.

By Digi's XBee user guides, frames 0x10, 0x8A, 0x8B and 0x90. Addresses are numbers of 64 bits.
"""

from struct import Struct
from typing import Final, NamedTuple

TRANSMIT, MODEM_STATUS, TRANSMIT_STATUS, RECEIVE = 0x10, 0x8A, 0x8B, 0x90
RESPONSES: Final = frozenset((0x88, 0x97))
"""Answers to AT commands, of this module and of a remote one."""
BROADCAST: Final = 0xFFFF
"""The address of all modules."""
UNKNOWN: Final = 0xFFFE
"""The short address of a module whose short address is not known."""
RESETS: Final = frozenset((0x00, 0x01))
"""Modem statuses: the module began anew."""
JOINED: Final = frozenset((0x02, 0x06))
"""Modem statuses: the module has a network."""
LEFT: Final = 0x03
"""The modem status of a module that has lost its network."""
TOO_LARGE: Final = 0x74
"""The delivery status of a packet that is longer than the module can send."""
_FAILURES: Final = {
    0x01: "no acknowledgement", 0x02: "the channel is busy", 0x03: "purged", 0x15: "wrong endpoint",
    0x18: "no buffers", 0x21: "no acknowledgement from the network", 0x22: "not joined to a network",
    0x23: "its own address", 0x24: "address not found", 0x25: "no route", 0x26: "no neighbour relays",
    0x31: "a software error", 0x32: "no buffers", 0x34: "no secure session", 0x35: "encryption failed",
    TOO_LARGE: "the packet is too large", 0x75: "not asked for in time",
}  # fmt: skip
_REQUEST: Final = Struct(">BBQHBB")
_RECEIVED: Final = Struct(">BQHB")
_STATUS: Final = Struct(">BBHBBB")
REQUEST_BYTES, RECEIVED_BYTES, STATUS_BYTES = (4 + one.size for one in (_REQUEST, _RECEIVED, _STATUS))
"""The bytes on the line of a frame without its data."""


class Received(NamedTuple):
    """A packet that came from the module with this address."""

    address: int
    data: bytes


class Delivery(NamedTuple):
    """The outcome of the request `frame_id`, by its status: 0 is success."""

    frame_id: int
    status: int


class ModemStatus(NamedTuple):
    """An event of the module itself."""

    status: int


def request(frame_id: int, address: int, data: bytes) -> bytes:
    """Return a request to send data to a module. `frame_id`: 1 to 255, which its status has too."""
    return _REQUEST.pack(TRANSMIT, frame_id, address, UNKNOWN, 0, 0) + data


def parse(contents: bytes) -> "Received | Delivery | ModemStatus | str":
    """Return what the contents of a frame are; a reason of rejects for others. Never raises."""
    kind, size = contents[0], len(contents)
    if kind == RECEIVE and size >= _RECEIVED.size:
        return Received(_RECEIVED.unpack_from(contents)[1], contents[_RECEIVED.size :])
    if kind == TRANSMIT_STATUS and size == _STATUS.size:
        _, frame_id, _, _, status, _ = _STATUS.unpack(contents)
        return Delivery(frame_id, status)
    if kind == MODEM_STATUS and size == 2:
        return ModemStatus(contents[1])
    if kind in (RECEIVE, TRANSMIT_STATUS, MODEM_STATUS):
        return "malformed"
    return "AT response" if kind in RESPONSES else "other frame"


def failure(status: int) -> str:
    """Return what a delivery status says went wrong, for people."""
    known = _FAILURES.get(status)
    return f"{known} (0x{status:02X})" if known else f"delivery status 0x{status:02X}"
