"""Gateways that are joined by name, as real processes: one is killed, and the others go on."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from appliance.status.client import ask, status_socket
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bus.hub import Hub, Link
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from tests.helpers.peers import BareEar, Ear, until
from tests.helpers.ports import free_port
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired


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
        return self.hear(make_link(f"tcp://127.0.0.1:{port}", "dial"))

    def hear(self, link: Link) -> Ear:
        """Return what hears, and speaks, on a link."""
        hub = Hub(link.name)
        ear = BareEar(hub)
        link.open(hub, asyncio.get_running_loop())
        self._stack.callback(link.close)
        return ear

    def candidate(self, gateway: str) -> dict[str, Any] | None:
        """Return the gateway's only candidate."""
        status = self.status(gateway)
        candidates: list[dict[str, Any]] = [] if status is None else status["candidates"]
        return candidates[0] if candidates else None

    async def forwarding(self, *gateways: str) -> str:
        """Wait until all agree on the one that forwards, and the others are ready. Return that one."""

        agreed = list[str]()

        def agree() -> bool:
            found = {name: one for name in gateways if (one := self.candidate(name))}
            agreed[:] = [name for name, one in found.items() if one["role"] == "active"]
            known = all(one["ready"] and [one["holder"]] == agreed for one in found.values())
            return len(agreed) == 1 and known

        await until(agree)
        return agreed[0]


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


PAIR = """\
name: pair
gateways: {{gw-a: , gw-b: }}
brokers:
  main: {{on: gw-a, listen: "tcp://127.0.0.1:{0}", lease_ms: 600}}
  spare: {{on: gw-b, listen: "tcp://127.0.0.1:{1}", lease_ms: 600}}
buses:
  a:
    {{on: gw-a, listen: ["tcp://127.0.0.1:{2}", {{url: "tcp://127.0.0.1:{3}", trunk: true}}], trunks: b}}
  b:
    {{on: gw-b, listen: ["tcp://127.0.0.1:{4}", {{url: "tcp://127.0.0.1:{5}", trunk: true}}]}}
bridges:
"""
ONE_BRIDGE = """\
  motor:
    on: [gw-a, gw-b]
    pattern: motor
    join:
      - bus: {{gw-a: a, gw-b: b}}
      - multicast: {{group: 239.255.42.77, port: {6}, interface: {{gw-a: lo, gw-b: 127.0.0.1}}, hops: 0}}
        trunk: true
"""
TWO_BRIDGES = """\
  left:
    on: gw-a
    group: motor
    pattern: motor
    join:
      - bus: a
      - multicast: {{group: 239.255.42.77, port: {6}, interface: lo, hops: 0}}
        trunk: true
  right:
    on: gw-b
    group: motor
    pattern: motor
    join:
      - bus: b
      - multicast: {{group: 239.255.42.77, port: {6}, interface: 127.0.0.1, hops: 0}}
        trunk: true
"""


def test_the_bridges_of_a_group_claim_one_lease_and_stamp_alike() -> None:
    topology = loads((PAIR + TWO_BRIDGES).format(*range(2001, 2008)))
    left, right = (
        resolve(wired(topology), gateway).bridges[name].candidate
        for name, gateway in (("left", "gw-a"), ("right", "gw-b"))
    )
    assert left is not None
    assert left.of == 2
    assert right == left._replace(on=1, gateway="gw-b")


@pytest.mark.parametrize("bridges", [ONE_BRIDGE, TWO_BRIDGES], ids=["one bridge", "two in a group"])
async def test_gateways_with_other_buses_and_interfaces_stand_in_for_each_other(
    plant: Plant, bridges: str
) -> None:
    ports = [free_port() for _ in range(7)]
    text = (PAIR + bridges).format(*ports)
    assert check(loads(text)) == []
    await plant.run(text, "gw-a", "gw-b")
    applications = {"gw-a": plant.join(ports[2]), "gw-b": plant.join(ports[4])}
    field = plant.hear(MulticastLink(Multicast(group="239.255.42.77", port=ports[6], interface="lo", hops=0)))
    await until(lambda: all(len(ear.hub.pipes) == 2 for ear in (*applications.values(), field)))
    await until(lambda: plant.is_joined("gw-a") and plant.is_joined("gw-b"))
    first = await plant.forwarding("gw-a", "gw-b")
    await exactly_once(*applications.values(), field, word="motor/speed")
    other = "gw-b" if first == "gw-a" else "gw-a"
    survivor = applications[other]
    sent = [frame("motor/speed", f"around {n}") for n in range(90)]
    field.say(*sent[:30])
    await until(lambda: sent[29] in survivor.heard)
    field.say(*sent[30:60])
    await plant.kill(first)
    field.say(*sent[60:])
    await until(lambda: all(one in survivor.heard for one in sent))
    await exactly_once(survivor, field, word="motor/speed")
    assert len(survivor.heard) == len(set(survivor.heard))
