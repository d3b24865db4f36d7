"""A fast bus into a 115,200-baud line: 5,000 frames a second of 50 patterns; there is room for a tenth."""

import asyncio
from itertools import count
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.media.shedding import Shed
from bridges.media.uart.codec import wire_bytes_max
from bridges.policy import Policy
from bridges.simulate import SerialLine, run
from bus.balance import imbalances
from bus.hub import Hub
from bus.patch import join
from bus.wire.batch import Batch, payloads
from bus.wire.frame import pack
from tests.bridges.support import RecordingPipe, say
from tests.helpers.peers import until

PATTERNS, FRAMES_PER_S, SECONDS, STEP_S = 50, 5000, 5, 0.002
PER_STEP = int(FRAMES_PER_S * STEP_S)
AGE_S = 0.15
BAUD, CHUNK_BYTES = 115200, 16


def frame(number: int, pattern: int) -> bytes:
    return pack(1, (7, pattern), number.to_bytes(8, "big"))


LINE_S = wire_bytes_max(len(frame(0, 0))) * 10 / BAUD
HEARD_S = CHUNK_BYTES * 10 / BAUD  # the far end hears so many bytes at once


class Far(RecordingPipe):
    """The far end, which notes number, pattern and time of each frame."""

    def __init__(self) -> None:
        super().__init__("far")
        self.heard: list[tuple[int, int, float]] = []

    def send(self, batch: Batch) -> None:
        super().send(batch)
        now = asyncio.get_running_loop().time()
        for message in payloads(batch):
            pattern, number = int.from_bytes(message[8:12], "big"), int.from_bytes(message[12:], "big")
            self.heard.append((number, pattern, now))


class Plant:
    def __init__(self, trunk: bool = False, **shed: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.line = SerialLine(BAUD)
        self.line.chunk_bytes = CHUNK_BYTES
        self.bus, self.far, self.out = Hub("bus"), Hub("far"), Far()
        self.bridge = Bridge("slow", 7, clock=self.loop.time)
        join(self.bus, self.bridge.side("bus", Policy(trunk=trunk)))
        side = self.bridge.side("line")
        self.far.attach(self.out)
        self.link, self.other = self.line.link("near", shed=Shed(**shed)), self.line.link("far")
        self.link.open(side, self.loop)
        self.other.open(self.far, self.loop)
        self.said: dict[int, float] = {}
        self.last: dict[int, int] = {}
        self.numbers = count(1)

    async def up(self) -> "Plant":
        await until(lambda: self.link.state == self.other.state == "up")
        return self

    def say(self, patterns: list[int]) -> None:
        frames = []
        for pattern in patterns:
            number = next(self.numbers)
            self.said[number], self.last[pattern] = self.loop.time(), number
            frames.append(frame(number, pattern))
        say(self.bus, None, *frames)
        assert imbalances([self.bus, self.bridge, self.far]) == []

    async def talk(self, seconds: float, patterns: range = range(PATTERNS)) -> None:
        turn = 0
        end_s = self.loop.time() + seconds
        while self.loop.time() < end_s:
            self.say([patterns[(turn + i) % len(patterns)] for i in range(PER_STEP)])
            turn += PER_STEP
            await asyncio.sleep(STEP_S)

    async def close(self, overrun: int = 0) -> None:
        """Close all, and check the counts; `overrun` is the number of messages that the line lost."""
        await until(lambda: not self.link.stats.queued)
        await asyncio.sleep(1)
        stats = self.link.stats
        assert stats.offered == len(self.said) == stats.sent + sum(stats.dropped.values())
        assert len(self.out.heard) == self.other.stats.received
        assert 0 <= stats.sent - len(self.out.heard) <= overrun
        self.link.close()
        self.other.close()
        assert imbalances([self.bus, self.bridge, self.far]) == []

    def ages(self) -> list[float]:
        return [came_s - self.said[number] for number, _, came_s in self.out.heard]


def test_conflation_keeps_every_pattern_fresh_and_the_newest_comes_out_last() -> None:
    async def scenario() -> None:
        plant = await Plant(policy="conflate", age_s=AGE_S).up()
        await plant.talk(SECONDS)
        await plant.close()
        heard = plant.out.heard
        assert len(plant.said) >= FRAMES_PER_S * SECONDS
        assert max(plant.ages()) < AGE_S + LINE_S + HEARD_S
        assert {pattern: number for number, pattern, _ in heard} == plant.last
        shares = [sum(p == pattern for _, p, _ in heard) for pattern in range(PATTERNS)]
        assert min(shares) >= 0.9 * max(shares)  # all the same speed: the same share of the line
        assert len(heard) > 0.95 * SECONDS * BAUD / 10 / wire_bytes_max(len(frame(0, 0)))  # no line time lost
        assert set(plant.link.stats.dropped) == {"conflated"}

    run(scenario())


@pytest.mark.parametrize("policy", ["newest", "oldest", "conflate"])
def test_nothing_is_older_than_the_age_limit_when_it_comes_to_the_line(policy: str) -> None:
    async def scenario() -> None:
        plant = await Plant(policy=policy, age_s=0.03, queue_bytes=1 << 20).up()
        await plant.talk(2)
        await plant.close()
        ages = plant.ages()
        assert 0.02 < max(ages) < 0.03 + LINE_S + HEARD_S
        stale = plant.link.stats.dropped["aged out"]
        assert stale > 1000 if policy == "newest" else stale > 0
        assert stale <= PATTERNS or policy != "conflate"  # fresh ones fill the line: only the last grow old

    run(scenario())


def test_a_rare_pattern_gets_through_beside_a_busy_one() -> None:
    async def scenario() -> None:
        plant = await Plant(policy="conflate", age_s=AGE_S).up()
        talking = asyncio.create_task(plant.talk(3, range(1, 6)))
        for _ in range(20):
            plant.say([0])
            await asyncio.sleep(0.1)
        await talking
        await plant.close()
        assert sum(pattern == 0 for _, pattern, _ in plant.out.heard) == 20

    run(scenario())


def test_a_stalled_line_brings_nothing_stale_but_what_the_driver_had() -> None:
    async def scenario() -> None:
        plant = await Plant(policy="conflate", age_s=AGE_S).up()
        await plant.talk(0.2, range(1, 20))
        plant.line.ends[1].clogged = True
        await asyncio.sleep(0)
        plant.say([0])  # a command, said once
        stalled_s = plant.loop.time()
        await plant.talk(1, range(1, 20))
        plant.line.ends[1].clogged = False
        freed_s = plant.loop.time()
        await plant.talk(0.5, range(1, 20))
        await plant.close(overrun=2)  # messages in flight when the far end stopped
        assert all(pattern for _, pattern, _ in plant.out.heard)
        late = [n for n, _, came_s in plant.out.heard if came_s > freed_s and plant.said[n] < freed_s - AGE_S]
        assert all(plant.said[number] <= stalled_s + AGE_S for number in late)
        assert len(late) * LINE_S < 0.04 + 2 * LINE_S  # `ahead_ms`
        assert plant.link.stats.dropped["aged out"] >= 1

    run(scenario())


def test_with_envelopes_on_the_bus_the_same() -> None:
    async def scenario() -> None:
        plant = await Plant(trunk=True, policy="conflate", age_s=AGE_S).up()
        await plant.talk(1)
        await plant.close()
        assert {pattern: number for number, pattern, _ in plant.out.heard} == plant.last

    run(scenario())
