"""The items that media carry and protocols read and write. Pure.

A medium says which items it carries, and a protocol which it reads; neither knows the other. The items are
CAN frames (`frames`), runs of bytes as they came (`bytes`), datagrams (`datagrams`), or the requests to a
device that is asked for its registers, and its answers (`registers`).
"""

from typing import Literal, NamedTuple

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, KINDS, REMOTE, STANDARD_MAX

__all__ = [
    "ERROR",
    "EXTENDED",
    "FD",
    "FD_ON_CLASSIC",
    "IDENTIFIER",
    "KINDS",
    "LENGTH",
    "OWN",
    "REMOTE",
    "STANDARD_MAX",
    "STATE",
    "SWITCH",
    "Answer",
    "CanFrame",
    "Datagram",
    "Exchange",
    "Items",
    "Request",
]

Items = Literal["frames", "bytes", "datagrams", "registers"]

FD, OWN, SWITCH, STATE = 1, 2, 4, 8
"""Marks of a CAN frame. `FD`: it has the CAN FD format. `OWN`: this socket sent it. `SWITCH`: its data have
the data bit rate (BRS). `STATE`: its sender is error-passive (ESI)."""

FD_ON_CLASSIC = "fd on classic"
"""Reason: a frame of CAN FD, at a side that is classic."""

LENGTH = 0xF0
"""Mark bits of a classic frame of 8 bytes: its length code times 16, where that is above 8; else 0."""

CanFrame = tuple[int, bytes | bytearray, int]
"""A CAN frame: identifier with its top bits, data, marks."""

Datagram = bytes
"""One datagram, whole."""


class Exchange(NamedTuple):
    """A request on a serial line and its answer: their bytes together, and the silence that ends each.

    The silence is `pause_bytes` characters long, and at least `pause_s`.
    """

    size: int
    pause_s: float
    pause_bytes: float

    def seconds(self, byte_s: float) -> float:
        """Return the time of both, without that of the device, where a byte takes `byte_s`."""
        return self.size * byte_s + 2 * max(self.pause_s, self.pause_bytes * byte_s)


class Request(NamedTuple):
    """A request to a chip on I2C: from `register` on write `write`, if any, else read `read_bytes` bytes.

    `token` names the request; its answer has the same. `is_word`: the two bytes are an SMBus word.
    """

    token: int
    target: int
    register: int
    read_bytes: int = 0
    write: bytes = b""
    is_word: bool = False

    def on_wire(self) -> bytes:
        """Return what is written to the chip: its address, the register, and the data of a write."""
        return bytes((self.target, self.register)) + self.write


class Answer(NamedTuple):
    """The answer to the request of `token`: the bytes that were read, or why there are none, in `fault`."""

    token: int
    data: bytes
    fault: str = ""
