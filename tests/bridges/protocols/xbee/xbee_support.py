"""Helpers of the tests of XBee: the packets of digi-xbee, and simulated modules that are made of them."""

import os
from asyncio import get_running_loop
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bridges.support import PtyPair

pytest.importorskip("digi.xbee", reason="digi-xbee is missing: pip install -e .[dev]")

from digi.xbee.models.address import XBee16BitAddress, XBee64BitAddress
from digi.xbee.models.mode import OperatingMode
from digi.xbee.models.status import ModemStatus, TransmitStatus
from digi.xbee.packets.common import (
    ModemStatusPacket,
    ReceivePacket,
    TransmitPacket,
    TransmitStatusPacket,
)
from digi.xbee.packets.factory import build_frame

__all__ = [
    "HALL",
    "KITCHEN",
    "SHORT",
    "Air",
    "ModemStatus",
    "Module",
    "TransmitPacket",
    "TransmitStatus",
    "event",
    "long_address",
    "output",
    "parsed",
    "received",
    "status",
]

SHORT = XBee16BitAddress(bytearray(b"\xff\xfe"))
KITCHEN, HALL = 0x0013A20041AE7D2C, 0x0013A2007D117E13
"""Two addresses; the second needs escapes."""


def long_address(address: int) -> Any:
    """Return an address as digi-xbee has it."""
    return XBee64BitAddress(bytearray(address.to_bytes(8, "big")))


def output(packet: Any, escaped: bool) -> bytes:
    """Return a packet of digi-xbee as it is on the line."""
    return bytes(packet.output(escaped=escaped))


def received(address: int, data: bytes, escaped: bool = False) -> bytes:
    """Return a packet that came from a module, as a module gives it to its host."""
    return output(ReceivePacket(long_address(address), SHORT, 1, bytearray(data)), escaped)


def status(frame_id: int, outcome: Any = TransmitStatus.SUCCESS, escaped: bool = False) -> bytes:
    """Return a transmit status."""
    return output(TransmitStatusPacket(frame_id, SHORT, 0, outcome), escaped)


def event(outcome: Any, escaped: bool = False) -> bytes:
    """Return a modem status."""
    return output(ModemStatusPacket(outcome), escaped)


def parsed(frame: bytes, escaped: bool) -> Any:
    """Return the packet in a frame, as digi-xbee reads it. Raises its exceptions."""
    plain = bytearray(frame[:1]) + (unescaped(frame[1:]) if escaped else bytearray(frame[1:]))
    return build_frame(plain, OperatingMode.API_MODE)


def frames_in(buffer: bytearray, escaped: bool) -> Iterator[bytes]:
    """Yield the frames that a buffer begins with, and take them out. For hosts that write no noise."""
    while buffer:
        plain = buffer[:1] + unescaped(buffer[1:]) if escaped else buffer
        if len(plain) < 4 or len(plain) < (size := int.from_bytes(plain[1:3], "big") + 4):
            return
        end = size
        while escaped and len(unescaped(buffer[1:end])) < size - 1:
            end += 1
        yield bytes(buffer[:end])
        del buffer[:end]


def unescaped(data: "bytes | bytearray") -> bytearray:
    """Return data without escapes."""
    return TransmitPacket.unescape_data(bytearray(data))  # type: ignore[no-any-return]


class Air:
    """Modules within reach of each other, by address. `lost` are addresses whose module is switched off."""

    def __init__(self) -> None:
        self.modules: dict[int, Module] = {}
        self.lost: set[int] = set()

    def send(self, sender: "Module", packet: Any) -> Any:
        """Give a packet to whom it is for. Return its transmit status."""
        target = int.from_bytes(packet.x64bit_dest_addr.address, "big")
        found = [
            one for one in self.modules.values() if one is not sender and target in (one.address, 0xFFFF)
        ]
        heard = [one for one in found if one.address not in self.lost]
        for one in heard:
            one.say(received(sender.address, bytes(packet.rf_data), one.escaped))
        return TransmitStatus.SUCCESS if heard or target == 0xFFFF else TransmitStatus.ADDRESS_NOT_FOUND


class Module:
    """An XBee module at the far end of a pty: it sends what its host asks for, and tells what became of it.

    `mute`: it tells nothing. `requests` are the packets that its host gave it.
    """

    def __init__(self, air: Air, address: int, line: PtyPair, escaped: bool = False) -> None:
        self.air, self.address, self.escaped, self.mute = air, address, escaped, False
        self.requests: list[Any] = []
        self._line, self._buffer = line, bytearray()
        air.modules[address] = self

    def switch_on(self) -> None:
        get_running_loop().add_reader(self._line.master, self._on_readable)

    def switch_off(self) -> None:
        get_running_loop().remove_reader(self._line.master)

    def say(self, frame: bytes) -> None:
        assert os.write(self._line.master, frame) == len(frame)

    def reset(self) -> None:
        self.say(event(ModemStatus.HARDWARE_RESET, self.escaped))

    def _on_readable(self) -> None:
        self._buffer += self._line.read()
        for frame in frames_in(self._buffer, self.escaped):
            packet = parsed(frame, self.escaped)
            self.requests.append(packet)
            if not self.mute:
                self.say(status(packet.frame_id, self.air.send(self, packet), self.escaped))
