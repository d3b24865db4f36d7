"""The devices and servers that a plant needs beside its gateways: an engine, meters, an MQTT broker."""

import asyncio
import os
import re
import sys
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from benchmarks.audited.plant import Plant
from bridges.media.tcp.medium import Tcp
from tests.bridges.protocols.modbus.bench import Device
from tests.helpers import ROOT

_REQUEST_BYTES: Final = 8  # of Modbus RTU that reads
_TCP_BYTES: Final = 12


async def started(plant: Plant, stack: AsyncExitStack) -> None:
    """Start what a plant needs, until the stack is left."""
    if plant.name == "engine":
        await _program(stack, sys.executable, str(ROOT / "examples/engine/engine.py"))
    elif plant.name == "mqtt":
        port = re.findall(r"mqtt://127\.0\.0\.1:(\d+)", plant.file.read_text())[0]
        await _program(stack, "mosquitto", "-p", port)
    elif plant.name == "meter":
        _meter(plant.directory / "line-b", stack)
        [pump] = [
            side.medium for side in plant.topology.bridges["pump"].at("gw") if isinstance(side.medium, Tcp)
        ]
        server = await asyncio.start_server(_pump, "127.0.0.1", pump.port)
        stack.callback(server.close)


async def _program(stack: AsyncExitStack, *words: str) -> None:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*words, stdout=quiet, stderr=quiet)
    stack.push_async_callback(process.wait)
    stack.callback(process.kill)


def _meter(path: Path, stack: AsyncExitStack) -> None:
    """Answer as a device of Modbus RTU at an end of the line."""
    line, device = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK), Device()

    def hear() -> None:
        asked = os.read(line, 4096)
        if len(asked) == _REQUEST_BYTES:
            device.holding[0] += 1
            for _, said in device.hear(asked):
                os.write(line, said)

    asyncio.get_running_loop().add_reader(line, hear)
    stack.callback(os.close, line)
    stack.callback(asyncio.get_running_loop().remove_reader, line)


async def _pump(reader: StreamReader, writer: StreamWriter) -> None:
    """Answer as a device of Modbus TCP."""
    device = Device(tcp=True)
    with suppress(IncompleteReadError, ConnectionError):
        while True:
            for _, said in device.hear(await reader.readexactly(_TCP_BYTES)):
                writer.write(said)
    writer.close()
