"""The receiver of gpsfake at a side with `nmea`, and gpsd, which reads what another side sends."""

import asyncio
import contextlib
import json
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from bridges.protocols.nmea.sentences import parse
from bus.names import Names
from bus.wire.frame import unpack
from tests.bridges.protocols.spoken_support import message
from tests.helpers.appliances import running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port

DEBIAN = "/usr/bin/python3"  # python3-gps is there, not in our environment
FEED = Path(__file__).with_name("gpsfake_feed.py")
# what a receiver with a SiRF chip said in two seconds
LOG = b"""\
$GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,*76
$GPGSA,A,3,10,07,05,02,29,04,08,13,,,,,1.72,1.03,1.38*0A
$GPGSV,3,1,11,10,63,137,17,07,61,098,15,05,59,290,20,08,54,157,30*70
$GPGSV,3,2,11,02,39,223,19,13,28,070,17,26,23,252,,04,14,186,14*79
$GPGSV,3,3,11,29,09,301,24,16,09,020,,36,,,*76
$GPRMC,092750.000,A,5321.6802,N,00630.3372,W,0.02,31.66,280511,,,A*43
$GPGGA,092751.000,5321.6802,N,00630.3371,W,1,8,1.03,61.7,M,55.3,M,,*75
$GPGSA,A,3,10,07,05,02,29,04,08,13,,,,,1.72,1.03,1.38*0A
$GPGSV,3,1,11,10,63,137,17,07,61,098,15,05,59,290,20,08,54,157,30*70
$GPGSV,3,2,11,02,39,223,16,13,28,070,17,26,23,252,,04,14,186,15*77
$GPGSV,3,3,11,29,09,301,24,16,09,020,,36,,,*76
$GPRMC,092751.000,A,5321.6802,N,00630.3371,W,0.06,31.66,280511,,,A*45
"""
SENTENCES = LOG.splitlines()
TOPOLOGY = """
name: t
gateways: {{gw: {{}}}}
buses: {{ship: {{on: gw}}}}
bridges: {{gps: {{on: gw, join: [{{bus: ship}}, {{{medium}, protocol: {{nmea: {{{settings}}}}}}}]}}}}
"""
PATTERNS = [f"gps/GP/{parse(one).type}" for one in SENTENCES]


@asynccontextmanager
async def program(*command: str, **more: Any) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(*command, stderr=DEVNULL, **more)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def receiver(directory: Path) -> AsyncIterator[tuple[str, Process]]:
    """Run gpsfake's receiver with `LOG`; yield the name of its terminal and its process."""
    if not Path("/usr/lib/python3/dist-packages/gps").exists():
        pytest.skip("Debian package python3-gps")
    (directory / "log.nmea").write_bytes(LOG)
    async with program(DEBIAN, str(FEED), str(directory / "log.nmea"), stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip(), process


@asynccontextmanager
async def gateway(medium: str, settings: str) -> AsyncIterator[tuple[Ear, BridgePart]]:
    """Run a gateway between a bus and sentences on a medium; yield an ear on the bus, and the bridge."""
    async with running(TOPOLOGY.format(medium=medium, settings=settings)) as appliance:
        bridge, bus = appliance.parts["bridge gps"], appliance.parts["bus ship"]
        assert isinstance(bridge, BridgePart)
        assert isinstance(bus, BusPart)
        yield Ear(bus.hub), bridge


async def test_each_sentence_of_gpsfake_is_a_frame(tmp_path: Path) -> None:
    async with receiver(tmp_path) as (line, process):
        async with gateway(f"uart: {{port: {line}, baud: 4800}}", "root: gps") as (ear, bridge):
            await until(lambda: bridge.links[-1].state == "up")
            assert process.stdin is not None
            process.stdin.write(b"\n")
            await until(lambda: len(ear.heard) >= len(SENTENCES))
    frames = [unpack(one) for one in ear.heard]
    names = Names(("gps", "GP", "GGA", "GSA", "GSV", "RMC"))
    assert [bytes(one.data) for one in frames] == SENTENCES
    assert [names.show(one.tokens) for one in frames] == PATTERNS


async def test_gpsd_finds_the_place_in_what_a_gateway_sends() -> None:
    gpsd = shutil.which("gpsd", path="/usr/sbin:/usr/bin")
    if gpsd is None:
        pytest.skip("Debian package gpsd")
    port, door = free_port(), free_port()
    medium = f"tcp: {{host: 127.0.0.1, port: {port}, mode: listen}}"
    async with gateway(medium, "send: gps") as (ear, bridge):
        async with program(gpsd, "-N", "-n", "-S", str(door), f"tcp://127.0.0.1:{port}", stdout=DEVNULL):
            reader, writer = await watching(door)
            await until(lambda: bool(bridge.legs[-1].side.pipes))  # gpsd is there
            ear.say(*map(message, PATTERNS, SENTENCES))
            fixed = await told(reader, "TPV")
            writer.close()
    assert (round(fixed["lat"], 4), round(fixed["lon"], 4)) == (53.3613, -6.5056)


async def watching(door: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to gpsd as soon as it listens, and ask for its reports."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", door)
                writer.write(b'?WATCH={"enable":true,"json":true};\n')
                await told(reader, "WATCH")
                return reader, writer
            await asyncio.sleep(0.02)


async def told(reader: asyncio.StreamReader, kind: str) -> dict[str, Any]:
    """Return the next report of a kind."""
    async with asyncio.timeout(10):
        while True:
            report = json.loads(await reader.readline())
            if report["class"] == kind:
                return report  # type: ignore[no-any-return]
