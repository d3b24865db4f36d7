"""Messages that are no frames, between foreign peers on buses of two gateways that a trunk joins."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pynng
import pytest

from appliance.compose import Appliance
from appliance.parts.bus import BusPart
from bus.events import PATTERN
from bus.transports.options import MESSAGE_BYTES
from bus.wire.frame import PUB, pack
from devices.raw import RawDevice
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear, SpPeer, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TWO = """\
name: two
gateways: {{gw-a: {{address: 127.0.0.1}}, gw-b: {{address: 127.0.0.1}}}}
buses:
  hall:
    on: gw-a
    message_bytes: {limit}
    queue_bytes: {limit}
    listen: ["tcp://127.0.0.1:{0}", {{url: "{1}", trunk: true}}]
  yard:
    on: gw-b
    message_bytes: {limit}
    queue_bytes: {limit}
    listen: "tcp://127.0.0.1:{2}"
    dial: {{url: "{1}", trunk: true}}
"""
LARGE = os.urandom(MESSAGE_BYTES)  # exactly as long as a bus takes by default
FRAME = pack(PUB, (7, 1), b"21.5")
TALK = {"nanocat": ["nanocat", "--bus", "--connect"], "nngcat": ["nngcat", "--bus0", "--dial"]}
needs_cats = pytest.mark.skipif(
    not (shutil.which("nanocat") and shutil.which("nngcat")), reason="Debian: nanomsg-utils, nng-utils"
)


def bus_of(appliance: Appliance) -> BusPart:
    (part,) = appliance.parts.values()
    assert isinstance(part, BusPart)
    return part


@asynccontextmanager
async def gateways(trunk: str = "", limit: int = MESSAGE_BYTES) -> AsyncIterator[tuple[BusPart, BusPart]]:
    """Run two gateways whose buses are joined by a trunk at the URL `trunk`."""
    url = trunk or f"tcp://127.0.0.1:{free_port()}"
    topology = loads(TWO.format(free_port(), url, free_port(), limit=limit))
    appliances = [appliance_of(topology, gateway) for gateway in topology.gateways]
    one, other = (bus_of(appliance) for appliance in appliances)
    for appliance in appliances:
        appliance.open(asyncio.get_running_loop())
    try:
        await until(lambda: trunk_pipes(one) == trunk_pipes(other) == 1)
        yield one, other
        assert all(pipe.stats.balance() == 0 for part in (one, other) for pipe in part.hub.pipes)
    finally:
        for appliance in appliances:
            appliance.close()


def trunk_pipes(part: BusPart) -> int:
    return len(part.hub_for(trunk=True).pipes)


def door(part: BusPart) -> str:
    return part.links[0].url


@contextmanager
def cat(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def heard(process: subprocess.Popen[bytes], message: bytes) -> bool:
    """Return whether the next bytes that a program prints are those of `message`."""
    assert process.stdout is not None
    return await asyncio.to_thread(process.stdout.read, len(message)) == message


async def hears(peer: pynng.Bus0, message: bytes) -> None:
    """Wait until a peer has heard a message, behind what others may still say."""
    while await peer.arecv() != message:
        pass


@needs_cats
async def test_foreign_programs_hear_each_other_over_two_gateways(tmp_path: Path) -> None:
    async with gateways() as (one, other):
        with ExitStack() as stack:
            near, far = [
                stack.enter_context(await asyncio.to_thread(pynng.Bus0, dial=door(part), recv_timeout=20_000))
                for part in (one, other)
            ]
            cats = [stack.enter_context(cat([*TALK[program], door(other), "--raw"])) for program in TALK]
            await until(lambda: len(other.plain.pipes) == 1 + len(cats))
            for message in (b"hello", LARGE, FRAME):
                await near.asend(message)
                assert await far.arecv() == message
                assert [await heard(process, message) for process in cats] == [True, True]
            for program, words in TALK.items():
                said, file = os.urandom(MESSAGE_BYTES), tmp_path / program
                file.write_bytes(said)
                talk = [*words, door(other), "--interval", "1", "--file", str(file)]
                with cat(talk):  # which nobody hears until it has joined
                    for peer in (near, far):
                        await hears(peer, said)


@pytest.mark.parametrize("trunk", ["tcp", "ipc", "ws"])
async def test_the_longest_message_crosses_a_trunk_of_any_transport(trunk: str, tmp_path: Path) -> None:
    """Not one byte more: such a peer is closed at its own bus."""
    limit = 70_000
    urls = {
        "tcp": "",
        "ipc": f"ipc://{tmp_path}/trunk",
        "ws": f"ws://127.0.0.1:{free_port()}/trunk",
    }
    async with gateways(urls[trunk], limit) as (one, other):
        near, far = Ear(one.plain), Ear(other.plain)
        near.say(bytes(limit), b"", FRAME)
        await until(lambda: len(far.heard) == 3)
        assert far.heard == [bytes(limit), b"", FRAME]
        peer = await asyncio.to_thread(SpPeer, door(one))
        await asyncio.to_thread(peer.greeting)
        peer.send(bytes(limit + 1))
        assert await asyncio.to_thread(peer.at_end)
        peer.close()
        assert trunk_pipes(one) == trunk_pipes(other) == 1


async def test_two_plain_peers_of_a_bus_with_a_trunk_hear_each_other() -> None:
    async with gateways() as (one, _):
        ears = Ear(one.plain), Ear(one.plain)
        ears[0].say(b"hello", FRAME, LARGE)
        assert ears[1].heard == [b"hello", FRAME, LARGE]


EVENTS = """\
name: events
gateways: {{gw: {{address: 127.0.0.1}}}}
events: [one]
buses:
  one: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}
  two: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}
bridges:
  joint: {{on: gw, join: [{{bus: one}}, {{bus: two}}]}}
"""


async def test_a_bridge_that_keeps_events_back_carries_any_message() -> None:
    appliance = appliance_of(loads(EVENTS.format(free_port(), free_port())), "gw")
    appliance.open(asyncio.get_running_loop())
    one, two = (part for part in appliance.parts.values() if isinstance(part, BusPart))
    near, far = Ear(one.hub), Ear(two.hub)
    near.say(b"hello", pack(PUB, PATTERN), FRAME)
    assert far.heard == [b"hello", FRAME]
    appliance.close()


MEETING = """\
name: meeting
gateways: {{gw-a: {{address: 127.0.0.1}}, gw-b: {{address: 127.0.0.1}}}}
buses:
  hall: {{on: gw-a, listen: "tcp://127.0.0.1:{0}", dial: {{url: "{2}", trunk: true}}}}
  yard: {{on: gw-b, listen: "tcp://127.0.0.1:{1}", dial: {{url: "{2}", trunk: true}}}}
"""


async def test_the_longest_message_crosses_a_trunk_that_a_raw_device_carries() -> None:
    device, loop = RawDevice(["tcp://127.0.0.1:0"]), asyncio.get_running_loop()
    device.open(loop)
    topology = loads(MEETING.format(free_port(), free_port(), device.links[0].url))
    appliances = [appliance_of(topology, gateway) for gateway in topology.gateways]
    for appliance in appliances:
        appliance.open(loop)
    await until(lambda: len(device.hub.pipes) == 2)
    near, far = (Ear(bus_of(appliance).plain) for appliance in appliances)
    near.say(LARGE, b"hello")
    await until(lambda: len(far.heard) == 2)
    assert far.heard == [LARGE, b"hello"]
    assert device.links[0].losses == 0
    for appliance in appliances:
        appliance.close()
    device.close()
