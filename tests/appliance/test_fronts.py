"""Sides with other names, and opaque messages as frames, in gateways that run; and their reloads."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from bus.hub import Hub
from bus.wire.frame import pack
from bus.wire.notation import pattern_of
from tests.bridges.support import PtyPair
from tests.helpers.appliances import reloaded, running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_channel, free_port
from topologies.loading.loader import loads

DISPLAY = """\
name: display
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{words: {{on: gw, listen: "{url}"}}}}
bridges:
  panel:
    on: gw
    join:
      - {{bus: words, opaque: words/free}}
      - uart: {{port: "{port}"}}
        protocol: {{lines: {{receive: words/free, send: words/free}}}}
"""


def bridge_of(appliance: Appliance) -> BridgePart:
    return next(part for part in appliance.parts.values() if isinstance(part, BridgePart))


def hub_of(appliance: Appliance, name: str) -> Hub:
    buses = (part for part in appliance.parts.values() if isinstance(part, BusPart))
    return next(part.plain for part in buses if part.name == name)


@contextmanager
def nanocat(url: str, says: str) -> Iterator[IO[bytes]]:
    """Run nanocat, which says one thing again and again, and yield what it prints of what it hears."""
    words = ["nanocat", "--bus", "--connect", url, "--interval", "0.1", "--data", says, "--quoted"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        process.communicate()


async def line(master: int) -> bytes:
    """Return what the display shows, up to the end of a line."""
    shown = b""
    while not shown.endswith(b"\n"):
        try:
            shown += os.read(master, 4096)
        except BlockingIOError:
            await asyncio.sleep(0.005)
    return shown


@pytest.mark.skipif(not shutil.which("nanocat"), reason="Debian: nanomsg-utils")
async def test_nanocat_talks_to_a_display_on_a_serial_line(tmp_path: Path) -> None:
    pty, url = PtyPair(tmp_path / "display"), f"tcp://127.0.0.1:{free_port()}"
    async with running(DISPLAY.format(url=url, port=pty.path)) as appliance:
        await until(lambda: all(link.state == "up" for link in bridge_of(appliance).links))
        with nanocat(url, "hello") as heard:
            assert await asyncio.wait_for(line(pty.master), 20) == b"hello\n"
            os.write(pty.master, b"pressed\n")
            assert await asyncio.to_thread(heard.readline) == b'"pressed"\n'


TWO = """\
name: two
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{hall: {{on: gw}}, plant: {{on: gw}}}}
bridges:
  joint: {{on: gw, join: [{{bus: plant}}, {{bus: hall{0}}}]}}
"""


def frame(word: str, data: bytes = b"") -> bytes:
    return pack(1, pattern_of(word), data)


async def test_a_reload_gives_other_names_from_the_next_batch_on() -> None:
    async with running(TWO.format(", prefix: a")) as appliance:
        hall, plant = (Ear(hub_of(appliance, name)) for name in ("hall", "plant"))
        steps = (
            (", prefix: b", "b/t"),
            ("", "t"),
            (", rename: {t: u}, unchanged: drop", "u"),
            (", rename: {t: v}, unchanged: drop", "v"),
        )
        hall.say(frame("t"))
        for settings, name in steps:
            changes = reloaded(appliance, loads(TWO.format(settings)))
            assert [change.verb for change in changes] == ["changed"]
            hall.say(frame("t"))
            plant.say(frame(name, b"back"))
        assert plant.heard == [frame("a/t"), *(frame(name) for _, name in steps)]
        assert hall.heard == [frame("t", b"back")] * len(steps)
        accounts = bridge_of(appliance).hub.accounts()
        assert [fault for account in accounts.values() for fault in account.faults()] == []


CAN = "can: {{channel: {channel}, interface: virtual, fd: true"
KINDS = {
    "a bus": ("bus: hall", ""),
    "tcp": ('url: "tcp://127.0.0.1:{0}"', ""),
    "ipc": ('url: "ipc://{dir}/hall"', ""),
    "ws": ('url: "ws://127.0.0.1:{1}/hall"', ""),
    "a trunk": ('url: "tcp://127.0.0.1:{2}", trunk: true', ""),
    "frames over TCP": ("tcp: {{host: 127.0.0.1, port: {3}, mode: listen}}",
                        "tcp: {{host: 127.0.0.1, port: {3}}}"),
    "multicast": (GROUP := "multicast: {{group: 239.9.42.1, port: {3}, interface: lo}}", GROUP),
    "a trunk on multicast": (f"{GROUP}, trunk: true", f"{GROUP}, trunk: true"),
    "CAN": (f"{CAN}, node: 3}}}}", f"{CAN}, node: 9}}}}"),
    "TMQ": ("tmq: {{host: 127.0.0.1, subscribe: [says], publish: [show]}}",
            "tmq: {{host: 127.0.0.1, subscribe: [show], publish: [says]}}"),
}  # fmt: skip
EVERY = """\
name: every
gateways: {{gw: {{address: 127.0.0.1}}}}
brokers: {{main: {{on: gw, listen: "tcp://127.0.0.1:{4}"}}}}
buses:
  plant: {{on: gw}}
  hall:
    on: gw
    listen:
      - "tcp://127.0.0.1:{0}"
      - "ipc://{dir}/hall"
      - "ws://127.0.0.1:{1}/hall"
      - {{url: "tcp://127.0.0.1:{2}", trunk: true}}
bridges:
  near:
    on: gw
    join:
      - bus: plant
      - {{NEAR, prefix: hall-a, rename: {{says: words/said}}}}
"""
FAR = "  far: {{on: gw, join: [{{bus: hall}}, {{FAR}}]}}\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_on_every_kind_of_side_frames_have_the_names_of_the_bridge_inside(
    kind: str, tmp_path: Path
) -> None:
    near, far = KINDS[kind]
    text = EVERY.replace("NEAR", near) + (FAR.replace("FAR", far) if far else "")
    async with running(
        text.format(*(free_port() for _ in range(5)), dir=tmp_path, channel=free_channel())
    ) as appliance:
        plant, hall = (Ear(hub_of(appliance, name)) for name in ("plant", "hall"))
        bridges = [part for part in appliance.parts.values() if isinstance(part, BridgePart)]
        await until(lambda: all(port for part in bridges for side in part.hub.sides for port in [side.ports]))

        def cross() -> bool:  # what comes before a subscription is known is lost, so say it again
            hall.say(frame("says/7", b"in"))
            plant.say(frame("hall-a/show/7", b"out"))
            return bool(plant.heard) and bool(hall.heard)

        await until(cross)
        assert set(plant.heard) == {frame("hall-a/words/said/7", b"in")}
        assert set(hall.heard) == {frame("show/7", b"out")}
