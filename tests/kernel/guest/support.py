"""Interfaces, foreign programs and second processes of the tests that run in the virtual machine."""

import asyncio
import subprocess
import sys
from asyncio import get_running_loop
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.i2c.adapter import ByteAdapter, KernelAdapter
from bridges.simulate.wire import divide
from bus.hub import Hub
from tests.bridges.support import until

PATIENCE_S = 40.0
"""The machine is emulated: everything takes ten times as long."""


def ip(*words: str) -> None:
    """One command of iproute2; fails the test if it fails."""
    subprocess.run(["ip", *words], check=True, timeout=PATIENCE_S)


def attach_pair(queue_frames: int = 10, restart_ms: int = 100) -> None:
    """Both SJA1000 controllers up, at 500 kbit/s; `queue_frames` wait in the kernel at most."""
    for name in ("can0", "can1"):
        ip("link", "set", name, "down")
        ip("link", "set", name, "type", "can", "bitrate", "500000", "restart-ms", str(restart_ms))
        ip("link", "set", name, "txqueuelen", str(queue_frames))
        ip("link", "set", name, "up")


@contextmanager
def can_link(hub: Hub, channel: str, node: int, **options: Any) -> Iterator[CanLink]:
    """A link on SocketCAN that retries soon and lets emulated machines take their time."""
    options = {"queue_bytes": 1 << 20, "age_ms": 60_000, "retry_min_s": 0.01, "retry_max_s": 0.1} | options
    fields, rest = divide(Can, options)
    link = CanLink(Can(channel=channel, node=node, **fields), **rest)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


@asynccontextmanager
async def program(*command: str, **options: Any) -> AsyncIterator[Process]:
    """A process that ends with the block."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def python(module: str, *arguments: str) -> AsyncIterator[Process]:
    """`tests.kernel.guest.MODULE` in a process of its own, once it has said that it is ready."""
    async with program(sys.executable, "-m", f"tests.kernel.guest.{module}", *arguments) as process:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process


def open_blocks(number: int) -> KernelAdapter:
    from smbus2 import SMBus

    return KernelAdapter(SMBus(number), number)


def open_bytes(number: int) -> KernelAdapter:
    """As for an adapter that knows no blocks: the emulated i801 spoils the last byte of those it reads."""
    from smbus2 import SMBus

    return ByteAdapter(SMBus(number), number)


def listeners(channel: str) -> int:
    """How many sockets hear all of `channel`."""
    return Path("/proc/net/can/rcvlist_all").read_text().count(f" {channel} ")


@asynccontextmanager
async def candump(channel: str) -> AsyncIterator[asyncio.StreamReader]:
    """candump in its log format, once it listens."""
    before = listeners(channel)
    async with program("candump", "-L", channel) as process:
        await until(lambda: listeners(channel) > before, PATIENCE_S)
        assert process.stdout is not None
        yield process.stdout


async def dumped(lines: asyncio.StreamReader) -> tuple[int, bytes]:
    """Identifier and data of the next frame that candump saw."""
    words = (await asyncio.wait_for(lines.readline(), PATIENCE_S)).decode().split()
    identifier, _, data = words[2].partition("#")
    if data.startswith("#"):  # FD: one digit of flags
        data = data[2:]
    return int(identifier, 16), bytes.fromhex(data)


async def cansend(channel: str, frame: str) -> None:
    async with program("cansend", channel, frame) as process:
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
