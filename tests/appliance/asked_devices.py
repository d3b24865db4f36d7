"""Devices that are asked, on the wires of two gateways, for the tests of several modules."""

import asyncio

from appliance.parts.bridge import BridgePart
from bus.hub import Link
from tests.appliance.pairs import Pair
from tests.bridges.protocols.modbus.bench import Device
from tests.bridges.protocols.modbus.ptys import PtyLine


class LineDevice:
    """A device at the last end of a line, which also sees who asks."""

    def __init__(self, line: PtyLine, device: Device) -> None:
        self.line, self.device = line, device
        self._end = open(line.path(2), "r+b", buffering=0)  # noqa: SIM115 (until the end of the test)
        asyncio.get_running_loop().add_reader(self._end, self._hear)

    def _hear(self) -> None:
        asked = self._end.read(256)
        for after_s, said in self.device.hear(asked):
            asyncio.get_running_loop().call_later(after_s, self._end.write, said)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._end)
        self._end.close()


class TcpDevice(asyncio.Protocol):
    """A device that takes one connection. `live` are those that it has."""

    live: "list[TcpDevice]" = []  # noqa: RUF012 (of all)
    most = came = 0
    takes = 8  # connections at a time; others are closed at once

    def __init__(self, device: Device) -> None:
        self.device = device

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.live.append(self)
        TcpDevice.came += 1
        if len(self.live) > self.takes:
            return transport.abort()
        TcpDevice.most = max(TcpDevice.most, len(self.live))

    def data_received(self, data: bytes) -> None:
        for after_s, said in self.device.hear(data):
            asyncio.get_running_loop().call_later(after_s, self.transport.write, said)

    def connection_lost(self, exc: Exception | None) -> None:
        self.live.remove(self)


def of_side(pair: Pair, name: str) -> Link:
    part = pair.gateways[name].parts["bridge joint"]
    assert isinstance(part, BridgePart)
    return part.links[-1]
