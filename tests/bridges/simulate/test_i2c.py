import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from bridges.simulate import Faults, I2cWire, SimulatedI2c, run
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, RecordingPipe, frame, recorder, say
from tests.helpers.peers import until

ADDRESSES = (0x20, 0x42)
ALL_SIZES = [frame(size) for size in SIZES]


class Plant:
    """A controller's hub, and a hub for each target."""

    def __init__(self, wire: I2cWire) -> None:
        loop = asyncio.get_running_loop()
        self.wire, self.link = wire, wire.link(retry_min_s=0.01)
        self.hub, self.far = Hub(), [Hub() for _ in wire.targets]
        self.heard: RecordingPipe = recorder(self.hub)
        self.heard_far = [recorder(hub) for hub in self.far]
        for target, hub in zip(wire.targets.values(), self.far, strict=True):
            target.join(hub, loop)
        self.link.open(self.hub, loop)

    async def up(self) -> None:
        await until(lambda: all(pipe.state == "up" for pipe in self.link.targets.values()))


@contextmanager
def plant(wire: I2cWire) -> Iterator[Plant]:
    made = Plant(wire)
    yield made
    made.link.close()
    ledgers = [pipe.stats for pipe in made.link.targets.values()]
    ledgers += [target.stats for target in wire.targets.values()]
    assert not any(stats.balance() for stats in ledgers)


def test_every_size_both_ways() -> None:
    async def scenario() -> None:
        with plant(I2cWire(ADDRESSES)) as p:
            await p.up()
            say(p.hub, p.heard, *ALL_SIZES)
            await until(lambda: all(one.messages == ALL_SIZES for one in p.heard_far))
            say(p.far[0], p.heard_far[0], *ALL_SIZES)
            await until(lambda: p.heard.messages == ALL_SIZES)
            assert isinstance(p.link, SimulatedI2c)

    run(scenario())


def test_bad_lines_cost_time_and_frames_but_never_make_one() -> None:
    async def scenario() -> None:
        wire = I2cWire(ADDRESSES, seed=4, faults=Faults(loss=0.1, corruption=2e-4))
        with plant(wire) as p:
            await p.up()
            sent = [frame(60, seed) for seed in range(100)]
            for message in sent:
                say(p.hub, p.heard, message)
                say(p.far[1], p.heard_far[1], message)
                await asyncio.sleep(1)
            await asyncio.sleep(10)
            for heard in (p.heard, p.heard_far[0], p.heard_far[1]):
                assert set(heard.messages) <= {*sent}
                assert len(heard.messages) > 80
            assert sum(event.what == "nack" for event in wire.log) > 100

    run(scenario())


def test_stuck_clogged_reset_and_unplugged() -> None:
    async def scenario() -> None:
        wire = I2cWire(ADDRESSES)
        with plant(wire) as p:
            await p.up()
            pipes, (first, second) = p.link.targets, wire.targets.values()
            wire.stuck = True
            await until(lambda: p.link.stuck)
            wire.stuck = False
            await p.up()
            first.clogged = True
            say(p.hub, p.heard, MESSAGE)
            await until(lambda: pipes[0x20].state == "stalled")
            assert p.heard_far[1].messages == [MESSAGE]
            assert not p.heard_far[0].messages
            first.clogged = False
            second.unplug()
            await until(lambda: pipes[0x42].state == "absent" and pipes[0x20].state == "up")
            second.plug()
            await p.up()
            first.reset()
            await until(lambda: pipes[0x20].resets > 0)
            await p.up()
            wire.unplug()
            await until(lambda: p.link.state == "waiting")
            wire.plug()
            await p.up()
            say(p.hub, p.heard, frame(20))
            await until(lambda: all(one.messages[-1:] == [frame(20)] for one in p.heard_far))

    run(scenario())


def test_same_seed_same_run() -> None:
    async def scenario(seed: int) -> list[object]:
        wire = I2cWire(ADDRESSES, seed=seed, faults=Faults(loss=0.1, corruption=1e-3))
        with plant(wire) as p:
            for step in range(50):
                say(p.hub, p.heard, frame(60, step))
                if step == 20:
                    wire.targets[0x20].reset()
                await asyncio.sleep(0.5)
            return [*wire.log, p.heard.messages, *(heard.messages for heard in p.heard_far)]

    assert run(scenario(1)) == run(scenario(1)) != run(scenario(2))
