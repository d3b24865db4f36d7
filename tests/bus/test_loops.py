"""Loops of plain links: noticed, proved by a canary, cut, and opened again; equal readings are not cut."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from functools import partial

from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.loops import CANARY_S, DELAY_S, PAUSE_S, QUARANTINE, RETURNS, TOKEN, LoopWatch
from bus.watched import HOLD_DOWN_S, WatchedHub
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack, unpack
from devices.raw import RawDevice
from tests.helpers.peers import Ear, until

READING = pack(1, (7,), b"21.5")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Wire:
    """A connection of two hubs by a queue, as a network has it. Messages arrive when the test says so."""

    def __init__(self, one: Hub, other: Hub, under_way: "deque[Callable[[], None]]") -> None:
        self.ends = tuple(
            WireEnd(f"{hub.name} to {far.name}", hub, under_way) for hub, far in ((one, other), (other, one))
        )
        self.ends[0].far, self.ends[1].far = self.ends[1], self.ends[0]


class WireEnd(Pipe):
    far: "WireEnd"

    def __init__(self, name: str, hub: Hub, under_way: "deque[Callable[[], None]]") -> None:
        self.name, self.stats, self.hub, self._under_way = name, Stats(), hub, under_way
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        kept = from_payloads(payloads(batch))
        self._under_way.append(lambda: self.far.hub.publish(kept, self.far))

    def close(self) -> None:
        self.hub.detach(self)


class Net:
    """Hubs in a ring; `run` lets time pass, one tick for each delivery."""

    def __init__(self, watched: int = 3) -> None:
        self.clock, self.under_way = Clock(), deque[Callable[[], None]]()
        count = 3
        self.hubs = [
            WatchedHub(f"hub{n}", self.clock) if n < watched else Hub(f"hub{n}") for n in range(count)
        ]
        for number, hub in enumerate(self.hubs):
            Wire(hub, self.hubs[(number + 1) % count], self.under_way)
        self.ears = [Ear(hub) for hub in self.hubs]

    def run(self, deliveries: int = 20_000, tick_s: float = 1e-4) -> bool:
        """Deliver messages. Return whether the net came to rest within so many deliveries."""
        for _ in range(deliveries):
            if not self.under_way:
                assert imbalances(self.hubs) == []
                return True
            self.clock.now += tick_s
            self.under_way.popleft()()
        return False

    def cuts(self) -> int:
        return sum(len(hub.cuts) for hub in self.hubs if isinstance(hub, WatchedHub))


def test_a_ring_is_cut_within_a_bounded_number_of_copies_and_serves_on() -> None:
    net = Net()
    net.ears[0].say(READING)
    assert net.run()
    assert net.cuts() >= 1
    assert max(len(ear.heard) for ear in net.ears) < 2 * QUARANTINE
    for ear in net.ears:
        ear.heard.clear()
    other = pack(1, (8,), b"after")
    net.ears[1].say(other)
    assert net.run()
    if net.cuts() == 1:
        assert [ear.heard.count(other) for ear in net.ears] == [1, 0, 1]


def test_a_cut_pipe_counts_what_it_does_not_carry() -> None:
    net = Net()
    net.ears[0].say(READING)
    assert net.run()
    hub = next(hub for hub in net.hubs if isinstance(hub, WatchedHub) and hub.cuts)
    pipe = hub.cuts[0].pipe
    before = pipe.stats.dropped.get("loop", 0)
    Ear(hub).say(b"more")
    assert pipe.stats.dropped["loop"] == before + 1
    assert pipe.stats.balance() == 0
    pipe.close()
    assert imbalances([hub]) == []


def cut_net() -> tuple[Net, WatchedHub, Ear]:
    """Return a ring that its only watching hub has cut, that hub, and a pipe to send there."""
    net = Net(watched=1)
    net.ears[0].say(READING)
    assert net.run()
    hub = net.hubs[0]
    assert isinstance(hub, WatchedHub)
    assert hub.cuts
    return net, hub, net.ears[0]


def speak(net: Net, ear: Ear, text: bytes, pause_s: float) -> None:
    net.clock.now += pause_s
    ear.say(pack(1, (9,), text))
    assert net.run()


def test_a_cut_is_tried_with_a_canary_and_lasts_twice_as_long_while_the_loop_is_there() -> None:
    net, hub, ear = cut_net()
    before = sum(len(other.heard) for other in net.ears)
    for second in range(int(2 * HOLD_DOWN_S)):
        speak(net, ear, b"%d" % second, 1.0)
        assert net.cuts() >= 1
    assert hub.cuts[0].hold_down_s == 2 * HOLD_DOWN_S
    assert sum(len(other.heard) for other in net.ears) - before < 10 * HOLD_DOWN_S


def test_a_cut_opens_when_the_loop_has_gone() -> None:
    net, hub, ear = cut_net()
    for end in [pipe for pipe in net.hubs[1].pipes if isinstance(pipe, WireEnd)]:
        end.close()
    speak(net, ear, b"try", 1.6 * HOLD_DOWN_S)
    assert hub.cuts
    speak(net, ear, b"open", CANARY_S + 0.1)
    assert hub.cuts == ()
    assert len(hub.pipes) == 3


def test_a_net_without_a_ring_is_never_cut_however_equal_its_readings() -> None:
    clock, under_way = Clock(), deque[Callable[[], None]]()
    one, other = WatchedHub("one", clock), WatchedHub("other", clock)
    Wire(one, other, under_way)
    near, far = Ear(one), Ear(other)
    heard = 0
    for _ in range(1500):
        near.say(READING)
        far.say(READING)
        heard += 2
        while under_way:
            under_way.popleft()()
        clock.now += 0.01
    assert one.cuts == other.cuts == ()
    canaries = [m for ear in (near, far) for m in ear.heard if m != READING]
    assert sum(len(ear.heard) for ear in (near, far)) - len(canaries) == heard
    assert len(canaries) <= 2 * 2 * (1 + 1500 * 0.01 / PAUSE_S)


def test_the_canary_looks_like_its_suspect_so_that_filters_let_it_by() -> None:
    watch = LoopWatch(lambda low, high: high, partial(secrets.token_bytes, 12))
    for way in [0, 1] * RETURNS:
        watch.look(READING, way, 5.0)
    assert watch.canary(5.0) is None
    canary = watch.canary(5.0 + DELAY_S)
    assert canary
    assert unpack(canary).tokens == (7, TOKEN)
    assert watch.canary(6.0) is None
    assert watch.came_back(b"before" + canary + b"after")
    assert not watch.came_back(canary)


def test_a_canary_that_does_not_come_back_clears_the_suspect_for_a_while() -> None:
    watch = LoopWatch(lambda low, high: 0.0, partial(secrets.token_bytes, 12))

    def storm(now: float) -> bytes | None:
        for way in [0, 1] * RETURNS:
            watch.look(READING, way, now)
        return watch.canary(now)

    assert storm(5.0)
    assert storm(5.0 + 2 * CANARY_S) is None
    assert storm(5.0 + 2 * CANARY_S + 1.01 * PAUSE_S) is not None


def test_a_message_that_is_no_frame_has_a_canary_too() -> None:
    watch = LoopWatch(lambda low, high: 0.0, partial(secrets.token_bytes, 12))
    for way in [0, 1] * RETURNS:
        watch.look(b"?", way, 5.0)
    canary = watch.canary(5.0)
    assert canary
    assert watch.came_back(canary)


def test_a_new_envelope_in_every_lap_does_not_hide_the_frame() -> None:
    hub = WatchedHub("stamped", Clock())
    ears = [Ear(hub), Ear(hub)]
    for sequence in range(2 * QUARANTINE):
        ears[sequence % 2].say(wrap(READING, Envelope(1, sequence)))
    assert ears[0].stats.rejected["loop"] > 0


async def test_three_devices_in_a_ring_are_no_storm() -> None:
    """Three `nng_device`s in a ring turn one message into tens of thousands of copies in two seconds."""
    loop, urls = asyncio.get_running_loop(), list[str]()
    devices: list[RawDevice] = []
    for number in range(3):
        devices.append(RawDevice(["tcp://127.0.0.1:0"], urls if number == 2 else urls[-1:]))
        devices[-1].open(loop)
        urls.append(devices[-1].links[0].url)
    ears = [Ear(device.hub) for device in devices]
    try:
        await until(lambda: all(len(device.hub.pipes) == 3 for device in devices))  # two peers and an `Ear`
        ears[0].say(READING)
        await until(lambda: any(device.hub.loops for device in devices))
        copies = sum(len(ear.heard) for ear in ears)
        ears[1].say(b"still served")
        await until(lambda: any(b"still served" in ear.heard for ear in ears))
        assert copies < 4 * 2 * QUARANTINE
    finally:
        for device in devices:
            device.close()


def test_two_cuts_both_open_when_their_loops_have_gone() -> None:
    clock = Clock()
    hub = WatchedHub("hub", clock)
    ends = [ears_end(hub, f"pipe{n}") for n in range(2)]
    for end in ends:
        prove_loop(hub, end, clock)
    assert {cut.pipe for cut in hub.cuts} == set(ends)
    mouth = Ear(hub)
    for _ in range(3):
        clock.now += 2 * HOLD_DOWN_S
        mouth.say(b"time has passed")
    assert hub.cuts == ()


def ears_end(hub: Hub, name: str) -> Ear:
    ear = Ear(hub)
    ear.name = name
    return ear


def prove_loop(hub: WatchedHub, end: Ear, clock: Clock) -> None:
    """Send a canary for a suspect and bring it back by `end`, which proves a loop."""
    canary = hub.watch.probe(READING, clock.now)
    hub.publish(from_payloads([canary]), end)


def test_what_opens_a_cut_goes_through_it_and_is_counted_once() -> None:
    net, hub, ear = cut_net()
    for end in [pipe for pipe in net.hubs[1].pipes if isinstance(pipe, WireEnd)]:
        end.close()
    speak(net, ear, b"try", 1.6 * HOLD_DOWN_S)
    stats = hub.cuts[0].pipe.stats
    offered, dropped = stats.offered, stats.dropped["loop"]
    speak(net, ear, b"open", CANARY_S + 0.1)
    assert hub.cuts == ()
    assert (stats.offered, stats.dropped["loop"]) == (offered + 1, dropped)


def test_a_cut_pipe_is_not_offered_what_it_brought() -> None:
    _, hub, _ = cut_net()
    pipe = hub.cuts[0].pipe
    offered = pipe.stats.offered
    hub.publish(from_payloads([READING]), pipe)
    assert pipe.stats.offered == offered
    assert pipe.stats.rejected["loop"] >= 1


def test_an_old_canary_does_not_delay_the_next_one() -> None:
    watch = LoopWatch(lambda low, high: 0.0, partial(secrets.token_bytes, 12))
    for now in (1.0, 3600.0):
        for way in [0, 1] * RETURNS:
            watch.look(READING, way, now)
        assert watch.canary(now)


def test_a_run_of_equal_messages_from_one_pipe_is_not_suspected() -> None:
    hub = WatchedHub("bus", Clock())
    near, far = Ear(hub), Ear(hub)
    for _ in range(100):
        near.say(*[READING] * 100)
    assert far.heard == [READING] * 10_000
