"""topologies/meter.yaml, with devices of pymodbus and a chip in memory: values with units, and commands."""

import re

import pytest
from pymodbus.server import ModbusSerialServer, ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from appliance.parts.bus import BusPart
from bridges.media.i2c import spoken
from bridges.media.i2c.adapter import Adapter
from bridges.media.i2c.memory import MemoryAdapter
from bus.names import Names
from bus.wire.frame import unpack
from tests.bridges.protocols.modbus.ptys import PtyLine
from tests.bridges.protocols.spoken_support import message
from tests.helpers import ROOT
from tests.helpers.appliances import running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port


def words(address: int, *values: int) -> SimData:
    return SimData(address, values=list(values), datatype=DataType.REGISTERS)


def meter() -> SimDevice:
    """Return the meter: the low word first."""
    serial = [int.from_bytes(b"SN-0042\0"[n : n + 2], "big") for n in range(0, 8, 2)]
    rows = [
        words(0, 0x6666, 0x4366, 0, 0x44FA, 1000, 0, 0, 0),
        words(100, *serial, 0, 0, 0, 0),
        words(200, 160),
    ]
    bits = [SimData(0, values=[False] * 8, datatype=DataType.BITS)]
    return SimDevice(1, (bits, bits, rows, [words(0, 0)]))


def pump() -> SimDevice:
    bits = [SimData(0, values=[True] + [False] * 7, datatype=DataType.BITS)]
    return SimDevice(1, (bits, bits, [words(10, 210)], [words(0, 0xFFCE, 0, 0, 0, 0x2A05, 1)]))


def chip(_: int) -> Adapter:
    memory = MemoryAdapter([0x48], blocks=True)
    memory.targets[0x48].memory[0:2] = (0x15, 0x80)
    return memory


async def test_its_devices_become_values_and_take_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "open_adapter", chip)
    line, port = PtyLine(), free_port()
    serial = ModbusSerialServer(meter(), port=line.path(1), baudrate=9600)
    tcp = ModbusTcpServer(pump(), address=("127.0.0.1", port))
    for server in (serial, tcp):
        await server.serve_forever(background=True)
    text = (ROOT / "topologies" / "meter.yaml").read_text().replace("/dev/ttyUSB0", line.path(0))
    text = text.replace("port: 5020", f"port: {port}").replace("7101", str(free_port()))
    text = text.replace("poll_ms: 200", "poll_ms: 50").replace("timeout_ms: 1000", "timeout_ms: 300")
    names = Names([*re.findall(r"[a-z]+", text), "result"])
    async with running(re.sub(r", parity: E", "", text)) as appliance:
        bus = appliance.parts["bus main"]
        assert isinstance(bus, BusPart)
        ear = Ear(bus.hub)

        def last() -> dict[str, bytes]:
            frames = [unpack(one) for one in ear.heard]
            return {names.show(one.tokens): bytes(one.data).partition(b',"t"')[0] for one in frames}

        wanted = {
            "meter/voltage": b"230.4",
            "meter/power": b"2000",
            "meter/energy": b"1",
            "meter/serial": b"SN-0042",
            "meter/limit": b"16",
            "pump/outside": b'{"v":-5,"unit":"\xc2\xb0C"',
            "pump/fan": b'{"v":42,"unit":"%"',
            "pump/state": b'{"v":"heating","unit":""',
            "pump/enabled": b'{"v":true,"unit":""',
            "pump/setpoint": b'{"v":21,"unit":"\xc2\xb0C"',
            "room/temperature": b"21.5",
        }
        await until(lambda: last() == wanted)
        ear.say(message("pump/setpoint/set", b"21.5"), message("meter/limit/set", b"40"))
        await until(lambda: last().get("pump/setpoint/result") == b"done")
        await until(lambda: last().get("meter/limit/result") == b"refused: 40 is above 32")
    for server in (serial, tcp):
        await server.shutdown()  # type: ignore[no-untyped-call]
    line.close()
