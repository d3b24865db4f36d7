"""yakut, the command line of OpenCyphal, on the CAN bus of a running gateway: a peer, as any Cyphal node.

`make test` installs it in an environment of its own (tests/system/yakut.txt). It reads the standard's data
types from files, which no package ships: tests/system/uavcan.txt has those that it asks for. Nothing of it
is imported here.
"""

import asyncio
import json
import os
import re
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridges.media.can.codec import can_id
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from tests.helpers.programs import ear_on, process
from tests.helpers.slcan import Wire, relay

PYTHON = Path(sys.prefix) / "yakut/bin/python"
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="needs yakut: `make test` installs it")

TYPES = Path(__file__).with_name("uavcan.txt")
RPM, TEMP = Pattern("engine", "rpm"), Pattern("engine", "temp")
REAL = "uavcan.primitive.scalar.Real32"
GATEWAY = """\
name: plant
gateways: {{here: {{address: 127.0.0.1, node: 5}}}}
buses:
  plant: {{on: here, listen: ["tcp://127.0.0.1:{port}"]}}
bridges:
  engine:
    on: here
    join:
      - bus: plant
      - can:
          channel: {url}
          interface: slcan
          fd: {fd}
          options: {{sleep_after_open: 0}}
          subjects:
            engine/rpm: 4100
            engine/temp: {{subject: 4101, priority: high}}
"""
# slcan with CAN FD, which python-can speaks and pycyphal does not name
FD = """
import runpy
from can import ThreadSafeBus
from pycyphal.transport.can.media.pythoncan import _pythoncan as media
media._CONSTRUCTORS["slcan"] = lambda chosen: (
    media.PythonCANBusOptions(),
    ThreadSafeBus(chosen.channel_name, "slcan", bitrate=500_000, sleep_after_open=0),
)
runpy.run_module("yakut", run_name="__main__", alter_sys=True)
"""


class Plant(NamedTuple):
    """A gateway between a bus, on which `ear` is, and the wire of yakut, which speaks CAN FD if `fd`."""

    ear: Ear
    wire: Wire
    fd: bool
    home: Path

    @asynccontextmanager
    async def yakut(self, *words: str, node: int = 9) -> AsyncIterator[Process]:
        """Start yakut as a node on the wire, and wait until it is there."""
        rates = "(500000,1000000),64" if self.fd else "500000,8"
        media = f"can.media.pythoncan.PythonCANMedia('slcan:{self.wire.url}',{rates})"
        sides = len(self.wire.sides)
        command = (PYTHON, "-u", "-c", FD) if self.fd else (PYTHON, "-u", "-m", "yakut")
        started = await asyncio.create_subprocess_exec(
            *command, "--transport", f"CAN({media},{node})", *words,
            stdin=DEVNULL, stdout=PIPE, env=environment(self.home),
        )  # fmt: skip
        try:
            await until(lambda: len(self.wire.sides) > sides or started.returncode is not None)
            yield started
        finally:
            if started.returncode is None:
                started.kill()
            await started.communicate()


def environment(home: Path) -> dict[str, str]:
    types = {"CYPHAL_PATH": str(home / "types"), "PYCYPHAL_PATH": str(home / "compiled")}
    return dict(os.environ) | types | {"HOME": str(home), "COLUMNS": "200", "LINES": "50"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the data types, which the first command compiles."""
    made = tmp_path_factory.mktemp("yakut")
    for name, body in re.findall(r"^\[(.+)\]\n((?:.+\n)+)", TYPES.read_text(), re.MULTILINE):
        file = made / "types/uavcan" / f"{name}.dsdl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body)
    return made


@pytest.fixture(params=[False, True], ids=["classic", "fd"])
async def plant(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> AsyncIterator[Plant]:
    port, fd = free_port(), bool(request.param)
    async with AsyncExitStack() as stack:
        wire = await stack.enter_async_context(relay())
        file = tmp_path / "plant.yaml"
        file.write_text(GATEWAY.format(port=port, url=wire.url, fd=str(fd).lower()))
        await stack.enter_async_context(process("run", str(file)))
        await until(lambda: len(wire.sides) == 1)
        yield Plant(await stack.enter_async_context(ear_on(f"tcp://127.0.0.1:{port}")), wire, fd, home)


async def shown(yakut: Process) -> Any:
    """Return the next message that yakut prints."""
    assert yakut.stdout is not None
    line = await yakut.stdout.readline()
    assert line, "yakut has ended"
    return json.loads(line)


async def test_it_prints_what_a_bus_sends_and_that_our_node_lives(plant: Plant) -> None:
    async with plant.yakut("sub", "+M", f"4101:{REAL}", "7509:uavcan.node.Heartbeat") as yakut:
        beats, found = list[dict[str, Any]](), dict[str, Any]()
        while not found or len({beat["uptime"] for beat in beats}) < 2:  # whole seconds
            plant.ear.say(pack(PUB, TEMP, struct.pack("<f", 21.5)))
            message = await shown(yakut)
            if "4101" in message:
                found = message["4101"]
            elif message["7509"]["_meta_"]["source_node_id"] == 5:
                beats.append(message["7509"])
    assert found["value"] == 21.5
    told = {key: found["_meta_"][key] for key in ("priority", "source_node_id")}
    assert told == {"priority": "high", "source_node_id": 5}
    assert beats[-1]["uptime"] > beats[0]["uptime"]
    assert (beats[0]["health"], beats[0]["mode"]) == ({"value": 0}, {"value": 0})


async def test_what_it_publishes_comes_to_the_bus(plant: Plant) -> None:
    priority = ("exceptional", 0) if plant.fd else ("optional", 7)
    words = ("pub", "-N", "3", "-T", "0.01", "--priority", priority[0], f"4100:{REAL}", "1234.5")
    async with plant.yakut(*words) as yakut:
        assert await yakut.wait() == 0
        await until(lambda: len(plant.ear.heard) == 3)
    data = struct.pack("<f", 1234.5)
    assert plant.ear.heard == [pack(PUB, RPM, data)] * 3
    frame = f"{can_id(4100, 9, priority[1]):08X}5{data.hex().upper()}"
    assert plant.wire.heard.upper().count(frame.encode()) == 3


async def test_its_monitor_shows_our_node(plant: Plant) -> None:
    async with plant.yakut("monitor") as yakut:
        assert yakut.stdout is not None
        seen = ""
        while not re.search(r"^ *5 +oper", seen, re.MULTILINE):
            plant.ear.say(pack(PUB, TEMP, struct.pack("<f", 21.5)))
            seen += re.sub(r"\x1b\[[0-9;]*m", "", (await yakut.stdout.readline()).decode())
