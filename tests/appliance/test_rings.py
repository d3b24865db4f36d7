"""Rings: on trunks every frame arrives once; on plain links, which no file shows, the loop is cut."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from bridges.policy import STEP_S
from bus.hub import Hub
from bus.transports.links import make_link
from bus.watch.watched import WatchedHub
from bus.wire.frame import PUB, pack
from devices.raw import RawDevice
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

COPIES = 300  # that one bus hears of a message: a few trials, of which the last cuts


def frame(number: int) -> bytes:
    return pack(PUB, (7, 1), b"%d" % number)


def opaque(number: int) -> bytes:
    return b"no frame %d" % number


KINDS = pytest.mark.parametrize("message", [frame, opaque])


def ring_of_trunks(trunks: list[int], doors: list[int]) -> str:
    """Return a topology of three gateways, each with a bus that dials the next one's trunk."""
    buses = "\n".join(
        f"  bus{n}:\n    on: gw{n}\n    listen:\n      - tcp://127.0.0.1:{doors[n]}\n"
        f"      - {{url: 'tcp://127.0.0.1:{trunks[n]}', trunk: true}}\n"
        f"    dial: {{url: 'tcp://127.0.0.1:{trunks[(n + 1) % 3]}', trunk: true}}"
        for n in range(3)
    )
    gateways = "\n".join(f"  gw{n}: {{address: 127.0.0.1}}" for n in range(3))
    return f"name: ring\ngateways:\n{gateways}\nbuses:\n{buses}\n"


def parallel(name: str, one: int, other: int) -> str:
    """Return a topology with a bridge between two remote buses, by plain links that hide a second bridge."""
    sides = "\n".join(f"      - url: tcp://127.0.0.1:{port}" for port in (one, other))
    head = f"name: {name}\ngateways: {{gw: {{address: 127.0.0.1}}}}\n"
    return f"{head}bridges:\n  b:\n    on: gw\n    join:\n{sides}\n"


@asynccontextmanager
async def at_door(url: str) -> AsyncIterator[Ear]:
    hub = Hub(url)
    ear, link = Ear(hub), make_link(url, "dial")
    link.open(hub, asyncio.get_running_loop())
    try:
        await until(lambda: len(hub.pipes) == 2)
        yield ear
    finally:
        link.close()


def opened(stack: AsyncExitStack, text: str, gateway: str) -> Appliance:
    appliance = appliance_of(loads(text, "t.yaml"), gateway)
    appliance.open(asyncio.get_running_loop())
    stack.callback(appliance.close)
    return appliance


async def at_rest(ears: list[Ear]) -> None:
    """Wait until nothing new is heard for 0.1 s."""
    loop, heard, since_s = asyncio.get_running_loop(), -1, 0.0

    def quiet() -> bool:
        nonlocal heard, since_s
        now = sum(len(ear.heard) for ear in ears)
        if now != heard:
            heard, since_s = now, loop.time()
        return loop.time() - since_s > 0.1

    await until(quiet)


@KINDS
async def test_a_ring_of_trunks_brings_every_message_once(message: Callable[[int], bytes]) -> None:
    trunks, doors = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
    text = ring_of_trunks(trunks, doors)
    assert not [finding for finding in check(loads(text, "t.yaml")) if finding.level == "error"]
    async with AsyncExitStack() as stack:
        gateways = [opened(stack, text, f"gw{n}") for n in range(3)]
        ears = [await stack.enter_async_context(at_door(f"tcp://127.0.0.1:{port}")) for port in doors]
        await until(lambda: all(len(next(iter(gw.hubs())).pipes) >= 3 for gw in gateways))
        for number in range(50):
            ears[number % 3].say(message(number))
        last = [message(1000 + n) for n in range(3)]
        for ear, end in zip(ears, last, strict=True):
            ear.say(end)
        await until(
            lambda: all(
                end in ear.heard for e, end in zip(ears, last, strict=True) for ear in ears if ear is not e
            )
        )
        for place, ear in enumerate(ears):
            for number in range(50):
                assert ear.heard.count(message(number)) == (number % 3 != place)


@KINDS
@pytest.mark.parametrize("bridges", [2, 3])
async def test_bridges_in_parallel_between_plain_buses_are_no_storm(
    bridges: int, message: Callable[[int], bytes]
) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        buses = [RawDevice([f"tcp://127.0.0.1:{free_port()}"]) for _ in range(2)]
        for bus in buses:
            bus.open(loop)
            stack.callback(bus.close)
        ports = [int(bus.links[0].url.rpartition(":")[2]) for bus in buses]
        ears = [Ear(bus.hub) for bus in buses]
        appliances = [opened(stack, parallel(f"p{n}", ports[0], ports[1]), "gw") for n in range(bridges)]
        await until(lambda: all(len(bus.hub.pipes) == bridges + 1 for bus in buses))
        hubs = [hub for a in appliances for hub in a.hubs() if isinstance(hub, WatchedHub)]
        hubs += [bus.hub for bus in buses if isinstance(bus.hub, WatchedHub)]
        for number in range(1, bridges + 2):  # a loop behind another one becomes visible with the next frame
            ears[number % 2].say(message(number))
            if number == 1:
                await until(lambda: sum(hub.loops for hub in hubs) > 0)
            await at_rest(ears)
            assert max(ear.heard.count(message(number)) for ear in ears) <= COPIES


MEDIA = """\
name: media
gateways: {{gw: {{address: 127.0.0.1, node: 1}}}}
buses:
  one: {{on: gw, listen: [{{url: "tcp://127.0.0.1:{0}", trunk: true}}]}}
  two: {{on: gw, listen: [{{url: "tcp://127.0.0.1:{1}", trunk: true}}]{2}}}
bridges:
  left: {{on: gw, join: [bus: one, {3}]}}
  right: {{on: gw, join: [bus: two, {3}]}}
"""
DEVICES = {
    "uart": "{uart: /dev/ttyUSB0, segment: line, trunk: true}",
    "can": "{can: {channel: can0, fd: true}, segment: line, trunk: true}",
    "multicast": "{multicast: {group: 239.9.42.1, port: 9943, interface: 127.0.0.1}, trunk: true}",
}


@pytest.mark.parametrize("medium", DEVICES)
def test_a_reload_that_closes_a_ring_keeps_the_devices_open(medium: str) -> None:
    open_text, closed_text = (
        MEDIA.format(7001, 7002, dial, DEVICES[medium]) for dial in ("", ", trunks: one")
    )
    changes, _ = appliance_of(loads(open_text), "gw").foresee(resolve(wired(loads(closed_text)), "gw"))
    held = [change for change in changes if "held_s" in change.detail]
    assert [(change.part, change.stays) for change in held] == [("bridge left", True), ("bridge right", True)]


RANKED = """\
name: ranked
gateways: {{one: {{address: 127.0.0.1, node: 1}}, two: {{address: 127.0.0.1, node: 2}}}}
buses:
  hall: {{on: one, listen: [{{url: "tcp://127.0.0.1:{port}", trunk: true}}]}}
  yard: {{on: two, trunks: hall}}
bridges:
  {first}: {{on: {at_first}, join: [bus: {bus_first}, {side}]}}
  {then}: {{on: {at_then}, join: [bus: {bus_then}, {side}]}}
"""


async def test_a_reload_that_changes_who_sends_first_reaches_the_bridge_that_runs() -> None:
    words = {"port": free_port(), "side": DEVICES["multicast"]}
    mine, other = ("left", "one", "hall"), ("right", "two", "yard")
    texts = [
        RANKED.format(first=a, at_first=b, bus_first=c, then=d, at_then=e, bus_then=f, **words)
        for (a, b, c), (d, e, f) in ((mine, other), (other, mine))
    ]
    async with AsyncExitStack() as stack:
        gateway = opened(stack, texts[0], "one")
        part = gateway.parts["bridge left"]
        assert isinstance(part, BridgePart)
        side, link = part.legs[1].side, part.legs[1].end.link
        assert side.policy.hold_s == 0
        changes = [change.line() for change in reloaded(gateway, loads(texts[1], "t.yaml"))]
        assert changes == ["changed bridge left: multicast 239.9.42.1:9943 on 127.0.0.1: rank"]
        assert part.legs[1].side is side
        assert part.legs[1].end.link is link
        assert side.policy.hold_s == STEP_S
        assert side.policy.hold_always
