"""Helpers that run `send`, `recv` and `traffic` on the test's own loop, and find free addresses for them."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from appliance.commandline.cli import parser
from appliance.probe.station import Station
from bridges.media.uart.codec import Decoder
from bus.hub import Hub, Link
from bus.transports.links import make_link
from devices.raw import RawDevice
from tests.bridges.support import PtyPair
from tests.helpers.clocks import skip
from tests.helpers.peers import Ear, SpPeer, until

BUSCOUPLER = [sys.executable, "-c", "import sys; from buscoupler.__main__ import main; sys.exit(main())"]


def parsed(*words: str) -> argparse.Namespace:
    return parser(words[0]).parse_args(words)


async def command(*words: str) -> int:
    """Run a command on this loop, beside the test's other tasks. Return its exit status."""
    work: Any = getattr(import_module(f"appliance.commands.{words[0]}"), words[0])
    return int(await work(parsed(*words)))


async def while_repeating(speak: Any, waiting: Awaitable[int]) -> int:
    """Repeat a message until the listener has heard it: a bus does not report when a listener has joined."""
    task = asyncio.ensure_future(waiting)
    while not task.done():
        speak()
        await asyncio.wait([task], timeout=0.02)
    return task.result()


async def at_a_stuck_peer(path: Path, patch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a command that listens at `path` and sends, with a peer that reads nothing. Once messages wait,
    time passes until it gives up. Return its exit status."""
    made = list[Station]()

    class Noted(Station):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            made.append(self)

    patch.setattr(f"appliance.commands.{words[0]}.Station", Noted)
    sending = asyncio.create_task(command(words[0], f"ipc://{path}", "--listen", *words[1:]))
    await until(path.exists)
    stuck = await asyncio.to_thread(SpPeer, f"ipc://{path}")
    await until(lambda: any(pipe.stats.queued_bytes for pipe in made[0].leaf.pipes))
    while not sending.done():
        skip(patch, 1.0)
        await asyncio.sleep(0.01)
    stuck.close()
    return sending.result()


@asynccontextmanager
async def device() -> AsyncIterator[tuple[Ear, str]]:
    """Open a raw device on a free address, with an `Ear` on its hub."""
    raw = RawDevice(["tcp://127.0.0.1:0"])
    raw.open(asyncio.get_running_loop())
    try:
        yield Ear(raw.hub), raw.links[0].url
    finally:
        raw.close()


@asynccontextmanager
async def opened(link: Link) -> AsyncIterator[tuple[Hub, Ear]]:
    """Open a link with an `Ear` at its end."""
    hub = Hub("far")
    ear = Ear(hub)
    link.open(hub, asyncio.get_running_loop())
    try:
        yield hub, ear
    finally:
        link.close()


def listening(url: str) -> Link:
    return make_link(url, "listen")


def can_word(port: int, node: int, more: str = "") -> str:
    return f"can:239.74.163.2?interface=udp_multicast&port={port}&hop_limit=0&node={node}{more}"


class UartEar:
    """The far end of a serial line: it reads all bytes and decodes the messages."""

    def __init__(self, line: PtyPair) -> None:
        self.messages: list[bytes] = []
        self.rejected: dict[str, int] = {}
        self._line, self._decoder = line, Decoder(self.rejected)

    def _read(self) -> None:
        self.messages += self._decoder.feed(self._line.read())

    async def beside(self, work: Coroutine[Any, Any, int], count: int) -> int:
        """Listen while `work` runs, and then until so many messages have arrived."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._line.master, self._read)
        try:
            status = await work
            await until(lambda: len(self.messages) >= count)
        finally:
            loop.remove_reader(self._line.master)
        return status
