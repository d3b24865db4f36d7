import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridges.simulate import Faults, TcpWire, run
from bus.hub import Hub
from bus.transports.dialling import DialLink
from bus.transports.listening import ListenLink
from tests.bridges.support import MESSAGE, SIZES, RecordingPipe, frame, recorder, say
from tests.helpers.peers import until


class Station:
    """A hub with one link on the network, and a recorder."""

    def __init__(self, link: ListenLink | DialLink) -> None:
        self.hub, self.link = Hub(), link
        self.heard: RecordingPipe = recorder(self.hub)
        link.open(self.hub, asyncio.get_running_loop())


@contextmanager
def stations(wire: TcpWire, dialers: int = 1, **options: Any) -> Iterator[list[Station]]:
    made = [Station(wire.listen(**options)), *(Station(wire.dial(**options)) for _ in range(dialers))]
    yield made
    for station in made:
        station.link.close()


async def connected(server: Station, count: int = 1) -> None:
    await until(lambda: len(server.hub.pipes) == 1 + count)


def test_every_size_to_all_dialers_and_back() -> None:
    async def scenario() -> None:
        with stations(TcpWire(faults=Faults(delay_s=0.05, jitter_s=0.05)), 2) as (server, a, b):
            await connected(server, 2)
            messages = [frame(size) for size in SIZES]
            say(server.hub, None, *messages)
            await until(lambda: a.heard.messages == b.heard.messages == messages)
            say(a.hub, None, MESSAGE)
            await until(lambda: server.heard.messages[-1:] == [MESSAGE])
            await until(lambda: b.heard.messages[-1:] == [MESSAGE])

    run(scenario())


def test_loss_is_delay() -> None:
    async def scenario(loss: float) -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        wire = TcpWire(faults=Faults(loss=loss))
        with stations(wire) as (server, client):
            await connected(server)
            start_s = loop.time()
            for seed in range(200):
                say(client.hub, None, frame(60, seed))
                await asyncio.sleep(0.001)
            await until(lambda: len(server.heard.messages) == 200)
            assert server.heard.messages == [frame(60, seed) for seed in range(200)]
            return loop.time() - start_s, sum(e.what == "retransmitted" for e in wire.log)

    assert run(scenario(0.0))[0] < 0.3
    slow_s, lost = run(scenario(0.3))
    assert lost > 3
    assert slow_s > 0.4


def test_rate() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        with stations(TcpWire(rate_bytes_s=10_000)) as (server, client):
            await connected(server)
            start_s = loop.time()
            say(client.hub, None, *(frame(992, seed) for seed in range(50)))
            await until(lambda: len(server.heard.messages) == 50)
            return loop.time() - start_s

    assert run(scenario()) == pytest.approx(5.0, rel=0.02)


def test_reset_in_mid_frame_and_back() -> None:
    async def scenario() -> None:
        wire = TcpWire(rate_bytes_s=1000)
        with stations(wire) as (server, client):
            await connected(server)
            say(client.hub, None, *(frame(1000, seed) for seed in range(100)))
            await asyncio.sleep(3)
            wire.reset()
            await until(lambda: len(server.hub.pipes) == 1)
            await connected(server)
            say(client.hub, None, MESSAGE)
            await until(lambda: server.heard.messages[-1:] == [MESSAGE])

    run(scenario())


def test_unplugged_stuck_and_clogged() -> None:
    async def scenario() -> None:
        wire = TcpWire()
        with stations(wire, 2, queue_bytes=1 << 20) as (server, a, b):
            await connected(server, 2)
            loop = asyncio.get_running_loop()
            wire.clients[0].clogged = True
            pipes = {pipe.name: pipe for pipe in server.hub.pipes}
            pipe = next(pipe for name, pipe in pipes.items() if "client0" in name)
            for seed in range(1000):
                say(server.hub, None, frame(2000, seed % 10))
                await asyncio.sleep(0.001)
            await until(lambda: len(b.heard.messages) == 1000)
            assert pipe.stats.dropped["queue full"] > 100
            assert pipe.stats.balance() == 0
            wire.clients[0].clogged = False
            await until(lambda: len(a.heard.messages) == pipe.stats.sent and not pipe.stats.queued)
            wire.clients[0].unplug()
            await connected(server, 1)
            wire.clients[0].plug()
            await connected(server, 2)
            start_s = loop.time()
            wire.stuck = True
            say(server.hub, None, MESSAGE)
            await until(lambda: not wire.connections, 60)
            assert loop.time() - start_s == pytest.approx(25, abs=0.1)
            wire.stuck = False
            await connected(server, 2)

    run(scenario())


def test_same_seed_same_run() -> None:
    async def scenario(seed: int) -> list[object]:
        wire = TcpWire(seed=seed, faults=Faults(loss=0.1, delay_s=0.02, jitter_s=0.1))
        with stations(wire, 2) as made:
            await connected(made[0], 2)
            for step in range(200):
                say(made[step % 3].hub, None, frame(40, step))
                if step % 60 == 30:
                    wire.reset(wire.clients[0])
                await asyncio.sleep(0.2)
            return [*wire.log, *(station.heard.messages for station in made)]

    assert run(scenario(1), 1) == run(scenario(1), 1) != run(scenario(2), 2)


@pytest.mark.timeout(20)
def test_the_end_of_a_connection_is_late_too() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        with stations(TcpWire(faults=Faults(delay_s=0.2))) as (server, client):
            await connected(server)
            client.link.close()
            start_s = loop.time()
            await until(lambda: len(server.hub.pipes) == 1)
            return loop.time() - start_s

    assert 0.15 < run(scenario()) < 0.3


def test_a_half_open_connection_ends_by_keepalive() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        wire = TcpWire()
        with stations(wire) as (server, client):
            await connected(server)
            wire.halt()
            say(client.hub, None, MESSAGE)
            start_s = loop.time()
            await until(lambda: len(server.hub.pipes) == 1, 30)
            assert server.heard.messages == []
            waited_s = loop.time() - start_s
            await connected(server)
            return waited_s

    assert run(scenario()) == pytest.approx(25, abs=1)
