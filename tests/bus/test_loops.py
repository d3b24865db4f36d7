"""Loops of plain links: noticed, proved by a canary, cut, and opened again; equal readings are not cut."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.loops import CANARY_S, DELAY_S, NONCE_BYTES, PAUSE_S, QUARANTINE, RETURNS, TOKEN, LoopWatch
from bus.rings import HOLD_DOWN_S
from bus.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack, unpack
from devices.raw import RawDevice
from tests.helpers.peers import Ear, until

READING, OTHER = pack(1, (7,), b"21.5"), pack(1, (7,), b"21.6")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Wire:
    """A connection of two hubs by a queue, as a network has it. Messages arrive when the test says so.

    `dialled`: the first hub has accepted it, and the other one dialled; else nobody knows.
    """

    def __init__(
        self, one: Hub, other: Hub, under_way: "deque[Callable[[], None]]", dialled: bool = False
    ) -> None:
        self.ends = tuple(
            WireEnd(f"{hub.name} to {far.name}", hub, under_way) for hub, far in ((one, other), (other, one))
        )
        self.ends[0].far, self.ends[1].far = self.ends[1], self.ends[0]
        self.ends[0].accepted = dialled


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


def watching(wait: Callable[[float, float], float] = lambda low, high: 0.0) -> LoopWatch[str]:
    return LoopWatch[str](wait, partial(secrets.token_bytes, NONCE_BYTES))


def suspicious(watch: LoopWatch[str], now: float, message: bytes = READING) -> list[bytes] | None:
    """Let a message come by two ways as often as is suspicious; return the canaries, if any."""
    for way in WAYS * RETURNS:
        watch.look(message, way, now)
    return watch.canaries(WAYS, now)


WAYS = ["left", "right"]


def test_the_canary_looks_like_its_suspect_so_that_filters_let_it_by() -> None:
    watch = watching(lambda low, high: high)
    assert suspicious(watch, 5.0) is None
    canaries = watch.canaries(WAYS, 5.0 + DELAY_S)
    assert canaries
    assert [unpack(canary).tokens for canary in canaries] == [(7, TOKEN)] * 2
    assert watch.canaries(WAYS, 6.0) is None


def test_a_canary_of_a_full_frame_takes_the_place_of_its_last_token() -> None:
    watch = watching()
    canaries = suspicious(watch, 5.0, pack(1, range(255)))
    assert canaries
    assert unpack(canaries[0]).tokens == (*range(254), TOKEN)


def test_a_canary_may_go_out_at_once() -> None:
    assert suspicious(watching(lambda low, high: low), 5.0)


def test_a_canary_tells_by_which_way_it_went_out() -> None:
    watch = watching()
    canaries = suspicious(watch, 5.0)
    assert canaries
    assert [watch.left_by(b"before" + canary + b"after") for canary in canaries] == WAYS
    assert watch.left_by(READING) is None


def test_who_heard_one_canary_cannot_make_that_of_another_way() -> None:
    watch = watching()
    canaries = suspicious(watch, 5.0)
    assert canaries
    forged = canaries[0][:-NONCE_BYTES] + bytes(NONCE_BYTES)
    assert watch.left_by(forged) is None
    assert watch.left_by(forged + canaries[1]) == "right"


def test_a_canary_is_answered_once_and_known_for_a_while() -> None:
    watch = watching()
    canaries = suspicious(watch, 5.0)
    assert canaries
    watch.prove()
    assert watch.left_by(canaries[1]) is None
    assert watch.is_ours(canaries[1])
    watch.expire(10.0)
    assert not watch.is_ours(canaries[1])
    assert not watch.alert


def test_a_canary_that_does_not_come_back_clears_the_suspect_for_a_while() -> None:
    watch = watching()
    assert suspicious(watch, 5.0)
    assert suspicious(watch, 5.0 + 2 * CANARY_S) is None
    assert suspicious(watch, 5.0 + CANARY_S + PAUSE_S - 0.001) is None
    assert suspicious(watch, 5.0 + CANARY_S + PAUSE_S)


def test_a_message_that_is_no_frame_has_a_canary_too() -> None:
    watch = watching()
    canaries = suspicious(watch, 5.0, b"?")
    assert canaries
    assert watch.left_by(canaries[0]) == "left"


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


async def test_who_connects_is_a_guest_and_who_was_dialled_is_not() -> None:
    loop = asyncio.get_running_loop()
    near = RawDevice(["tcp://127.0.0.1:0"])
    near.open(loop)
    far = RawDevice([], [near.links[0].url])
    far.open(loop)
    try:
        await until(lambda: bool(near.hub.pipes and far.hub.pipes))
        assert isinstance(near.hub, WatchedHub)
        assert isinstance(far.hub, WatchedHub)
        assert near.hub.is_guest(near.hub.pipes[0])
        assert not far.hub.is_guest(far.hub.pipes[0])
    finally:
        for device in (near, far):
            device.close()


def test_two_cuts_both_open_when_their_loops_have_gone() -> None:
    clock = Clock()
    hub = WatchedHub("hub", clock)
    keeper, ends = Ear(hub), [accepted_end(hub, f"pipe{n}") for n in range(2)]
    for end in ends:
        prove_ring(hub, end, keeper)
    assert {cut.pipe for cut in hub.cuts} == set(ends)
    mouth = Ear(hub)
    for _ in range(3):
        clock.now += 2 * HOLD_DOWN_S
        mouth.say(b"time has passed")
    assert hub.cuts == ()


def accepted_end(hub: Hub, name: str = "accepted") -> Ear:
    ear = Ear(hub)
    ear.name, ear.accepted = name, True
    return ear


def prove_ring(hub: WatchedHub, out: Ear, back: Ear, copies: int = 0) -> None:
    """Send a canary for a suspect by one pipe and bring it back by another."""
    canaries = hub.watch.probe(READING, hub.pipes, hub.clock())
    hub.watch.copies = copies
    hub.publish(from_payloads([canaries[hub.pipes.index(out)]]), back)


def test_of_a_ring_the_pipe_is_cut_that_was_accepted() -> None:
    for swapped in (False, True):
        hub = WatchedHub("hub", Clock())
        guest, chosen = accepted_end(hub), Ear(hub)
        prove_ring(hub, *((chosen, guest) if swapped else (guest, chosen)))
        assert [cut.pipe for cut in hub.cuts] == [guest]


def test_of_a_ring_of_equals_the_later_pipe_is_cut() -> None:
    for accepted in (False, True):
        for swapped in (False, True):
            hub = WatchedHub("hub", Clock())
            early, late = Ear(hub), Ear(hub)
            early.accepted = late.accepted = accepted
            prove_ring(hub, *((late, early) if swapped else (early, late)))
            assert [cut.pipe for cut in hub.cuts] == [late]


def test_an_echo_cuts_nothing_unless_it_is_a_storm() -> None:
    hub = WatchedHub("hub", Clock())
    far = accepted_end(hub)
    prove_ring(hub, far, far, QUARANTINE - 1)
    assert not hub.cuts
    prove_ring(hub, far, far, QUARANTINE)
    assert [cut.pipe for cut in hub.cuts] == [far]


def probe_cut(hub: WatchedHub, clock: Clock, pipe: Ear, mouth: Ear) -> None:
    """Let a cut's pause pass, so that it is probed, and have its pipe say all that it heard since."""
    pipe.heard.clear()
    clock.now += 2 * HOLD_DOWN_S
    mouth.say(b"time has passed")
    pipe.say(*pipe.heard)


def test_an_echo_keeps_a_pipe_cut_if_an_echo_had_it_cut() -> None:
    for was_echo in (True, False):
        clock = Clock()
        hub = WatchedHub("hub", clock)
        far, link = accepted_end(hub), Ear(hub)
        prove_ring(hub, far if was_echo else link, far, QUARANTINE)
        probe_cut(hub, clock, far, link)
        assert hub.cuts[0].hold_down_s == (2 if was_echo else 1) * HOLD_DOWN_S


def test_a_pipe_that_has_gone_with_its_canary_is_in_no_ring() -> None:
    hub = WatchedHub("hub", Clock())
    guest, link = accepted_end(hub), accepted_end(hub)
    canaries = hub.watch.probe(READING, hub.pipes, hub.clock())
    guest.close()
    hub.publish(from_payloads([canaries[0]]), link)
    assert hub.cuts == ()


def test_what_came_with_a_canary_goes_on_without_it() -> None:
    hub = WatchedHub("hub", Clock())
    guest, link, ear = accepted_end(hub), Ear(hub), Ear(hub)
    canaries = hub.watch.probe(READING, hub.pipes, hub.clock())
    hub.publish(from_payloads([b"before", canaries[0], b"after"]), link)
    assert ear.heard == [b"before", b"after"]
    assert link.stats.rejected == {"loop": 1}
    assert imbalances([hub]) == []
    assert [cut.pipe for cut in hub.cuts] == [guest]


def test_a_pipe_that_plays_canaries_again_is_cut_for_longer_each_time() -> None:
    clock = Clock()
    hub = WatchedHub("hub", clock)
    guest, link = accepted_end(hub), Ear(hub)
    found = list[float]()
    for _ in range(3):
        prove_ring(hub, guest, link)
        found.append(hub.cuts[0].hold_down_s)
        while hub.cuts:
            clock.now += 1.0
            link.say(b"time passes")
    assert found == [HOLD_DOWN_S, 2 * HOLD_DOWN_S, 4 * HOLD_DOWN_S]


class Attack:
    """A peer of two buses that are joined by a link, which the second has dialled. It plays canaries.

    It came after the link, unless it is `early`. It says READING by both pipes, and `play` plays what it
    hears.
    """

    def __init__(self, play: Callable[["Attack"], None], early: bool = False) -> None:
        self.clock, self.under_way = Clock(), deque[Callable[[], None]]()
        self.near, self.far = WatchedHub("near", self.clock), WatchedHub("far", self.clock)
        if early:
            self.evil = accepted_end(self.near, "evil"), accepted_end(self.far, "evil")
        self.link = Wire(self.near, self.far, self.under_way, dialled=True)
        if not early:
            self.evil = accepted_end(self.near, "evil"), accepted_end(self.far, "evil")
        self.ears = Ear(self.near), Ear(self.far)
        self._play = play

    def run(self, seconds: float) -> None:
        for step in range(int(100 * seconds)):
            self.clock.now += 0.01
            for evil in self.evil:
                evil.say(READING)
            self.ears[step % 2].say(b"legit %d" % step)
            while self.under_way:
                self.under_way.popleft()()
            self._play(self)
            while self.under_way:
                self.under_way.popleft()()

    def heard_canaries(self, place: int) -> list[bytes]:
        heard = [m for m in self.evil[place].heard if b"canary" in m]
        self.evil[place].heard.clear()
        return heard

    def is_joined(self) -> bool:
        return not any(cut.pipe in self.link.ends for hub in (self.near, self.far) for cut in hub.cuts)


def swap(attack: Attack) -> None:
    """Play what each bus said into the other."""
    for place in (0, 1):
        for canary in attack.heard_canaries(place):
            attack.evil[1 - place].say(canary)


def echo(attack: Attack) -> None:
    """Play what a bus said into the same bus, so that it goes back over the link it came by."""
    for place in (0, 1):
        for canary in attack.heard_canaries(place):
            attack.evil[place].say(canary)


@pytest.mark.parametrize(("play", "early"), [(swap, False), (echo, False), (echo, True)])
def test_a_peer_that_plays_canaries_does_not_cut_the_link(
    play: Callable[[Attack], None], early: bool
) -> None:
    attack = Attack(play, early)
    for _ in range(60):
        attack.run(1.0)
        assert attack.is_joined()
    assert attack.ears[0].heard.count(b"legit 1") == attack.ears[1].heard.count(b"legit 0") > 0
    assert (attack.near.loops + attack.far.loops > 0) == (play is swap)


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
    watch = watching()
    for now in (1.0, 3600.0):
        assert suspicious(watch, now)


def test_a_run_of_equal_messages_from_one_pipe_is_not_suspected() -> None:
    hub = WatchedHub("bus", Clock())
    near, far = Ear(hub), Ear(hub)
    for _ in range(100):
        near.say(*[READING] * 100)
    assert far.heard == [READING] * 10_000


def test_nothing_is_suspected_before_a_message_came() -> None:
    watch = watching()
    assert (watch.suspect, watch.copies, watch.alert) == (None, 0, False)
    assert NONCE_BYTES == 12


def counting_watch() -> LoopWatch[str]:
    numbers = count()
    return LoopWatch[str](lambda _, high: high, lambda: next(numbers).to_bytes(NONCE_BYTES, "big"))


def suspected(watch: LoopWatch[str]) -> tuple[bytes | None, int]:
    return watch.suspect, watch.copies


def twice(watch: LoopWatch[str], copies: int, now: float, data: bytes = READING) -> bool:
    """Let a message come by two ways, `copies` times in all."""
    watch.look(data, "a", now)
    return watch.look(data, "b", now, copies - 1)


def test_equal_readings_are_suspicious_from_32_by_two_ways_or_5000_by_one() -> None:
    watch = counting_watch()
    twice(watch, 31, 0.0)
    assert suspected(watch) == (None, 0)
    watch.look(READING, "b", 0.0)
    assert suspected(watch) == (READING, 32)
    alone = counting_watch()
    for _ in range(4999):
        assert not alone.look(READING, "a", 0.0, 100)
    assert suspected(alone) == (None, 0)
    alone.look(READING, "a", 0.0, 100)
    assert suspected(alone) == (READING, 5000)


def test_counts_begin_anew_after_a_second_or_4096_contents() -> None:
    watch = counting_watch()
    twice(watch, 31, 0.0)
    watch.look(READING, "b", 1.0)
    twice(watch, 30, 1.9)
    assert watch.suspect is None
    for number in range(4095):
        watch.look(pack(1, (number,)), "a", 1.9)
    watch.look(READING, "b", 1.9)
    assert watch.suspect is None
    twice(watch, 31, 1.9)
    assert watch.suspect == READING


@pytest.mark.parametrize(("copies", "due_s"), [(127, 0.01), (128, 0.0)])
def test_a_canary_is_due_within_10_ms_and_at_once_for_many_copies(copies: int, due_s: float) -> None:
    watch = counting_watch()
    twice(watch, copies, 0.0)
    assert (watch.canaries("ab", 0.009) is None) == (due_s > 0)
    assert due_s == 0 or len(watch.canaries("ab", due_s) or ()) == 2
    assert watch.canaries("ab", due_s) is None  # they are out


def test_a_suspect_of_1000_copies_stays_until_its_canaries_are_out_for_50_ms() -> None:
    watch = counting_watch()
    assert not twice(watch, 999, 0.0)
    assert watch.look(READING, "b", 0.0)
    assert watch.canaries("ab", 0.0)
    assert watch.look(READING, "b", 0.04)
    assert not watch.look(READING, "b", 0.05)


def test_a_canary_tells_by_which_way_it_went_for_a_second() -> None:
    watch = counting_watch()
    twice(watch, 128, 0.0)
    one, other = watch.canaries("ab", 0.0) or (b"", b"")
    assert (watch.left_by(one), watch.left_by(b"x" + other), watch.left_by(READING)) == ("a", "b", None)
    assert watch.alert
    watch.expire(0.25)
    assert suspected(watch) == (READING, 128)
    watch.expire(0.26)
    assert suspected(watch) == (None, 0)
    assert watch.left_by(one) is None
    watch.expire(1.0)
    assert watch.is_ours(one)
    assert watch.alert
    watch.expire(1.01)
    assert not watch.is_ours(one)
    assert not watch.alert


def test_after_a_canary_that_found_nothing_only_a_storm_is_suspicious_for_a_while_that_doubles() -> None:
    watch, now = counting_watch(), 0.0
    for pause_s in (5, 10, 20, 40, 80, 160, 320, 640, 640):
        twice(watch, 128, now)
        assert watch.canaries("ab", now)
        watch.expire(now + 0.26)
        rest_s = now + 0.25 + pause_s
        twice(watch, 9_999, rest_s - 0.01)
        assert watch.suspect is None
        now = rest_s + 1.0
    twice(watch, 128, now)
    watch.prove()
    twice(watch, 128, now)
    assert watch.canaries("ab", now)
    watch.expire(now + 0.26)
    twice(watch, 10_000, now + 1.0)
    assert watch.suspect == READING
    watch.drop()
    for _ in range(10_000):
        watch.look(OTHER, "a", now + 1.5)
    assert watch.suspect is None
    twice(watch, 32, now + 5.26)
    assert watch.suspect == READING
