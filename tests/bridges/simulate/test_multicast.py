import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bridges.simulate import Faults, MulticastWire, SimulatedMulticast, run
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, RecordingPipe, frame, recorder, say
from tests.helpers.peers import until


class Host:
    """A hub with one link in the group, and a recorder."""

    def __init__(self, link: SimulatedMulticast) -> None:
        self.hub, self.link = Hub(), link
        self.heard: RecordingPipe = recorder(self.hub)
        link.open(self.hub, asyncio.get_running_loop())


@contextmanager
def hosts(wire: MulticastWire, count: int, **options: Any) -> Iterator[list[Host]]:
    made = [Host(wire.link(**options)) for _ in range(count)]
    yield made
    for host in made:
        host.link.close()
        assert host.link.stats.balance() == 0


async def up(made: list[Host]) -> None:
    await until(lambda: all(host.link.state == "up" for host in made))


def test_every_size_to_every_host_and_none_back() -> None:
    async def scenario() -> None:
        with hosts(MulticastWire(), 3) as (a, b, c):
            await up([a, b, c])
            messages = [frame(size) for size in SIZES]
            say(a.hub, a.heard, *messages)
            await until(lambda: b.heard.messages == c.heard.messages == messages)
            assert not a.heard.messages
            assert a.link.stats.rejected["echo"] > 0

    run(scenario())


def test_bad_network_costs_messages_but_never_makes_one() -> None:
    async def scenario() -> tuple[list[bytes], list[bytes], set[str]]:
        rates = Faults(loss=0.05, duplication=0.05, reordering=0.05, corruption=0.05, jitter_s=0.01)
        wire = MulticastWire(seed=2, faults=rates)
        with hosts(wire, 2) as (a, b):
            await up([a, b])
            sent = [frame(60 if seed % 2 else 3000, seed) for seed in range(300)]
            for message in sent:
                say(a.hub, a.heard, message)
                await asyncio.sleep(0.1)
            assert b.link.stats.rejected
            return sent, b.heard.messages, {event.what for event in wire.log}

    sent, received, happened = run(scenario())
    assert {"lost", "doubled", "overtaken", "corrupted"} <= happened
    assert set(received) < set(sent)
    assert len(set(received)) > 200


def test_unplugged_stuck_and_clogged() -> None:
    async def scenario() -> None:
        wire = MulticastWire(rate_bytes_s=1e6)
        with hosts(wire, 2, queue_bytes=65536) as (a, b):
            await up([a, b])
            wire.members[1].unplug()
            await until(lambda: b.link.state == "waiting")
            assert b.link.fault.startswith("host1 has no carrier")
            wire.members[1].plug()
            await up([a, b])
            wire.stuck = True
            say(a.hub, a.heard, MESSAGE)
            await asyncio.sleep(1)
            wire.stuck = False
            assert not b.heard.messages
            wire.members[0].clogged = True
            for seed in range(300):
                say(a.hub, a.heard, frame(1000, seed))
            assert a.link.stats.dropped["queue full"] > 50
            assert a.link.stats.balance() == 0
            wire.members[0].clogged = False
            await until(lambda: not a.link.stats.queued)
            await until(lambda: len(b.heard.messages) == a.link.stats.sent - 1)

    run(scenario())


def test_same_seed_same_run() -> None:
    async def scenario(seed: int) -> list[object]:
        wire = MulticastWire(seed=seed, faults=Faults(loss=0.1, reordering=0.1, jitter_s=0.02))
        with hosts(wire, 3) as made:
            await up(made)
            for step in range(100):
                say(made[step % 3].hub, None, frame(2500 if step % 5 else 40, step))
                if step % 40 == 20:
                    wire.members[step % 3].unplug()
                    wire.members[step % 3].plug()
                await asyncio.sleep(0.2)
            return [*wire.log, *(host.heard.messages for host in made)]

    assert run(scenario(1)) == run(scenario(1)) != run(scenario(2))
