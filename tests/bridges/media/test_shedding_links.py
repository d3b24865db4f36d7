"""Each link sheds by its policy where its medium accepts the next message: real links, simulated media."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.media import MEDIA
from bridges.media.i2c.mailbox_segments import Timing
from bridges.media.i2c.memory import MemoryAdapter
from bridges.media.i2c.pipe import TargetPipe
from bridges.media.shed_pipe import ShedHub, ShedLink
from bridges.media.shedding import Shed
from bridges.simulate import (
    CanWire,
    I2cWire,
    MulticastWire,
    RadioWire,
    SerialLine,
    SimulatedRs485,
    TcpWire,
    rs485_node,
    run,
)
from bus.balance import imbalances
from bus.hub import Hub
from bus.ledger import Stats
from bus.patch import join
from bus.wire.batch import Batch, payloads
from bus.wire.frame import pack
from tests.bridges.support import RecordingPipe, say
from tests.helpers.kinds import has_each
from tests.helpers.links import i2c_link
from tests.helpers.peers import until

ALL = ("uart", "rs485", "i2c", "can", "multicast", "radio", "tcp")
UNSIMULATED = ("url", "tmq", "udp")
"""Media without a simulated wire."""
SLOW = ("uart", "rs485", "i2c", "can")
QUEUE_BYTES = 8192


def reading(token: int, value: int, size: int = 0) -> bytes:
    return pack(1, (token,), value.to_bytes(4, "big") + bytes(size))


def value_of(message: bytes) -> int:
    return int.from_bytes(message[8:12], "big")


class Clocked(RecordingPipe):
    """A pipe that also remembers when each message came."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def send(self, batch: Batch) -> None:
        super().send(batch)
        self.times += [asyncio.get_running_loop().time()] * len(payloads(batch))


class Plant:
    """A bus, a bridge, a medium that sheds by `shed`, and a listener at its far end."""

    def __init__(self, kind: str, shed: Shed) -> None:
        loop = asyncio.get_running_loop()
        self.bus, self.far, self.heard = Hub("bus"), Hub("far"), Clocked()
        self.far.attach(self.heard)
        self.bridge = Bridge("joint", 7, clock=loop.time)
        join(self.bus, self.bridge.side("bus"))
        self.slow = self.bridge.side("slow")
        link, self.others, self.stall = getattr(self, f"_{kind}")(shed)
        self.links = [link, *self.others]
        link.open(self.slow, loop)
        for other in self.others:
            other.open(self.far, loop)

    def _uart(self, shed: Shed) -> Any:
        line = SerialLine(115200)
        near, far = line.link("near", shed=shed), line.link("far")
        return near, [far], lambda on: setattr(line.ends[1], "clogged", on)

    def _rs485(self, shed: Shed) -> Any:
        line = SerialLine(115200, shared=True)
        link = SimulatedRs485(line.end("master"), nodes=(1,), shed=shed)
        rs485_node(line.end(), 1, self.far, asyncio.get_running_loop())
        return link, [], None

    def _i2c(self, shed: Shed) -> Any:
        wire = I2cWire([0x42])
        target = wire.targets[0x42]
        target.join(self.far, asyncio.get_running_loop())
        return wire.link(shed=shed), [], lambda on: setattr(target, "clogged", on)

    def _can(self, shed: Shed) -> Any:
        wire = CanWire(bitrate=125_000)
        link = wire.link(1, shed=shed)
        return link, [wire.link(2)], lambda on: setattr(link.port, "clogged", on)

    def _multicast(self, shed: Shed) -> Any:
        wire = MulticastWire()
        link = wire.link(shed=shed)
        return link, [wire.link()], lambda on: setattr(link.end, "clogged", on)

    def _radio(self, shed: Shed) -> Any:
        wire = RadioWire()
        link = wire.link(shed=shed)
        return link, [wire.link()], lambda on: setattr(link.end, "clogged", on)

    def _tcp(self, shed: Shed) -> Any:
        wire = TcpWire()
        end = wire.client()
        return ShedLink(wire.listen(), shed), [end.dial()], lambda on: setattr(end, "clogged", on)

    async def up(self) -> "Plant":
        await until(lambda: bool(self.slow.ports) and all(self._is_up(link) for link in self.others))
        pipe = self.slow.ports[0].inner
        await until(lambda: not isinstance(pipe, TargetPipe) or pipe.state == "up")
        return self

    def _is_up(self, link: Any) -> bool:
        return link.state == "up" and len(self.far.pipes) > 1

    @property
    def stats(self) -> Stats:
        return self.slow.ports[0].inner.stats

    def say(self, *messages: bytes) -> None:
        say(self.bus, None, *messages)
        self.check()

    def check(self) -> None:
        assert imbalances([self.bus, self.bridge, self.far]) == []

    @property
    def messages(self) -> list[bytes]:
        return self.heard.messages

    async def drained(self) -> None:
        await until(lambda: (self.check(), not self.stats.queued)[1])  # type: ignore[func-returns-value]
        await asyncio.sleep(0.5)


@contextmanager
def plant(kind: str, **shed: Any) -> Iterator[Plant]:
    made = Plant(kind, Shed(**shed))
    stats = Stats()
    try:
        yield made
        stats = made.stats if made.slow.ports else stats
    finally:
        for link in made.links:
            link.close()
    made.check()
    assert stats.balance() == stats.queued == stats.queued_bytes == 0


def simulated(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(scenario())


BURST = [reading(token, value, 92) for value in range(50) for token in range(4)]
FIT = QUEUE_BYTES // len(BURST[0])
LEFT = {"newest": BURST[:FIT], "oldest": BURST[-FIT:], "conflate": BURST[-4:]}


@pytest.mark.parametrize("policy", LEFT)
@pytest.mark.parametrize("kind", ALL)
def test_a_burst_leaves_what_the_policy_keeps(kind: str, policy: str) -> None:
    async def scenario() -> None:
        with plant(kind, policy=policy, queue_bytes=QUEUE_BYTES, age_s=60) as p:
            await p.up()
            p.say(*BURST)
            await p.drained()
            assert p.messages == LEFT[policy]
            reason = "conflated" if policy == "conflate" else "shed"
            assert p.stats.dropped == {reason: len(BURST) - len(LEFT[policy])}

    simulated(scenario)


@pytest.mark.parametrize("kind", SLOW)
def test_what_has_begun_is_finished_and_what_follows_is_fresh(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    age_s, step_s = 0.05, 0.01
    monkeypatch.setattr("bridges.simulate.can._TX_FRAMES", 10)  # the link sees to that where it can

    async def scenario() -> None:
        with plant(kind, policy="conflate", age_s=age_s) as p:
            loop = asyncio.get_running_loop()
            await p.up()
            long, said = reading(1, 0, 2000), dict[int, float]()
            p.say(long)
            if kind == "i2c":  # simulated transactions take no time: the target has to dawdle
                p.stall(True)
                loop.call_later(3 * age_s, p.stall, False)
            while not p.messages:
                await asyncio.sleep(step_s)
                said[len(said) + 1] = loop.time()
                p.say(reading(1, len(said)))
            await p.drained()
            assert len(said) * step_s > 2 * age_s  # longer than the age limit on its way
            assert p.messages[0] == long
            assert p.messages[-1] == reading(1, len(said))
            for message, came_s in zip(p.messages[1:], p.heard.times[1:], strict=True):
                # Its own way: a few ms, polls included.
                assert came_s - said[value_of(message)] < age_s + 0.03
            assert set(p.stats.dropped) <= {"conflated", "aged out"}

    simulated(scenario)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "rs485"])
def test_a_command_from_before_a_stall_does_not_come_out_after_it(kind: str) -> None:
    async def scenario() -> None:
        with plant(kind, policy="newest", queue_bytes=1 << 16, age_s=0.3) as p:
            await p.up()
            command, stop = reading(1, 1), reading(1, 2)
            p.stall(True)
            number = 0
            while p.stats.queued < 20:  # what a driver or a kernel has is beyond any policy
                number += 1
                p.say(reading(9, number, 1000))
                await asyncio.sleep(0)
            p.say(command)
            await asyncio.sleep(0.35)
            if kind in ("uart", "tcp", "can"):  # nobody asks, but it is counted
                await until(lambda: p.stats.dropped.get("aged out", 0) > 10, 1)
            p.stall(False)
            p.say(stop)
            await p.drained()
            assert p.messages[-1] == stop
            assert command not in p.messages
            assert p.stats.dropped["aged out"] > 0

    simulated(scenario)


@pytest.mark.parametrize("kind", ["uart", "can", "multicast"])
def test_what_the_medium_did_not_take_can_be_replaced(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.simulate.can._TX_FRAMES", 10)

    async def scenario() -> None:
        with plant(kind, policy="conflate", age_s=60) as p:
            await p.up()
            p.stall(True)
            value = 0
            while not p.stats.queued:
                value += 1
                p.say(reading(1, value))
            for later in range(5):
                p.say(reading(1, value + later))
                await asyncio.sleep(0.01)
            p.stall(False)
            await p.drained()
            assert [value_of(message) for message in p.messages] == [*range(1, value), value + 4]

    simulated(scenario)


@pytest.mark.parametrize("shed", [{"policy": "newest"}, {"policy": "conflate"}], ids=["newest", "conflate"])
@pytest.mark.parametrize("kind", ["uart", "can", "multicast", "radio", "tcp"])
def test_what_is_purged_did_not_come_out_and_the_pipe_stays(kind: str, shed: dict[str, Any]) -> None:
    async def scenario() -> None:
        with plant(kind, age_s=60, queue_bytes=1 << 16, **shed) as p:
            await p.up()
            p.stall(True)
            said = list[bytes]()
            while p.stats.queued < 20:
                said.append(reading(len(said), 0, 1000))
                p.say(said[-1])
                await asyncio.sleep(0)
            pipe: Any = p.slow.ports[0].inner
            purged = pipe.purge("fenced")
            ledgers = [pipe.stats, *([pipe.inner.stats] if kind == "tcp" else [])]  # it and its stage
            assert sum(stats.dropped.get("fenced", 0) for stats in ledgers) == len(purged)
            assert all(set(stats.dropped) <= {"fenced"} for stats in ledgers)
            assert p.stats.queued == 0
            p.check()
            p.stall(False)
            p.say(reading(9999, 1))
            await p.drained()
            assert [*p.messages[:-1], *purged] == said
            assert p.messages[-1] == reading(9999, 1)

    simulated(scenario)


def test_a_pipe_that_cannot_purge_is_closed() -> None:
    async def scenario() -> None:
        with plant("i2c", rate=1.0, age_s=60) as p:
            await p.up()
            p.say(*(reading(token, 0) for token in range(3)))
            stats = p.stats
            assert p.slow.ports[0].inner.purge("fenced") == []
            assert stats.dropped["closed"] > 0
            assert not p.slow.ports

    simulated(scenario)


@pytest.mark.parametrize("rate", [20.0, 100.0])
@pytest.mark.parametrize("kind", ALL)
def test_a_rate_spaces_what_leaves(kind: str, rate: float) -> None:
    async def scenario() -> None:
        with plant(kind, rate=rate, age_s=60) as p:
            await p.up()
            await asyncio.sleep(1)  # a link that polls is idle by then
            p.say(*(reading(token, 0) for token in range(21)))
            await p.drained()
            assert len(p.messages) == 21
            assert 18 / rate < p.heard.times[-1] - p.heard.times[0] < 22 / rate
            assert min(b - a for a, b in zip(p.heard.times, p.heard.times[1:], strict=False)) > 0.4 / rate

    simulated(scenario)


@pytest.mark.parametrize("kind", ALL)
def test_a_link_that_closes_accounts_for_what_waits(kind: str) -> None:
    async def scenario() -> None:
        with plant(kind, rate=1.0, age_s=60) as p:
            await p.up()
            p.say(*(reading(token, 0) for token in range(10)))
            await asyncio.sleep(0.9)
            stats = p.stats
            p.links[0].close()
            p.check()
            assert stats.dropped == {"closed": 9}
            assert stats.queued == stats.queued_bytes == stats.balance() == 0
            if kind != "tcp":  # a link of a bus is opened once
                p.links[0].open(p.slow, asyncio.get_running_loop())
                await p.up()
                p.check()

    simulated(scenario)


@pytest.mark.parametrize("reload", ["another policy", "none any more"])
async def test_a_peer_that_goes_while_a_reload_sends_what_waits_hides_no_other(reload: str) -> None:
    hub, slow = Hub("bus"), Shed("oldest", rate=5.0)
    stages = ShedHub(hub, slow, asyncio.get_running_loop())
    peers = [RecordingPipe(str(number)) for number in range(3)]
    for peer in peers:
        stages.attach(peer)
    say(hub, None, reading(1, 1), reading(1, 2))
    for peer in peers[:2]:
        peer.on_send = partial(stages.detach, peer)
    if reload == "another policy":
        stages.revise(Shed("newest"))
    else:
        stages.flush()
    assert [len(peer.messages) for peer in peers] == [2, 2, 2]
    assert stages.pipes == (peers[2],)
    assert imbalances([hub]) == []


@pytest.mark.parametrize("policy", ["oldest", "conflate"])
async def test_a_thread_that_takes_and_a_loop_that_puts_keep_one_ledger(policy: Any) -> None:
    memory, hub, loop = MemoryAdapter([0x42], blocks=True), Hub(), asyncio.get_running_loop()
    link = i2c_link(1, [0x42], adapter=memory.open, shed=Shed(policy, 4096, age_s=0.01), poll_ms=0.1)
    link.open(hub, loop)
    stats = link.targets[0x42].stats
    await until(lambda: link.targets[0x42].state == "up")
    for value in range(3000):
        say(hub, None, reading(value % 5, value, 90))
        assert stats.balance() == 0
        if value % 20 == 0:
            await asyncio.sleep(0)
    for _ in range(20):  # one of them is in time, however busy the machine is
        say(hub, None, *(reading(token, 5000) for token in range(5)))
        await until(lambda: not stats.queued)
    heard = memory.heard[0x42]
    assert {message[4:8] for message in heard if value_of(message) == 5000} == {
        token.to_bytes(4, "big") for token in range(5)
    }
    assert len(heard) == stats.sent
    assert stats.offered == 3100 == stats.sent + sum(stats.dropped.values())
    assert set(stats.dropped) & {"conflated", "shed"}
    link.close()


def test_the_rate_of_a_target_does_not_wait_for_its_idle_poll() -> None:
    async def scenario() -> None:
        wire, loop, hub, far = I2cWire([0x42]), asyncio.get_running_loop(), Hub(), Hub()
        heard = Clocked()
        far.attach(heard)
        wire.targets[0x42].join(far, loop)
        link = wire.link(shed=Shed(rate=1.0), timing=Timing(idle_s=0.8))
        link.open(hub, loop)
        await until(lambda: link.targets[0x42].state == "up")
        await asyncio.sleep(10)
        say(hub, None, *(reading(token, 0) for token in range(5)))
        await until(lambda: len(heard.messages) == 5)
        assert heard.times[-1] - heard.times[0] < 4.1
        link.close()

    simulated(scenario)


def test_a_target_that_is_slow_does_not_shed_for_another() -> None:
    async def scenario() -> None:
        wire, loop, hub = I2cWire([0x20, 0x42]), asyncio.get_running_loop(), Hub()
        hubs = {address: Hub() for address in wire.targets}
        heard = {address: RecordingPipe() for address in hubs}
        for address, target in wire.targets.items():
            hubs[address].attach(heard[address])
            target.join(hubs[address], loop)
        link = wire.link(shed=Shed("conflate"))
        link.open(hub, loop)
        await until(lambda: all(pipe.state == "up" for pipe in link.targets.values()))
        wire.targets[0x20].clogged = True
        for value in range(20):
            say(hub, None, reading(1, value))
            await asyncio.sleep(0.05)
        assert len(heard[0x42].messages) == 20
        assert link.targets[0x20].stats.dropped["conflated"] >= 17
        link.close()
        assert imbalances([hub, *hubs.values()]) == []

    simulated(scenario)


def test_all_has_each_medium() -> None:
    kinds = ({*ALL} - {"rs485", "radio"}) | {"ieee802154"}
    has_each("ALL, or UNSIMULATED,", {*kinds, *UNSIMULATED}, MEDIA.ours())
