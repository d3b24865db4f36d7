"""Programs of ours as real processes, with a topology of two buses, and the ears of tests on their buses."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bus.hub import Hub
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers.peers import Ear, until

COMMAND = [sys.executable, "-m", "buscoupler"]
FRAME = pack(PUB, Pattern("a", "b"), b"1")
TWO_BUSES = """\
name: two
gateways: {{here: {{address: 127.0.0.1}}}}
buses:
  one: {{on: here, listen: ["tcp://127.0.0.1:{0}"]}}
  two: {{on: here, listen: ["tcp://127.0.0.1:{1}"]}}
bridges:
  joint: {{on: here, join: [{{bus: one}}, {{bus: two}}]}}
"""


@asynccontextmanager
async def process(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a command, and wait for its first line of output."""
    started = await asyncio.create_subprocess_exec(
        *COMMAND, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert started.stdout is not None
    assert await started.stdout.readline()
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


@asynccontextmanager
async def ear_on(url: str) -> AsyncIterator[Ear]:
    hub, link = Hub(), make_link(url, "dial")
    ear = Ear(hub)
    link.open(hub, asyncio.get_running_loop())
    try:
        await until(lambda: len(hub.pipes) == 2)
        yield ear
    finally:
        link.close()


async def hears(speaker: Ear, listener: Ear, frame: bytes = FRAME) -> None:
    await until(lambda: (speaker.say(frame), frame in listener.heard)[1])  # type: ignore[func-returns-value]


def finished(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True)
