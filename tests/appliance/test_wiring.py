"""Gateways that are joined by name, as real processes: one is killed, and the others go on."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from appliance.status.places import ask, status_socket
from bus.hub import Hub
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from tests.appliance.probe.support import free_port
from tests.helpers.peers import Ear, until


class Plant:
    """Gateways of one topology in processes of their own, and applications on their buses in this process."""

    def __init__(self, stack: AsyncExitStack, directory: Path) -> None:
        self._stack, self._directory = stack, directory
        self._file = directory / "plant.yaml"
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def run(self, text: str, *gateways: str) -> None:
        self._file.write_text(text)
        for gateway in gateways:
            await self.start(gateway)

    async def start(self, gateway: str) -> None:
        """Start a gateway, and wait until it says that it runs."""
        words = [
            "run",
            str(self._file),
            "--gateway",
            gateway,
            "--run-directory",
            str(self._directory / gateway),
        ]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "buscoupler", *words, stdout=asyncio.subprocess.PIPE
        )
        self.processes[gateway] = process
        self._stack.push_async_callback(self.kill, gateway)
        assert process.stdout is not None
        assert await process.stdout.readline()

    def status(self, gateway: str) -> dict[str, Any] | None:
        """Return what a gateway says of itself; None if it does not answer."""
        try:
            found: dict[str, Any] = ask(self._directory / gateway / status_socket(()))
        except OSError:
            return None
        return found

    def is_joined(self, gateway: str) -> bool:
        """Return whether all links of a gateway are up."""
        status = self.status(gateway)
        return status is not None and all(link["state"] == "up" for link in status["links"])

    async def kill(self, gateway: str) -> None:
        process = self.processes[gateway]
        if process.returncode is None:
            process.kill()
        await process.communicate()

    def join(self, port: int) -> Ear:
        """Return an application that dials a bus, and goes on trying."""
        hub, link = Hub(str(port)), make_link(f"tcp://127.0.0.1:{port}", "dial")
        ear = Ear(hub)
        link.open(hub, asyncio.get_running_loop())
        self._stack.callback(link.close)
        return ear


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    async with AsyncExitStack() as stack:
        yield Plant(stack, tmp_path)


def frame(word: str, number: object) -> bytes:
    return pack(PUB, pattern_of(word), str(number).encode())


async def exactly_once(*ears: Ear, word: str, count: int = 50) -> None:
    """Send from everywhere. Every other application gets each frame once, and its sender never."""
    start = sum(len(ear.heard) for ear in ears)
    sent = {
        number: [frame(word, f"{start} {number} {n}") for n in range(count)] for number in range(len(ears))
    }
    for number, ear in enumerate(ears):
        ear.say(*sent[number])
    last = {number: frame(word, f"{start} {number} last") for number in sent}
    for number, ear in enumerate(ears):
        ear.say(last[number])
    await until(lambda: all(last[n] in e.heard for n in sent for m, e in enumerate(ears) if m != n))
    for number, frames in sent.items():
        for receiver, ear in enumerate(ears):
            assert {ear.heard.count(one) for one in frames} == {int(receiver != number)}, (number, receiver)


MESH = """\
name: mesh
gateways: {{gw-a: , gw-b: , gw-c: }}
buses:
  a:
    {{on: gw-a, listen: ["tcp://127.0.0.1:{0}", {{url: "tcp://127.0.0.1:{1}", trunk: true}}], trunks: [b, c]}}
  b:
    {{on: gw-b, listen: ["tcp://127.0.0.1:{2}", {{url: "tcp://127.0.0.1:{3}", trunk: true}}], trunks: [a, c]}}
  c:
    {{on: gw-c, listen: ["tcp://127.0.0.1:{4}", {{url: "tcp://127.0.0.1:{5}", trunk: true}}], trunks: [a, b]}}
"""


async def test_a_mesh_of_trunks_delivers_once_also_when_a_gateway_dies(plant: Plant) -> None:
    ports = [free_port() for _ in range(6)]
    await plant.run(MESH.format(*ports), "gw-a", "gw-b", "gw-c")
    a, b, c = (plant.join(port) for port in ports[::2])
    await until(lambda: all(plant.is_joined(name) for name in ("gw-a", "gw-b", "gw-c")))
    await until(lambda: all(len(ear.hub.pipes) == 2 for ear in (a, b, c)))
    await exactly_once(a, b, c, word="motor")
    await plant.kill("gw-a")
    await exactly_once(b, c, word="motor")
    await plant.start("gw-a")
    await until(lambda: plant.is_joined("gw-a"))
    await until(lambda: len(a.hub.pipes) == 2)
    await exactly_once(a, b, c, word="motor")
