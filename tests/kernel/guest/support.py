"""Interfaces, foreign programs and second processes for the tests in the virtual machine."""

import asyncio
import multiprocessing
import os
import runpy
import subprocess
import sys
from asyncio import get_running_loop
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.i2c.adapter import ByteAdapter, KernelAdapter
from bridges.simulate.wire import divide
from bus.hub import Hub
from tests.helpers.peers import until

PATIENCE_S = 40.0
"""Ten times the usual limit, because the machine is emulated."""
_forks = multiprocessing.get_context("fork")


def ip(*words: str) -> None:
    """Run one command of iproute2. Fail the test if it fails."""
    subprocess.run(["ip", *words], check=True, timeout=PATIENCE_S)


def ips(*lines: str) -> None:
    """Run commands of iproute2 in one process of it. Fail the test if one fails."""
    subprocess.run(["ip", "-batch", "-"], check=True, timeout=PATIENCE_S, input="\n".join(lines).encode())


def attach_pair(queue_frames: int = 10, restart_ms: int = 100) -> None:
    """Set up both SJA1000 controllers at 500 kbit/s, with at most `queue_frames` waiting in the kernel."""
    for name in ("can0", "can1"):
        ips(
            f"link set {name} down",
            f"link set {name} type can bitrate 500000 restart-ms {restart_ms}",
            f"link set {name} txqueuelen {queue_frames}",
            f"link set {name} up",
        )


def second_bus() -> None:
    """Make vcan1, if it is not there."""
    if not Path("/sys/class/net/vcan1").exists():
        ip("link", "add", "vcan1", "type", "vcan")
        ip("link", "set", "vcan1", "mtu", "72", "up")


@contextmanager
def can_link(hub: Hub, channel: str, node: int, **options: Any) -> Iterator[CanLink]:
    """Return a link on SocketCAN that retries soon, with limits for a slow emulated machine."""
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
    """Run a process, and end it with the block."""
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
async def python(module: str, *arguments: str) -> AsyncIterator[BaseProcess]:
    """Run `tests.kernel.guest.MODULE` in a process; yield that once it says that it is ready.

    It is a fork of this process, which has imported what it needs: in emulation, imports take seconds.
    """
    inside, outside = _forks.Pipe(duplex=False)
    process = _forks.Process(target=_main, args=(module, arguments, outside))
    process.start()
    outside.close()
    try:
        assert await get_running_loop().run_in_executor(None, os.read, inside.fileno(), 6) == b"ready\n"
        yield process
    finally:
        process.kill()
        process.join(PATIENCE_S)
        inside.close()


def _main(module: str, arguments: tuple[str, ...], output: Connection) -> None:
    """Run a module as a program, with its standard output in a pipe."""
    os.dup2(output.fileno(), 1)
    output.close()
    sys.stdout = sys.__stdout__  # not what pytest captures
    sys.argv[1:] = arguments
    runpy.run_module(f"tests.kernel.guest.{module}", run_name="__main__")


def open_blocks(number: int) -> KernelAdapter:
    from smbus2 import SMBus

    return KernelAdapter(SMBus(number), number)


def open_bytes(number: int) -> KernelAdapter:
    """Open an adapter without block transfers: the emulated i801 damages the last byte of blocks it reads."""
    from smbus2 import SMBus

    return ByteAdapter(SMBus(number), number)


def listeners(channel: str) -> int:
    """Return the number of sockets that hear all frames of `channel`."""
    return Path("/proc/net/can/rcvlist_all").read_text().count(f" {channel} ")


@asynccontextmanager
async def candump(channel: str) -> AsyncIterator[asyncio.StreamReader]:
    """Run candump in its log format; yield once it listens.

    Its socket has room for all frames of a test: a slow machine runs it late, and the kernel drops the rest.
    """
    before = listeners(channel)
    async with program("candump", "-L", "-r", str(4 << 20), channel) as process:
        await until(lambda: listeners(channel) > before, PATIENCE_S)
        assert process.stdout is not None
        yield process.stdout


async def dumped(lines: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return identifier and data of the next frame that candump saw."""
    words = (await asyncio.wait_for(lines.readline(), PATIENCE_S)).decode().split()
    identifier, _, data = words[2].partition("#")
    if data.startswith("#"):  # FD frames have one digit of flags
        data = data[2:]
    return int(identifier, 16), bytes.fromhex(data)


async def cansend(channel: str, frame: str) -> None:
    async with program("cansend", channel, frame) as process:
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
