"""Two links in two processes without CAN in the kernel: over UDP multicast, and slcan over TCP."""

import asyncio
import json
import os
import sys
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from subprocess import PIPE
from typing import Any

import pytest

from bridges.media.can.codec import can_id, segment
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, PtyPair, frame, recorder, say
from tests.helpers.links import CAN_GROUP, can_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.slcan import Wire, relay

ECHO = """
import asyncio, json, sys
from tests.helpers.links import can_link
from bus.hub import Hub, Pipe
from bus.ledger import Stats

class Echo(Pipe):
    name, stats = "echo", Stats()
    def send(self, batch):
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        batch.keep()
        asyncio.get_running_loop().call_soon(hub.publish, batch, self)
    def close(self):
        pass

async def main():
    link = can_link(**json.loads(sys.argv[1]))
    loop = asyncio.get_running_loop()
    link.open(hub, loop)
    while link.state != "up":
        await asyncio.sleep(0.005)
    hub.attach(Echo())
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    link.close()
    print(json.dumps([link.stats.received, link.stats.sent, link.stats.balance(), link.stats.rejected]))

hub = Hub()
asyncio.run(main())
"""


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with relay() as made:
        yield made


@contextmanager
def opened(hub: Hub, **settings: Any) -> Any:
    link = can_link(**settings, retry_min_s=0.01)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()


def settings(where: str, node: int, url: str, port: int) -> dict[str, Any]:
    common: dict[str, Any] = {"node": node, "age_ms": 60_000, "queue_bytes": 1 << 20}
    if where == "slcan":
        return common | {"interface": "slcan", "channel": url, "options": {"sleep_after_open": 0}}
    options = {"port": port, "hop_limit": 0}
    return common | {"interface": "udp_multicast", "channel": CAN_GROUP, "options": options}


@asynccontextmanager
async def other_process(arguments: dict[str, Any]) -> AsyncIterator[list[Any]]:
    """Run an echoing link in another process; yield its counts, which are filled when it has ended."""
    command = [sys.executable, "-c", ECHO, json.dumps(arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    figures: list[Any] = []
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield figures
        process.stdin.close()
        figures += json.loads(await process.stdout.readline())
    finally:
        if process.returncode is None and not figures:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("formats", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("where", ["udp_multicast", "slcan"])
async def test_across_processes(wire: Wire, where: str, formats: tuple[bool, bool]) -> None:
    """Send there and back; all send classic frames if formats are mixed."""
    hub, port, mixed = Hub(), free_port(), "fd" if formats[0] == formats[1] else "classic"
    mine = settings(where, 1, wire.url, port) | {"fd": formats[0], "mixed": mixed}
    theirs = settings(where, 2, wire.url, port) | {"fd": formats[1]}
    heard = recorder(hub)
    async with other_process(theirs) as figures:
        with opened(hub, **mine) as link:
            await until(lambda: link.state == "up" and (where != "slcan" or len(wire.sides) == 2))
            for size in SIZES:  # one at a time: UDP has no flow control
                say(hub, heard, frame(size))
                await until(lambda size=size: heard.messages[-1:] == [frame(size)])  # type: ignore[misc]
            rejected = link.stats.rejected
            assert set(rejected) <= ({"echo"} if where == "udp_multicast" else set())
    assert figures[:3] == [len(SIZES), len(SIZES), 0]
    assert set(figures[3]) <= {"echo"}
    if where == "slcan":
        assert (b"\rB10723401" in wire.heard) is (formats == (True, True))


async def test_slcan_carries_a_flood_in_order(wire: Wire) -> None:
    near, far = Hub("near"), Hub("far")
    theirs = recorder(far)
    with opened(near, **settings("slcan", 1, wire.url, 0)) as a:
        with opened(far, **settings("slcan", 2, wire.url, 0)) as b:
            await until(lambda: a.state == b.state == "up" and len(wire.sides) == 2)
            messages = [frame(8 + seed % 300, seed) for seed in range(300)]
            say(near, None, *messages)
            await until(lambda: theirs.messages == messages)


async def test_slcan_survives_rubbish_and_an_adapter_pulled_out(wire: Wire) -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(hub, **settings("slcan", 1, wire.url, 0)) as link:
        await until(lambda: link.state == "up" and len(wire.sides) == 1)
        rubbish = (b"T", b"T0000000", b"Tzz", b"\xff\xfe", b"B10723409X", b"z", b"", bytes(100_000))
        wire.say(b"\r".join(rubbish) + b"\r")
        for data in segment(MESSAGE, 7):
            wire.say(f"T{can_id(0x1234, 9):08X}{len(data)}{data.hex()}\r".encode())
        await until(lambda: heard.messages == [MESSAGE])
        assert link.stats.rejected["unreadable"] >= 4
        wire.unplug()
        await until(lambda: link.losses == 1)
        assert "lost" in link.fault
        await until(lambda: link.state == "up" and len(wire.sides) == 1)
        for data in segment(frame(100), 8):
            wire.say(f"T{can_id(0x1234, 9):08X}{len(data)}{data.hex()}\r".encode())
        await until(lambda: heard.messages == [MESSAGE, frame(100)])


async def test_slcan_is_told_its_data_rate(wire: Wire) -> None:
    mine = settings("slcan", 1, wire.url, 0) | {"fd": True, "bitrate": 500_000, "data_bitrate": 2_000_000}
    with opened(Hub(), **mine) as link:
        await until(lambda: link.state == "up" and wire.heard.endswith(b"C\rS6\rY2\rO\r"))
        assert link.fault == ""


async def test_slcan_without_a_code_for_the_rate_says_so(wire: Wire) -> None:
    mine = settings("slcan", 1, wire.url, 0) | {"fd": True, "bitrate": 500_000, "data_bitrate": 8_000_000}
    with opened(Hub(), **mine) as link:
        await until(lambda: link.state == "waiting")
        assert "data bitrate" in link.fault.lower()


async def test_slcan_on_a_serial_line(line: PtyPair) -> None:
    """A tty, like a USB adapter: unplugged, plugged in again, and clogged when it is closed."""
    hub = Hub()
    heard = recorder(hub)
    said = bytearray()
    mine = settings("slcan", 1, str(line.path), 0)

    def tells(text: bytes) -> bool:
        said.extend(line.read())
        return text in said

    with opened(hub, **mine) as link:
        await until(lambda: link.state == "up" and tells(b"O\r"))
        say(hub, heard, frame(6))
        await until(lambda: tells(b"\rT107234017" + frame(6).hex().upper().encode()))
        line.let_go()
        line.unplug()
        await until(lambda: link.losses == 1)
        line.plug()
        await until(lambda: link.state == "up")
        for data in segment(MESSAGE, 7):
            os.write(line.master, f"T{can_id(0x1234, 9):08X}{len(data)}{data.hex()}\rz\r".encode())
        await until(lambda: heard.messages == [MESSAGE])
        say(hub, heard, *[frame(2048, seed) for seed in range(8)])  # nobody reads these
        await until(lambda: link.stats.queued > 0)
    assert link.stats.balance() == link.stats.queued == 0
