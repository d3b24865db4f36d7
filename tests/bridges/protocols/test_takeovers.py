"""Takeovers between wires whose devices speak protocols, in virtual time, with the real links."""

import asyncio
import random
from collections import Counter

import pytest

pytest.importorskip("can", reason="the extra can is not installed")

from bridges.bridge import Bridge
from bridges.policy import Policy
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bridges.simulate import CanWire, MulticastWire, SerialLine, run
from bus.hub import Hub, Link
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern
from tests.bridges.support import RecordingPipe, recorder, say
from tests.helpers.peers import until

DOWN, UP = "0x100-0x1ff", "0x200-0x2ff"
AGE_S = 0.1


def policy(protocol: Protocol) -> Policy:
    """Return the rules of a side as the topology's record of it gives them."""
    way = protocol.way
    denied = ((),) if way.outward == () else ()
    return Policy(
        allow_in=way.inward or (), allow_out=way.outward or (), deny_out=denied,
        deaf=protocol.deaf, replay_s=protocol.age_ms / 1000 if protocol.replay else 0.0,
    )  # fmt: skip


class Device:
    """What is at the far end of a wire. It sends readings or commands of a few identifiers, numbered."""

    def __init__(self, wire: CanWire, first: int) -> None:
        self.hub, self.first, self.number = Hub("device"), first, 0
        self.heard: RecordingPipe = recorder(self.hub)
        self.link = wire.speaking(Raw(root=("car",), send=("all",)))
        self.link.open(self.hub, asyncio.get_running_loop())
        self.said = Counter[bytes]()

    def say(self, source: random.Random) -> None:
        self.number += 1
        frame = pack(1, Pattern("car", self.first + source.randrange(3)), self.number.to_bytes(4, "big"))
        self.said[frame] += 1
        say(self.hub, self.heard, frame)


class Gateway:
    """One copy of a bridge between two CAN buses."""

    def __init__(self, wires: list[CanWire], replay: bool) -> None:
        loop = asyncio.get_running_loop()
        self.may = False
        self.bridge = Bridge("x", 7, clock=loop.time)
        ways = (DOWN, UP), (UP, DOWN)
        self.records = [Raw(root=("car",), receive=(i,), send=(o,), replay=replay) for i, o in ways]
        self.sides = [self.bridge.side(str(n), policy(one)) for n, one in enumerate(self.records)]
        self.gate = self.bridge.stand_by(lambda _: self.may)
        self.links: list[Link] = [
            wire.speaking(record, may_act=lambda _: self.may)
            for wire, record in zip(wires, self.records, strict=True)
        ]
        for side, link in zip(self.sides, self.links, strict=True):
            link.open(side, loop)

    def promote(self) -> None:
        self.may = True
        self.gate.resume()

    def die(self) -> None:
        """Go as a process goes that is killed: nothing is sent any more, not even what the driver had."""
        self.may = False
        for link in self.links:
            link.port.sending.clear()  # type: ignore[attr-defined]
            link.close()

    def balanced(self) -> bool:
        ports = [port for side in self.sides for port in side.ports]
        return not self.gate.window.stats.balance() and not any(port.stats.balance() for port in ports)


async def plant(pause_s: float, seed: int, replay: bool) -> list[tuple[Counter[bytes], RecordingPipe]]:
    """Run two gateways, kill the active one thrice, and return what each device said and its peer heard."""
    source, wires = random.Random(seed), [CanWire(bitrate=1_000_000, seed=seed + n) for n in range(2)]
    devices = [Device(wires[0], 0x100), Device(wires[1], 0x200)]
    active, standby = Gateway(wires, replay), Gateway(wires, replay)
    links = [*(one.link for one in devices), *active.links, *standby.links]
    await until(lambda: all(link.state == "up" for link in links))
    active.promote()
    for _ in range(3):
        await traffic(devices, source, 100)
        active.die()
        await traffic(devices, source, round(pause_s * 1000))
        standby.promote()
        await traffic(devices, source, 50)
        assert standby.balanced()
        active, standby = standby, Gateway(wires, replay)
        await until(lambda: all(link.state == "up" for link in standby.links))  # noqa: B023
        await asyncio.sleep(0.3)
    await asyncio.sleep(1.0)
    for link in (*(one.link for one in devices), *active.links, *standby.links):
        link.close()
    return [(devices[0].said, devices[1].heard), (devices[1].said, devices[0].heard)]


async def traffic(devices: list[Device], source: random.Random, count: int) -> None:
    """Have one of the devices say something each millisecond."""
    for _ in range(count):
        source.choice(devices).say(source)
        await asyncio.sleep(0.001)


def in_order(frames: list[bytes]) -> bool:
    topics: dict[tuple[int, ...], list[bytes]] = {}
    for frame in map(unpack, frames):
        topics.setdefault(frame.tokens, []).append(frame.data)
    return all(some == sorted(some) for some in topics.values())


@pytest.mark.parametrize("seed", range(4))
def test_raw_can_within_the_age_loses_nothing_and_doubles_nothing(seed: int) -> None:
    for said, heard in run(plant(0.05, seed, replay=True)):
        found = Counter(heard.messages)
        assert said == found, (said - found, found - said)
        assert in_order(heard.messages)


@pytest.mark.parametrize(("pause_s", "replay"), [(0.25, True), (0.02, False)])
def test_what_is_older_or_not_to_be_replayed_is_lost_and_nothing_doubled(
    pause_s: float, replay: bool
) -> None:
    for said, heard in run(plant(pause_s, 9, replay)):
        found = Counter(heard.messages)
        assert found - said == Counter()
        assert 3 * pause_s * 1000 * 0.2 < (said - found).total() < 3 * (pause_s * 1000 + 10)
        assert in_order(heard.messages)


class Panel:
    """One copy of a bridge between a multicast group and a device of text lines, on a line of its own."""

    def __init__(self, group: MulticastWire, replay: bool = True) -> None:
        loop, line = asyncio.get_running_loop(), SerialLine(1_000_000)
        self.may, record = False, Lines(receive=("says",), send=("show",), replay=replay)
        self.bridge = Bridge("x", 7, clock=loop.time)
        sides = self.bridge.side("group"), self.bridge.side("line", policy(record))
        self.gate = self.bridge.stand_by(lambda _: self.may)
        self.links: list[Link] = [group.link(), line.speaking(record, may_act=lambda _: self.may)]
        for side, link in zip(sides, self.links, strict=True):
            link.open(side, loop)
        self.device = Hub("device")
        self.seen = recorder(self.device)
        self.end: Link = line.speaking(Lines(receive=("shown",), send=("told",)))
        self.end.open(self.device, loop)

    def promote(self, again: bool = False) -> None:
        self.may = True
        self.gate.resume(again=again)

    def fence(self) -> None:
        self.may = False
        self.gate.pause()
        self.gate.purge()

    def die(self) -> None:
        self.may = False
        for link in self.links:
            link.close()


async def panels(pause_s: float) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    """Kill the active gateway, and return what the device and a program said, and what each heard."""
    group, program = MulticastWire(), Hub("program")
    ear, end = recorder(program), group.link()
    end.open(program, asyncio.get_running_loop())
    active, standby = Panel(group), Panel(group)
    links = [end, *active.links, *standby.links, active.end, standby.end]
    await until(lambda: all(link.state == "up" for link in links))
    active.promote()
    said, shown = [b"%d" % n for n in range(60)], [b"%d" % n for n in range(100, 160)]
    for number, (reading, command) in enumerate(zip(said, shown, strict=True)):
        if number == 30:
            active.die()
            asyncio.get_running_loop().call_later(pause_s, standby.promote)
        for one in (active, standby):
            say(one.device, one.seen, pack(1, Pattern("told"), reading))
        say(program, ear, pack(1, Pattern("show"), command))
        await asyncio.sleep(0.004)
    await asyncio.sleep(0.5)
    for link in links:
        link.close()
    heard = [unpack(one).data for one in ear.messages]
    return said, shown, heard, [unpack(one).data for gw in (active, standby) for one in gw.seen.messages]


@pytest.mark.parametrize("pause_s", [0.02, 0.06])
def test_lines_come_in_once_each_and_what_was_on_its_way_to_the_device_is_lost_not_doubled(
    pause_s: float,
) -> None:
    assert Lines.deaf
    said, shown, heard, seen = run(panels(pause_s))
    assert heard == said
    lost = [one for one in shown if one not in seen]
    assert [one for one in shown if one in seen] == seen  # in order, each once
    assert lost == shown[30 : 30 + len(lost)]
    assert abs(len(lost) - pause_s / 0.004) <= 2


async def fenced(pause_s: float, again: bool, replay: bool) -> tuple[list[bytes], dict[str, int]]:
    """Fence a gateway alone for a while. Return what its device was shown, and what was given up."""
    group, program = MulticastWire(), Hub("program")
    ear, end = recorder(program), group.link()
    end.open(program, asyncio.get_running_loop())
    one = Panel(group, replay)
    links = [end, *one.links, one.end]
    await until(lambda: all(link.state == "up" for link in links))
    one.promote()
    for number in range(60):
        if number == 20:
            one.fence()
            asyncio.get_running_loop().call_later(pause_s, one.promote, again)
        say(program, ear, pack(1, Pattern("show"), b"%d" % number))
        await asyncio.sleep(0.004)
    await asyncio.sleep(0.5)
    for link in links:
        link.close()
    assert one.gate.window.stats.balance() == 0
    return [unpack(message).data for message in one.seen.messages], dict(one.gate.window.stats.dropped)


def test_lines_that_came_while_a_gateway_was_fenced_leave_when_it_goes_on_and_nobody_has_taken_over() -> None:
    seen, dropped = run(fenced(0.06, again=True, replay=True))
    assert seen == [b"%d" % number for number in range(60)]
    assert not dropped


@pytest.mark.parametrize(
    ("pause_s", "again", "replay", "reason"),
    [(0.12, True, True, "stale"), (0.06, True, False, "stale"), (0.06, False, True, "unheard")],
)
def test_those_that_are_older_or_that_another_may_have_sent_are_counted(
    pause_s: float, again: bool, replay: bool, reason: str
) -> None:
    seen, dropped = run(fenced(pause_s, again, replay))
    missing = [number for number in range(60) if b"%d" % number not in seen]
    assert missing == list(range(20, 20 + len(missing)))
    assert seen == [b"%d" % number for number in range(60) if number not in missing]
    assert dropped == {reason: len(missing)}
    assert missing
