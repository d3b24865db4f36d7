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
    "IDENTIFIER",
    "KINDS",
    "OWN",
    "REMOTE",
    "STANDARD_MAX",
    "STATE",
    "SWITCH",
    "Answer",
    "CanFrame",
    "Datagram",
    "Items",
    "Request",
]

Items = Literal["frames", "bytes", "datagrams", "registers"]

FD, OWN, SWITCH, STATE = 1, 2, 4, 8
"""Marks of a CAN frame. `FD`: it has the CAN FD format. `OWN`: this socket sent it. `SWITCH`: its data have
the data bit rate (BRS). `STATE`: its sender is error-passive (ESI)."""

CanFrame = tuple[int, bytes | bytearray, int]
"""A CAN frame: identifier with its top bits, data, marks."""

Datagram = bytes
"""One datagram, whole."""


class Request(NamedTuple):
    """A question to a device on I2C: write `write`, if any, to `target`, then read `read_bytes` bytes.

    `token` names the question; its answer has the same.
    """

    token: int
    target: int
    write: bytes
    read_bytes: int


class Answer(NamedTuple):
    """The answer to the request of `token`: the bytes that were read, or why there are none, in `fault`."""

    token: int
    data: bytes
    fault: str = ""
