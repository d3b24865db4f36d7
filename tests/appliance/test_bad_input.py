"""Bad input on all streams of one gateway: each is one clear line of the log, and the rest goes on."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from functools import reduce
from operator import xor
from pathlib import Path

import pytest

from appliance.parts.bus import BusPart
from bus.wire.frame import unpack
from tests.bridges.support import PtyPair
from tests.helpers.appliances import running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port

LONG_BYTES = 10_000_000
ENDS = {"lines": b"\n", "jsonl": b"\n", "nmea": b"\n", "slip": b"\xc0"}
WORDS = {
    "lines": "none a line: no LF in the last {n}: another delimiter, another protocol",
    "jsonl": "none a line of JSON: no LF in the last {n}: another protocol",
    "nmea": "none a sentence: no LF or CR in the last {n}: another protocol",
    "slip": "none a packet: no END in the last {n}: another protocol",
}


def plant(sides: str) -> str:
    return f"""
name: t
gateways: {{gw: {{status: {{serve: false}}}}}}
buses: {{plant: {{on: gw, listen: ["inproc://bad"]}}}}
bridges:
  things:
    on: gw
    join:
      - bus: plant
{sides}
"""


async def written(write: Callable[[bytes], int], data: bytes) -> None:
    """Write all of it, however little is taken at once."""
    left = memoryview(data)
    while left:
        try:
            left = left[write(bytes(left[:65536])) :]
        except BlockingIOError:
            await asyncio.sleep(0)


def said(caplog: pytest.LogCaptureFixture, link: str) -> list[str]:
    """Return the warnings about a link."""
    lines = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    return [line for line in lines if line.startswith(link)]


def sentence(text: str) -> bytes:
    return f"${text}*{reduce(xor, text.encode()):02X}".encode()


def good(protocol: str, number: int) -> bytes:
    """Return what a good device says, with its number in it."""
    said = {
        "lines": b"%d kg" % number,
        "jsonl": b'{"kg": %d}' % number,
        "nmea": sentence(f"GPXXX,{number}"),
        "slip": b"\xc0%d" % number,
    }
    return said[protocol] + ENDS[protocol]


@pytest.mark.parametrize("protocol", list(ENDS))
@pytest.mark.parametrize("wire", ["uart", "tcp"])
async def test_ten_megabytes_without_an_end_are_one_line_and_the_next_run_is_understood(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, protocol: str, wire: str
) -> None:
    pair, port = PtyPair(tmp_path / "tty"), free_port()
    device = f"uart: {{port: {pair.path}, baud: 3000000}}"
    if wire == "tcp":
        device = f"tcp: {{host: 127.0.0.1, port: {port}, mode: listen}}"
    async with running(plant(f"      - {device}\n        protocol: {protocol}")) as appliance:
        bus = appliance.parts["bus plant"]
        assert isinstance(bus, BusPart)
        ear = Ear(bus.hub)
        with socket.socket() as client:
            if wire == "tcp":
                await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
                client.setblocking(False)
            write = client.send if wire == "tcp" else lambda data: os.write(pair.master, data)
            await until(lambda: write(good(protocol, 1)) and ear.heard)  # what came before opening is lost
            first = ear.heard[-1]
            await written(write, b"x" * LONG_BYTES + ENDS[protocol] + good(protocol, 2))
            await until(lambda: ear.heard[-1] != first)
            assert b"2" in unpack(ear.heard[-1]).data
    pair.close()
    (told,) = said(caplog, wire)
    assert WORDS[protocol].format(n=256) in told
