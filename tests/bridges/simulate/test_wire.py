import asyncio
import random

import pytest

from bridges.simulate import Event, Faults, SerialLine, SimulatedLoop, SimulationError, run
from bridges.simulate.wire import bend_bytes, strikes
from bus.hub import Hub
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.peers import until

HOUR_S = 3600.0


class Plant:
    """Two hubs at the two ends of a serial line."""

    def __init__(self, line: SerialLine, **options: object) -> None:
        loop = asyncio.get_running_loop()
        self.line = line
        self.hubs = Hub("near"), Hub("far")
        self.heard = recorder(self.hubs[0]), recorder(self.hubs[1])
        self.links = line.link("near", **options), line.link("far", **options)
        for link, hub in zip(self.links, self.hubs, strict=True):
            link.open(hub, loop)

    async def up(self) -> "Plant":
        await until(lambda: all(link.state == "up" for link in self.links))
        return self

    def close(self) -> None:
        for link in self.links:
            link.close()


def test_the_clock_jumps_and_timers_keep_their_order() -> None:
    async def scenario() -> list[tuple[float, str]]:
        loop, seen = asyncio.get_running_loop(), list[tuple[float, str]]()
        loop.call_later(HOUR_S, lambda: seen.append((loop.time(), "hour")))
        loop.call_later(1.5, lambda: seen.append((loop.time(), "early")))
        await asyncio.sleep(2 * HOUR_S)
        return seen

    assert run(scenario()) == [(1.5, "early"), (HOUR_S, "hour")]


def test_a_wait_that_cannot_end_is_an_error() -> None:
    loop = SimulatedLoop(patience_s=0.01)
    with pytest.raises(SimulationError, match="wait for ever"):
        loop.run_until_complete(loop.create_future())
    loop.close()


def test_random_is_seeded_and_put_back() -> None:
    async def draw() -> float:
        return random.random()

    random.seed(1)
    expected = random.Random(1).random()
    assert run(draw(), seed=7) == run(draw(), seed=7) != run(draw(), seed=8)
    assert random.random() == expected


async def chatter(seed: int) -> tuple[list[Event], list[bytes], list[bytes]]:
    """Send for 15 minutes over a noisy line, and unplug each end in turn."""
    line = SerialLine(
        9600, seed=seed, faults=Faults(loss=1e-3, corruption=1e-3, duplication=1e-3, jitter_s=0.02)
    )
    plant = await Plant(line).up()
    for step in range(300):
        for hub, size in zip(plant.hubs, (20, 60), strict=True):
            say(hub, None, frame(size, step))
        if step % 50 == 20:
            line.ends[step // 50 % 2].unplug()
        if step % 50 == 25:
            line.ends[step // 50 % 2].plug()
        await asyncio.sleep(3)
    plant.close()
    return list(line.log), plant.heard[0].messages, plant.heard[1].messages


def test_same_seed_same_run() -> None:
    first, second, other = run(chatter(5), 5), run(chatter(5), 5), run(chatter(6), 6)
    assert first == second
    assert first[0] != other[0]
    assert len(first[0]) > 600
    assert {"heard", "noise", "unplugged", "open"} <= {event.what for event in first[0]}


def test_a_clean_hour_at_four_messages_a_second() -> None:
    async def scenario() -> tuple[int, int, float]:
        plant = await Plant(SerialLine(115200)).up()
        for step in range(14400):
            say(plant.hubs[0], None, frame(60, step % 50))
            await asyncio.sleep(0.25)
        plant.close()
        return len(plant.heard[1].messages), plant.links[0].stats.sent, asyncio.get_running_loop().time()

    received, sent, now_s = run(scenario())
    assert received == sent == 14400
    assert now_s > HOUR_S - 1


def test_the_line_takes_the_time_that_its_baud_rate_says() -> None:
    async def scenario() -> float:
        plant = await Plant(SerialLine(9600)).up()
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        say(plant.hubs[0], None, *(frame(1024, seed) for seed in range(10)))
        await until(lambda: len(plant.heard[1].messages) == 10)
        plant.close()
        return loop.time() - start_s

    assert 10 * 1024 * 10 / 9600 < run(scenario()) < 10.5 * 1040 * 10 / 9600


def test_noise_costs_frames_but_never_makes_one() -> None:
    async def scenario() -> tuple[list[bytes], list[bytes]]:
        plant = await Plant(SerialLine(faults=Faults(corruption=2e-3, loss=5e-4, duplication=5e-4))).up()
        sent = [frame(60, seed) for seed in range(300)]
        for message in sent:
            say(plant.hubs[0], None, message)
            await asyncio.sleep(0.05)
        plant.close()
        assert plant.links[1].stats.rejected
        return sent, plant.heard[1].messages

    sent, received = run(scenario())
    assert set(received) < set(sent)
    assert len(received) > 150


def test_stuck_and_clogged() -> None:
    async def scenario() -> None:
        line = SerialLine()
        plant = await Plant(line, queue_bytes=8192).up()
        line.stuck = True
        say(plant.hubs[0], None, MESSAGE)
        await asyncio.sleep(1)
        assert not plant.heard[1].messages
        line.stuck = False
        line.ends[1].clogged = True
        for seed in range(100):
            say(plant.hubs[0], None, frame(1024, seed))
        await asyncio.sleep(1)
        stats = plant.links[0].stats
        assert not plant.heard[1].messages
        assert stats.dropped["queue full"] > 80
        line.ends[1].clogged = False
        await until(lambda: stats.queued == 0)
        await until(lambda: len(plant.heard[1].messages) == stats.sent - 1)
        assert stats.balance() == 0
        plant.close()

    run(scenario())


def test_pulled_out_in_the_middle_of_a_frame_and_put_back() -> None:
    async def scenario() -> None:
        plant = await Plant(SerialLine(9600)).up()
        say(plant.hubs[0], None, frame(2000))
        await asyncio.sleep(1)
        plant.line.ends[1].unplug()
        await until(lambda: plant.links[1].state == "waiting")
        assert "could not open" in plant.links[1].fault or "lost" in plant.links[1].fault
        await asyncio.sleep(60)
        plant.line.ends[1].plug()
        await until(lambda: plant.links[1].state == "up")
        say(plant.hubs[0], None, MESSAGE)
        await until(lambda: plant.heard[1].messages == [MESSAGE])
        plant.close()

    run(scenario())


def test_a_shared_pair_garbles_those_who_talk_at_once_and_echoes() -> None:
    async def scenario() -> None:
        loop, line = asyncio.get_running_loop(), SerialLine(shared=True, echo=True)
        a, b, c = (line.end(name).open(loop) for name in "abc")
        await asyncio.sleep(0)
        a.send(b"alone")
        await asyncio.sleep(0.1)
        assert [s.recv(99) for s in (a, b, c)] == [b"alone"] * 3
        a.send(b"both at")
        b.send(b"a time!")
        await asyncio.sleep(0.1)
        assert len(got := c.recv(99)) == 14
        assert b"both" not in got
        assert b"time" not in got
        assert sum(event.what == "collision" for event in line.log) == 6
        for sock in (a, b, c):
            sock.close()
        await asyncio.sleep(0.1)

    run(scenario())


def test_faults_are_checked() -> None:
    with pytest.raises(ValueError, match="probability"):
        Faults(loss=1.5)
    with pytest.raises(ValueError, match="negative"):
        Faults(delay_s=-1)
    with pytest.raises(ValueError, match="SerialLine cannot simulate reordering"):
        SerialLine(faults=Faults(reordering=0.1))
    line = SerialLine()
    line.end()
    line.end()
    with pytest.raises(ValueError, match="two ends"):
        line.end()


def test_strikes_come_at_their_rate() -> None:
    hits = list(strikes(random.Random(3), 0.01, 1_000_000))
    assert 9_500 < len(hits) < 10_500
    assert sorted(set(hits)) == hits
    assert list(strikes(random.Random(3), 1.0, 3)) == [0, 1, 2]
    assert bend_bytes(b"abc", random.Random(3), Faults(duplication=1)) == b"aabbcc"
    assert bend_bytes(b"abc", random.Random(3), Faults(loss=1)) == b""
