"""Foreign devices, pymodbus' server and libmodbus, read and written over TCP and serial lines."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pymodbus.server import ModbusSerialServer, ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from bus.names import Names
from bus.wire.frame import unpack
from tests.bridges.protocols.modbus.ptys import PtyLine
from tests.bridges.protocols.spoken_support import message
from tests.helpers.appliances import running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port

TABLE = """
name: t
gateways: {{gw: {{}}}}
buses: {{main: {{on: gw}}}}
bridges:
  meter:
    on: gw
    join:
      - bus: main
      - {medium}
        protocol:
          modbus:
            poll_ms: 50
            timeout_ms: 300
            registers:
              - {{register: 0, type: f32, unit: V, pattern: m/voltage}}
              - {{register: 2, type: u64, pattern: m/energy}}
              - {{register: 10, type: i16, scale: 0.1, pattern: m/limit, write: true, min: -10, max: 40}}
              - {{register: 1, kind: coil, pattern: m/relay, write: true}}
              - {{register: 4, kind: input, type: i32, order: CDAB, pattern: m/power}}
              - {{register: 3, kind: discrete, pattern: m/alarm}}
"""
NAMES = Names(["m", "voltage", "energy", "limit", "relay", "power", "alarm", "set", "result"])
WANTED = {
    "m/voltage": b"230.4",
    "m/energy": b"18446744073709551615",
    "m/limit": b"-1.5",
    "m/relay": b"1",
    "m/power": b"-70000",
    "m/alarm": b"1",
}


def device() -> SimDevice:
    """Return pymodbus' simulator with the values of `WANTED`."""
    holding = [
        SimData(0, values=[0x4366, 0x6666], datatype=DataType.REGISTERS),
        SimData(2, values=[0xFFFF] * 4, datatype=DataType.REGISTERS),
        SimData(10, values=[0xFFF1], datatype=DataType.REGISTERS),
    ]
    inputs = [SimData(4, values=[0xEE90, 0xFFFE], datatype=DataType.REGISTERS)]
    coils = [SimData(0, values=[False, True, False, False], datatype=DataType.BITS)]
    discrete = [SimData(0, values=[False, False, False, True], datatype=DataType.BITS)]
    return SimDevice(1, (coils, discrete, holding, inputs))


class Gateway:
    """A running gateway: what came on its bus last, by pattern, and its side with the devices."""

    def __init__(self, bus: BusPart, bridge: BridgePart) -> None:
        self.ear = Ear(bus.hub)
        self.link = bridge.links[-1]

    @property
    def last(self) -> dict[str, bytes]:
        frames = [unpack(one) for one in self.ear.heard]
        return {NAMES.show(one.tokens): bytes(one.data) for one in frames}


@asynccontextmanager
async def gateway(medium: str) -> AsyncIterator[Gateway]:
    async with running(TABLE.format(medium=medium)) as appliance:
        bus, bridge = appliance.parts["bus main"], appliance.parts["bridge meter"]
        assert isinstance(bus, BusPart)
        assert isinstance(bridge, BridgePart)
        yield Gateway(bus, bridge)


async def check(medium: str) -> None:
    """Read all values, write two of them, be refused once, and see that nothing was counted as wrong."""
    async with gateway(medium) as one:
        await until(lambda: one.last == WANTED)
        one.ear.say(message("m/limit/set", b"21.4"), message("m/relay/set", b"0"))
        done = {"m/limit": b"21.4", "m/relay": b"0", "m/limit/result": b"done", "m/relay/result": b"done"}
        await until(lambda: one.last == WANTED | done)
        one.ear.say(message("m/limit/set", b"41"))
        await until(lambda: one.last["m/limit/result"] == b"refused: 41 is above 40")
        assert one.link.condition == ""
        assert one.ear.stats.balance() == 0


async def test_pymodbus_over_tcp() -> None:
    port = free_port()
    server = ModbusTcpServer(device(), address=("127.0.0.1", port))
    await server.serve_forever(background=True)
    await check(f"tcp: {{host: 127.0.0.1, port: {port}}}")
    await server.shutdown()  # type: ignore[no-untyped-call]


async def test_pymodbus_on_a_serial_line() -> None:
    line = PtyLine()
    server = ModbusSerialServer(device(), port=line.path(1), baudrate=115200)
    await server.serve_forever(background=True)
    await check(f"uart: {{port: {line.path(0)}, baud: 115200}}")
    await server.shutdown()  # type: ignore[no-untyped-call]
    line.close()


SERVER = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <modbus.h>

int main(int argc, char **argv) {
    uint8_t query[MODBUS_TCP_MAX_ADU_LENGTH];
    int tcp = strcmp(argv[1], "tcp") == 0, sock = -1;
    modbus_t *line = tcp ? modbus_new_tcp("127.0.0.1", atoi(argv[2]))
                         : modbus_new_rtu(argv[2], 115200, 'N', 8, 1);
    modbus_mapping_t *map = modbus_mapping_new(16, 16, 16, 16);
    uint16_t registers[] = {0x4366, 0x6666, 0xffff, 0xffff, 0xffff, 0xffff};
    memcpy(map->tab_registers, registers, sizeof registers);
    map->tab_registers[10] = 0xfff1;
    map->tab_bits[1] = 1;
    map->tab_input_bits[3] = 1;
    map->tab_input_registers[4] = 0xee90;
    map->tab_input_registers[5] = 0xfffe;
    modbus_set_slave(line, 1);
    if (tcp) {
        sock = modbus_tcp_listen(line, 1);
        puts("ready");
        fflush(stdout);
        modbus_tcp_accept(line, &sock);
    } else {
        if (modbus_connect(line)) return 1;
        puts("ready");
        fflush(stdout);
    }
    for (;;) {
        int size = modbus_receive(line, query);
        if (size > 0) modbus_reply(line, query, size, map);
        else if (size < 0 && (tcp || errno == EIO)) return 0;
    }
}
"""


@pytest.fixture(scope="module")
def libmodbus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile a device on libmodbus, and return its path."""
    if shutil.which("gcc") is None:
        pytest.skip("Debian package gcc")
    if not Path("/usr/include/modbus/modbus.h").exists():
        pytest.skip("Debian package libmodbus-dev")
    folder = tmp_path_factory.mktemp("libmodbus")
    (folder / "device.c").write_text("#include <stdlib.h>\n" + SERVER)
    command = ["gcc", "-I/usr/include/modbus", "device.c", "-o", "device", "-lmodbus"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return str(folder / "device")


@asynccontextmanager
async def served(program: str, kind: str, at: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(program, kind, at, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    yield
    if process.returncode is None:
        process.terminate()
    await process.wait()


async def test_libmodbus_over_tcp(libmodbus: str) -> None:
    port = free_port()
    async with served(libmodbus, "tcp", str(port)):
        await check(f"tcp: {{host: 127.0.0.1, port: {port}}}")


async def test_libmodbus_on_a_serial_line(libmodbus: str) -> None:
    line = PtyLine()
    async with served(libmodbus, "rtu", line.path(1)):
        await check(f"uart: {{port: {line.path(0)}, baud: 115200}}")
    line.close()
