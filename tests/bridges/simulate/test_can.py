import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridges.simulate import CanWire, Faults, SimulatedCan, run
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, RecordingPipe, frame, recorder, say
from tests.helpers.peers import until


class Node:
    """A hub with one link on the wire, and a recorder."""

    def __init__(self, wire: CanWire, node: int, **options: Any) -> None:
        self.hub = Hub(f"n{node}")
        self.heard: RecordingPipe = recorder(self.hub)
        self.link: SimulatedCan = wire.link(node, **options)
        self.link.open(self.hub, asyncio.get_running_loop())


@contextmanager
def nodes(wire: CanWire, count: int, **options: Any) -> Iterator[list[Node]]:
    made = [Node(wire, number + 1, **options) for number in range(count)]
    yield made
    for node in made:
        node.link.close()
        assert node.link.stats.balance() == 0


async def up(made: list[Node]) -> None:
    await until(lambda: all(node.link.state == "up" for node in made))


@pytest.mark.parametrize("fd", [False, True])
def test_every_size_to_every_node(fd: bool) -> None:
    async def scenario() -> None:
        with nodes(CanWire(), 3, fd=fd) as (a, b, c):
            await up([a, b, c])
            for size in SIZES:
                say(a.hub, None, frame(size))
            await until(lambda: len(b.heard.messages) == len(c.heard.messages) == len(SIZES))
            assert b.heard.messages == c.heard.messages == [frame(size) for size in SIZES]
            assert len(a.heard.messages) == len(SIZES)

    run(scenario())


def test_a_frame_takes_its_bits() -> None:
    async def scenario() -> tuple[float, int]:
        with nodes(CanWire(bitrate=125_000), 2) as (a, b):
            await up([a, b])
            loop = asyncio.get_running_loop()
            start_s = loop.time()
            say(a.hub, None, frame(1024))
            await until(lambda: bool(b.heard.messages))
            frames = sum(event.what == "frame" for event in a.link.port.wire.log)
            return loop.time() - start_s, frames

    elapsed_s, frames = run(scenario())
    assert frames == -(-1026 // 7)
    assert elapsed_s == pytest.approx(frames * 131 / 125_000, rel=0.02)


def test_the_lower_identifier_goes_first() -> None:
    async def scenario() -> None:
        with nodes(CanWire(bitrate=125_000), 3) as (a, b, c):
            await up([a, b, c])
            say(b.hub, None, frame(500, 2))
            await asyncio.sleep(0.01)
            say(a.hub, None, frame(500, 1))
            await until(lambda: len(c.heard.messages) == 2)
            assert c.heard.messages == [frame(500, 1), frame(500, 2)]

    run(scenario())


def test_errors_on_the_wire_cost_time_and_no_frame() -> None:
    async def scenario() -> None:
        wire = CanWire(seed=3, faults=Faults(corruption=0.02))
        with nodes(wire, 2) as (a, b):
            await up([a, b])
            sent = [frame(60, seed) for seed in range(200)]
            for message in sent:
                say(a.hub, None, message)
                await asyncio.sleep(0.05)
            await until(lambda: b.heard.messages == sent)
            assert sum(event.what == "error frame" for event in wire.log) > 10

    run(scenario())


def test_a_bad_wire_ends_in_bus_off_and_the_node_comes_back() -> None:
    async def scenario() -> None:
        wire = CanWire(faults=Faults(corruption=1.0))
        with nodes(wire, 2) as (a, b):
            await up([a, b])
            say(a.hub, None, MESSAGE)
            await until(lambda: a.link.port.state == "off")
            happened = [
                event.what for event in wire.log if event.end == "can0" and event.what != "error frame"
            ]
            assert happened == ["error passive", "bus-off"]
            wire.faults = Faults()
            await until(lambda: a.link.port.state == "active" and a.link.state == "up")
            await asyncio.sleep(5)
            b.heard.messages.clear()
            say(a.hub, None, frame(20))
            await until(lambda: b.heard.messages == [frame(20)])
            assert a.link.stats.balance() == 0

    run(scenario())


def test_lost_doubled_and_overtaken_frames_never_make_a_wrong_message() -> None:
    async def scenario() -> tuple[list[bytes], list[bytes], dict[str, int]]:
        wire = CanWire(seed=1, faults=Faults(loss=0.01, duplication=0.01, reordering=0.01))
        with nodes(wire, 2) as (a, b):
            await up([a, b])
            sent = [frame(60, seed) for seed in range(300)]
            for message in sent:
                say(a.hub, None, message)
                await asyncio.sleep(0.1)
            return sent, b.heard.messages, b.link.stats.rejected

    sent, received, rejected = run(scenario())
    assert set(received) < set(sent)
    assert len(received) == len(set(received)) > 200
    assert rejected


def test_nobody_there_to_acknowledge_then_somebody() -> None:
    async def scenario() -> None:
        wire = CanWire()
        a = Node(wire, 1)
        await up([a])
        say(a.hub, None, MESSAGE)
        await until(lambda: a.link.port.state == "passive")
        await asyncio.sleep(1)
        b = Node(wire, 2)
        await until(lambda: b.heard.messages == [MESSAGE])
        a.link.close()
        b.link.close()

    run(scenario())


def test_unplugged_stuck_and_clogged() -> None:
    async def scenario() -> None:
        wire = CanWire()
        with nodes(wire, 3, queue_bytes=8192) as (a, b, c):
            await up([a, b, c])
            wire.ports[1].unplug()
            await until(lambda: b.link.state == "waiting")
            say(a.hub, None, MESSAGE)
            await until(lambda: c.heard.messages == [MESSAGE])
            wire.ports[1].plug()
            await until(lambda: b.link.state == "up")
            wire.ports[0].clogged = True
            for seed in range(50):
                say(a.hub, None, frame(1000, seed))
            assert a.link.stats.dropped["queue full"] >= 40
            say(b.hub, None, frame(20))
            await until(lambda: c.heard.messages[-1] == frame(20))
            wire.ports[0].clogged = False
            wire.stuck = True
            await asyncio.sleep(0.1)
            heard = len(c.heard.messages)
            await asyncio.sleep(1)
            assert len(c.heard.messages) == heard
            wire.stuck = False
            await until(lambda: a.link.stats.queued == 0)
            assert a.link.stats.balance() == 0

    run(scenario())


def test_same_seed_same_run() -> None:
    async def scenario(seed: int) -> list[object]:
        wire = CanWire(seed=seed, faults=Faults(loss=0.02, corruption=0.05, duplication=0.02, jitter_s=0.001))
        with nodes(wire, 3) as made:
            await up(made)
            for step in range(200):
                say(made[step % 3].hub, None, frame(40, step))
                if step % 60 == 30:
                    wire.ports[step % 3].bus_off()
                await asyncio.sleep(0.2)
            return [*wire.log, *(node.heard.messages for node in made)]

    assert run(scenario(1)) == run(scenario(1)) != run(scenario(2))
