"""Two serial lines as one, over a trunk with envelopes: byte exact, also beside a pair that stands in."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.policy import Policy
from bridges.protocols.bytes.protocol import Bytes
from bridges.simulate import Faults, MulticastWire, SerialLine, run
from bus.hub import Hub, Link
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern
from tests.bridges.support import recorder, say
from tests.helpers.peers import until

NEAR = Bytes(receive=("up",), send=("down",), chunk_bytes=64)
FAR = Bytes(receive=("down",), send=("up",), chunk_bytes=64)


class End:
    """A gateway between the trunk and a serial line of its own, and the device at the far end of that."""

    def __init__(self, group: MulticastWire, record: Bytes, origin: int, stands_by: bool = False) -> None:
        loop, line = asyncio.get_running_loop(), SerialLine(1_000_000)
        self.may = not stands_by
        self.bridge = Bridge("x", origin, clock=loop.time)
        way = record.way
        rules = Policy(
            allow_in=way.inward or (), allow_out=way.outward or (), deaf=record.deaf, replay_s=0.1,
            anew=record.anew,
        )  # fmt: skip
        sides = self.bridge.side("trunk", Policy(trunk=True)), self.bridge.side("line", rules)
        self.gate = self.bridge.stand_by(lambda _: self.may) if stands_by else None
        self.link = line.speaking(record, may_act=lambda _: self.may)
        self.links: list[Link] = [group.link(), self.link]
        for side, link in zip(sides, self.links, strict=True):
            link.open(side, loop)
        self._device = Hub("device")
        self._heard = recorder(self._device)
        self.links.append(line.speaking(Bytes(receive=("in",), send=("out",), silence_ms=0)))
        self.links[-1].open(self._device, loop)

    def take_over(self) -> None:
        assert self.gate is not None
        self.may = True
        self.gate.resume()

    def die(self) -> None:
        """Go as a killed process goes: its device stays."""
        self.may = False
        for link in self.links[:2]:
            link.close()

    def say(self, data: bytes) -> None:
        """Let the device say something."""
        say(self._device, self._heard, pack(1, Pattern("out"), data))

    @property
    def told(self) -> dict[str, int]:
        """What was missing in what left for the device, by reason."""
        every = [one.stats.rejected for one in self.bridge.accounts().values()]
        found = Counter({reason: sum(one.get(reason, 0) for one in every) for reason in ("gap", "joined")})
        return dict(+found)

    @property
    def heard(self) -> bytes:
        """What the device has heard."""
        return b"".join(unpack(one).data for one in self._heard.messages)


async def opened(*ends: End) -> None:
    links = [link for end in ends for link in end.links]
    await until(lambda: all(link.state == "up" for link in links))


async def both_ways(seed: int, gone: int) -> tuple[bytes, bytes, bytes, bytes, dict[str, int]]:
    """Let both devices speak at once; `gone` is a datagram of the trunk that is lost."""
    source, group = random.Random(seed), MulticastWire()
    near, far = End(group, NEAR, 1), End(group, FAR, 2)
    await opened(near, far)
    said, answered = bytearray(), bytearray()
    for number in range(60):
        group.faults = Faults(loss=float(number == gone))
        for end, all_ in ((near, said), (far, answered)):
            data = source.randbytes(source.randrange(1, 200))
            all_ += data
            end.say(data)
        await asyncio.sleep(source.choice((0.0, 0.003, 0.02)))
    await asyncio.sleep(0.3)
    told = far.told
    for end in (near, far):
        for link in end.links:
            link.close()
    return bytes(said), far.heard, bytes(answered), near.heard, told


@pytest.mark.parametrize("seed", range(3))
def test_two_lines_are_one_byte_for_byte(seed: int) -> None:
    said, heard, answered, came, told = run(both_ways(seed, -1))
    assert (heard, came) == (said, answered)
    assert not told


def test_what_the_trunk_loses_is_told_and_nothing_is_invented() -> None:
    said, heard, _, _, told = run(both_ways(1, 20))
    assert len(heard) < len(said)
    assert set(told) == {"gap"}
    rest = iter(said)
    assert all(one in rest for one in heard)  # in the order in which it was said


async def pair(pause_s: float) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes], Any]:
    """Let one of two gateways at the far end die. Return what was said and heard, both ways."""
    group = MulticastWire()
    near, active, standby = End(group, NEAR, 1), End(group, FAR, 2, True), End(group, FAR, 2, True)
    await opened(near, active, standby)
    active.take_over()
    said, answered = [b"<%03d>" % n for n in range(80)], [b"[%03d]" % n for n in range(80)]
    for number in range(80):
        if number == 40:
            active.die()
            asyncio.get_running_loop().call_later(pause_s, standby.take_over)
        near.say(said[number])
        for end in (active, standby):
            end.say(answered[number])
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    told = standby.told, near.told
    for end in (near, active, standby):
        for link in end.links:
            link.close()
    shown, came = active.heard + standby.heard, near.heard
    cut = [[data[at : at + 5] for at in range(0, len(data), 5)] for data in (shown, came)]
    return said, cut[0], answered, cut[1], told


@pytest.mark.parametrize("pause_s", [0.02, 0.06])
def test_a_takeover_doubles_nothing_keeps_the_order_and_tells_what_is_missing(pause_s: float) -> None:
    said, shown, answered, came, told = run(pair(pause_s))
    for all_, heard in ((said, shown), (answered, came)):
        assert set(heard) <= set(all_)
        assert heard == sorted(set(heard))
        assert len(all_) - len(heard) <= pause_s / 0.01 + 3
    assert told == ({"joined": 1}, {"joined": 1})
