"""What a watch says of a frame is what the parts of this process did with it, and it leaves nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from appliance.explain import watch
from appliance.explain.arrival import Part
from appliance.explain.hop import Exit, Hop
from appliance.explain.watch import Watch
from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from bridges.bridge import Bridge
from bus.balance import imbalances
from bus.hub import Hub
from bus.wire.batch import Batch
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear, Slow, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

MARK = b"trace 0123456789abcdef"
TEXT = """\
name: t
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  p: {{on: gw, listen: ["tcp://127.0.0.1:{0}", {{url: "tcp://127.0.0.1:{1}", trunk: true}}]}}
  q: {{on: gw, listen: ["tcp://127.0.0.1:{2}"]}}
bridges:
  j: {{on: gw, pattern: a, join: [{{bus: p, deny: {{in: a/x}}}}, {{bus: q, deny: {{out: a/y}}}}]}}
"""


class Losing(Slow):
    """A slow pipe that may also lose what it was offered."""

    def lose(self) -> None:
        self.stats.drop("aged out", self.stats.queued)
        self.stats.queued = 0


class Narrow(Ear):
    """A pipe of a medium that carries shorter messages only."""

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.drop("oversize", batch.count)


class Stage(Ear):
    """A pipe that wraps another one, as those of shed policies and lists of peers do."""

    def __init__(self, hub: Hub) -> None:
        self.inner: Ear = Ear(Hub())
        super().__init__(hub)

    def send(self, batch: Batch) -> None:
        super().send(batch)
        self.inner.send(batch)


class World:
    """A gateway in this process, and a watch on it."""

    def __init__(self) -> None:
        self.ports = [free_port() for _ in range(3)]
        self.gateway = appliance_of(loads(TEXT.format(*self.ports)), "gw")
        self.gateway.open(asyncio.get_running_loop())
        self.parts = [part for part in self.gateway.parts.values() if isinstance(part, BusPart | BridgePart)]
        self.looks = 0
        self.watch = Watch(MARK, self.parts, asyncio.get_running_loop(), self.now_ns)

    def now_ns(self) -> int:
        self.looks += 1
        return self.looks

    def part(self, title: str) -> Part:
        return next(part for part in self.parts if part.title == title)

    def send(self, pattern: str, title: str = "bus p", number: int = 0) -> None:
        part = self.part(title)
        self.watch.send(part, part.entries[number], frame(pattern))

    def hops(self) -> dict[str, Hop]:
        return {f"{hop.part} by {hop.by}": hop for hop in self.watch.hops()}

    def listen(self, number: int) -> str:
        return f"listen tcp://127.0.0.1:{self.ports[number]}"

    def ear(self, title: str, kind: type[Ear] = Ear) -> Ear:
        """Return a peer of a bus, by its first address."""
        entry = self.part(title).entries[0]
        made = kind(entry.hub)
        made.hub.detach(made)
        made.link = entry.link.name
        made.hub.attach(made)
        return made


def frame(pattern: str, data: bytes = MARK) -> bytes:
    return pack(PUB, pattern_of(pattern), data)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    try:
        yield made
        assert imbalances(made.gateway.hubs()) == []
    finally:
        made.watch.close()
        assert all(not taps(part.hub) for part in made.parts)
        made.gateway.close()


def taps(hub: Hub) -> list[object]:
    """Return the taps of a watch that are on a hub and its sides."""
    sides = hub.sides if isinstance(hub, Bridge) else ()
    sent = hub.sent_taps if isinstance(hub, Bridge) else ()
    found = [tap for one in (hub, *sides) for tap in one.taps] + list(sent)
    return [tap for tap in found if "bound method Watch." in repr(tap)]


def way(hop: Hop, to: str) -> Exit:
    return next(way for way in hop.exits if way.to == to)


async def test_a_frame_that_is_delivered_is_seen_at_each_part_in_order() -> None:
    async with world() as w:
        ear = w.ear("bus q")
        w.send("a/b")
        hops = w.watch.hops()
        came = [(hop.part, hop.by, hop.stopped) for hop in hops]
        assert came == [
            ("bus p", w.listen(0), ()),
            ("bridge j", "bus p", ()),
            ("bus q", "bridge j", ()),
        ]
        assert sorted(hop.at_ns for hop in hops) == [hop.at_ns for hop in hops]
        out = way(hops[2], w.listen(2))
        assert (out.pipes, out.inside, out.stopped) == (1, False, ())
        assert out.at_ns is not None
        assert way(hops[0], "bridge j").inside
        assert way(hops[1], "bus q").inside
        assert way(hops[0], w.listen(1)).stopped == ("no peers",)
        assert ear.heard == [frame("a/b")]


@pytest.mark.parametrize("pattern", ["z", "a/x"])
async def test_a_frame_that_does_not_enter_a_bridge_is_stopped_there(pattern: str) -> None:
    async with world() as w:
        w.send(pattern)
        _, hop = w.watch.hops()
        assert (hop.part, hop.by, hop.stopped, hop.exits) == ("bridge j", "bus p", ("pattern",), ())


async def test_a_frame_that_a_side_does_not_let_out_is_stopped_on_that_way() -> None:
    async with world() as w:
        w.send("a/y")
        assert way(w.hops()["bridge j by bus p"], "bus q").stopped == ("pattern",)
        assert len(w.hops()) == 2


async def test_a_frame_that_comes_in_a_batch_with_others_is_told_apart() -> None:
    """The filter drops some of the batch, and the marked frame goes on."""
    async with world() as w:
        ear, speaker = w.ear("bus q"), w.ear("bus p")
        speaker.say(frame("a/y", b"1"), frame("a/b"), frame("z", b"2"))
        await asyncio.sleep(0)
        assert way(w.hops()["bridge j by bus p"], "bus q").stopped == ()
        assert frame("a/b") in ear.heard
        assert len(w.hops()) == 3


async def test_a_denied_frame_in_a_batch_with_others_is_told_apart() -> None:
    async with world() as w:
        ear, speaker = w.ear("bus q"), w.ear("bus p")
        speaker.say(frame("a/b", b"1"), frame("a/y"))
        await asyncio.sleep(0)
        assert way(w.hops()["bridge j by bus p"], "bus q").stopped == ("pattern",)
        assert len(ear.heard) == 1


async def test_a_frame_waits_at_a_slow_peer_until_it_is_sent() -> None:
    async with world() as w:
        slow = w.ear("bus q", Slow)
        assert isinstance(slow, Slow)
        w.send("a/b")
        waiting = way(w.hops()["bus q by bridge j"], w.listen(2))
        assert (waiting.at_ns, waiting.stopped) == (None, ())
        assert waiting.remarks == ("still waits at 1 of 1",)
        slow.let()
        await until(lambda: way(w.hops()["bus q by bridge j"], w.listen(2)).at_ns)


async def test_a_frame_that_waits_is_looked_at_until_it_has_gone_and_no_longer() -> None:
    async with world() as w:
        slow = w.ear("bus q", Slow)
        assert isinstance(slow, Slow)
        w.send("a/b")
        before = w.looks
        await until(lambda: w.looks > before + 5)
        slow.let()
        await until(lambda: w.watch._timer is None)  # noqa: SLF001


async def test_a_frame_that_comes_from_the_only_peer_of_a_link_is_counted_at_each_of_its_stages() -> None:
    """A pipe that is not accepted is the other end of its link: what comes in by that is from there."""
    async with world() as w:
        ear = w.ear("bus q", Stage)
        w.send("a/b", "bus q")
        assert isinstance(ear, Stage)
        assert ear.heard == []
        assert (ear.stats.received, ear.inner.stats.received) == (1, 1)
        assert w.watch.hops()[0].by == w.listen(2)


async def test_a_frame_that_is_dropped_while_it_waits_is_stopped() -> None:
    async with world() as w:
        slow = w.ear("bus q", Losing)
        assert isinstance(slow, Losing)
        w.send("a/b")
        slow.lose()
        await until(lambda: way(w.hops()["bus q by bridge j"], w.listen(2)).stopped == ("aged out",))


async def test_a_frame_that_a_medium_cannot_carry_is_stopped_on_that_way() -> None:
    async with world() as w:
        w.ear("bus q", Narrow)
        w.send("a/b")
        out = way(w.hops()["bus q by bridge j"], w.listen(2))
        assert (out.stopped, out.at_ns) == (("oversize",), None)


async def test_a_standby_is_named() -> None:
    async with world() as w:
        bridge = w.part("bridge j").hub
        assert isinstance(bridge, Bridge)
        bridge.stand_by(lambda _: False)
        w.send("a/b")
        assert w.hops()["bridge j by bus p"].stopped == ("standby",)


async def test_arrivals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "ARRIVALS_MAX", 4)
    async with world() as w:
        for _ in range(2):
            w.send("a/b")
        assert len(w.watch.hops()) == 4
        assert w.watch.more


async def test_a_watch_that_is_closed_sees_nothing_more() -> None:
    async with world() as w:
        w.watch.close()
        w.part("bus p").hub.publish(Batch(b"", 0))
        w.send("z")
        assert len(w.watch.hops()) == 1  # what it sent itself


async def test_a_frame_that_a_journal_keeps_says_so(tmp_path: Path) -> None:
    text = """\
name: t
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  p: {{on: gw, listen: "tcp://127.0.0.1:0", dial: [{{url: "{0}", trunk: true, durable: {1}}}]}}
"""
    durable = f"{{directory: {tmp_path}/j, for: far}}"
    gateway = appliance_of(loads(text.format(f"tcp://127.0.0.1:{free_port()}", durable)), "gw")
    gateway.open(asyncio.get_running_loop())
    seen = Watch(
        MARK,
        [part for part in gateway.parts.values() if isinstance(part, BusPart)],
        asyncio.get_running_loop(),
    )
    try:
        (part,) = (part for part in gateway.parts.values() if isinstance(part, BusPart))
        seen.send(part, part.entries[0], pack(PUB, pattern_of("a"), MARK))

        def said() -> list[str]:
            return [word for hop in seen.hops() for way in hop.exits for word in way.remarks]

        await until(lambda: "kept for far until acknowledged" in said(), what="the journal")
    finally:
        seen.close()
        gateway.close()
