"""Two copies of a bridge between media that both hear: one dies at any moment, each frame crosses once."""

import random
from collections import Counter, deque
from functools import partial

import pytest

from bridges.bridge import Bridge
from bridges.front.hub import FrontHub
from bridges.front.settings import Front
from bridges.handover.entrance import Rank
from bridges.handover.gate import private_origin
from bridges.policy import Policy
from bridges.side import Port, Side
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.patch import join
from bus.renaming import Renaming
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack, unpack
from tests.bridges.support import recorder


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Medium:
    """A medium on which all ends hear all others, in order, but each end at its own time."""

    def __init__(self) -> None:
        self.ends: dict[str, End] = {}

    def join(self, name: str, hub: Hub) -> "End":
        end = self.ends[name] = End(name, hub, self)
        hub.attach(end)
        return end

    def carry(self, message: bytes, sender: "End") -> None:
        for end in self.ends.values():
            if end is not sender:
                end.coming.append(message)


class End(Pipe):
    """A pipe on a medium; `hear` receives the next message. A `slow` pipe sends only on `move`."""

    def __init__(self, name: str, hub: Hub, medium: Medium) -> None:
        self.name, self.hub, self.medium, self.stats = name, hub, medium, Stats()
        self.coming: deque[bytes] = deque()
        self.waiting: deque[bytes] = deque()
        self.slow = False

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.queued += batch.count
        self.waiting += payloads(batch)
        if not self.slow:
            self.move(batch.count)

    def move(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            self.stats.queued -= 1
            self.stats.sent += 1
            self.medium.carry(self.waiting.popleft(), self)

    def purge(self, reason: str) -> list[bytes]:
        messages = list(self.waiting)
        self.waiting.clear()
        self.stats.queued -= len(messages)
        self.stats.drop(reason, len(messages))
        return messages

    def hear(self, count: int) -> None:
        taken = [self.coming.popleft() for _ in range(min(count, len(self.coming)))]
        if taken:
            self.hub.publish(from_payloads(taken), self)

    def close(self) -> None:
        self.hub.detach(self)


class Station(Hub):
    """An application at the far end of a medium: it sends frames, and counts those it heard."""

    def __init__(self, medium: Medium, trunk: bool, origin: int) -> None:
        super().__init__("station")
        self.trunk, self.origin = trunk, origin
        self.said: Counter[bytes] = Counter()
        self.heard: Counter[bytes] = Counter()
        self.keys: list[tuple[int, int]] = []
        self.remembers = False  # as an appliance does: it takes no key twice
        self.end = medium.join("station", self)

    def say(self, frame: bytes) -> None:
        self.said[frame] += 1
        envelope = Envelope(self.origin, sum(self.said.values()))
        self.end.send(from_payloads([wrap(frame, envelope) if self.trunk else frame]))

    def publish(self, batch: Batch, origin: object = None) -> None:
        for message in payloads(batch):
            envelope, content, _ = take_apart(message)
            assert (envelope is not None) == self.trunk
            if envelope is not None:
                if self.remembers and (envelope[:2] in self.keys or envelope.origin == self.origin):
                    continue
                self.keys.append(envelope[:2])
            self.heard[content] += 1


class Copy:
    """One gateway's copy of the bridge."""

    def __init__(self, name: str, world: "World") -> None:
        self.bridge = Bridge("x", 0xABCD, clock=world.clock, pattern=() if world.opaque else (7,))
        self.sides: list[Side] = [
            self.bridge.side(str(n), Policy(trunk=trunk, opaque=world.opaque))
            for n, trunk in enumerate(world.trunks)
        ]
        self.may = False
        self.gate = self.bridge.stand_by(lambda _: self.may)
        doors = [world.door(number, side) for number, side in enumerate(self.sides)]
        self.ends = [medium.join(name, door) for medium, door in zip(world.media, doors, strict=True)]
        self.bridge.tap(partial(self._note, world.came))
        self.bridge.tap_came(partial(self._note, world.came))
        self.bridge.tap_sent(partial(self._note, world.left))

    def _note(self, seen: "Counter[tuple[str, bytes]]", batch: Batch, where: Pipe | str | None) -> None:
        """Count what a recorder of the bridge would, by the name of the side."""
        side = where.side.name if isinstance(where, Port) else str(where)
        seen.update((side, take_apart(message).content) for message in payloads(batch))

    def promote(self) -> None:
        self.may = True
        self.gate.resume()

    def balanced(self) -> bool:
        ports = [port for side in self.sides for port in side.ports]
        return self.gate.window.stats.balance() == 0 and all(
            port.stats.balance() == 0
            and port.inner.stats.received == port.stats.received + sum(port.stats.rejected.values())
            for port in ports
        )


class World:
    """`opaque`: the bridge joins buses, and half of what the stations say are no frames."""

    def __init__(
        self, trunks: tuple[bool, bool], seed: int, equal: bool, known: bool, opaque: bool = False
    ) -> None:
        self.clock, self.chance, self.trunks, self.equal = Clock(), random.Random(seed), trunks, equal
        self.opaque = opaque
        self.media = Medium(), Medium()
        self.came, self.left = Counter[tuple[str, bytes]](), Counter[tuple[str, bytes]]()
        self.stations = [
            Station(m, t, 77 + n) for n, (m, t) in enumerate(zip(self.media, trunks, strict=True))
        ]
        self.copies = {name: Copy(name, self) for name in "ab"}
        if known:
            self.clock.now += 11.0
        self.number = 0

    def door(self, number: int, side: Side) -> Hub:
        """Return the hub that the medium of a side joins."""
        return side

    def frame(self, side: int) -> bytes:
        self.number += 1
        data = str(self.chance.randrange(3) if self.equal else self.number).encode()
        return b"%d:%b" % (side, data) if self.opaque and self.number % 2 else pack(1, (7, side), data)

    def ends(self, who: str) -> list[End]:
        return [medium.ends[who] for medium in self.media if who in medium.ends]

    def churn(self, steps: int) -> None:
        """Send frames, and let some of those in flight arrive at some ends."""
        for _ in range(steps):
            self.clock.now += self.chance.random() * 0.002
            if self.chance.random() < 0.4:
                side = self.chance.randrange(2)
                self.stations[side].say(self.frame(side))
            ends = [end for medium in self.media for end in medium.ends.values()]
            self.chance.choice(ends).hear(self.chance.randint(1, 4))
            assert all(copy.balanced() for copy in self.copies.values())

    def drain(self, *names: str) -> None:
        """Let all frames in flight to these ends arrive, in any order."""
        while ends := [end for name in names for end in self.ends(name) if end.coming or end.waiting]:
            end = self.chance.choice(ends)
            end.hear(self.chance.randint(1, 3))
            end.move(self.chance.randint(1, 3))

    def die(self, who: str) -> None:
        """Kill a copy: frames in flight to it are lost, but frames that it sent are not."""
        del self.copies[who]
        for medium in self.media:
            medium.ends.pop(who, None)

    def check(self) -> None:
        self.drain("station", *self.copies)
        self.drain("station", *self.copies)
        for here, there in ((0, 1), (1, 0)):
            assert self.stations[there].heard == self.stations[here].said
        for station in self.stations:
            assert len(set(station.keys)) == len(station.keys)

    def check_rows(self) -> None:
        """Check that who records has seen all come that has left, what was sent at a takeover too."""
        for here, there in (("0", "1"), ("1", "0")):
            left = Counter({content: n for (side, content), n in self.left.items() if side == there})
            came = Counter({content: n for (side, content), n in self.came.items() if side == here})
            assert left <= came


SETUPS = [(True, True), (False, False), (True, False)]


@pytest.mark.parametrize("equal", [False, True], ids=["numbered", "equal readings"])
@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "young"])
@pytest.mark.parametrize("seed", range(12))
def test_whoever_dies_whenever_every_frame_crosses_once(
    trunks: tuple[bool, bool], seed: int, equal: bool, known: bool
) -> None:
    _three_takeovers(World(trunks, seed, equal, known))


@pytest.mark.parametrize("equal", [False, True], ids=["numbered", "equal readings"])
@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_opaque_messages_cross_once_too(trunks: tuple[bool, bool], seed: int, equal: bool) -> None:
    _three_takeovers(World(trunks, seed, equal, known=True, opaque=True))


class Renamed(World):
    """The medium to the right has names of its own, without the pattern of the bridge before them."""

    def door(self, number: int, side: Side) -> Hub:
        return FrontHub(side, Front(Renaming(prefix=(7,)))) if number else side

    def frame(self, side: int) -> bytes:
        made = super().frame(side)
        return pack(1, unpack(made).tokens[1:], unpack(made).data) if side else made

    def check(self) -> None:
        self.drain("station", *self.copies)
        self.drain("station", *self.copies)
        left, right = self.stations
        inside = [Counter({pack(1, (7, *f[1]), f[2]): n for m, n in c.items() for f in [unpack(m)]})
                  for c in (right.said, right.heard)]  # fmt: skip
        assert left.heard == inside[0]
        assert inside[1] == left.said


@pytest.mark.parametrize("equal", [False, True], ids=["numbered", "equal readings"])
@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_frames_with_other_names_on_a_side_cross_once_too(
    trunks: tuple[bool, bool], seed: int, equal: bool
) -> None:
    _three_takeovers(Renamed(trunks, seed, equal, known=True))


def _three_takeovers(world: World) -> None:
    active, standby = "a", "b"
    world.copies[active].promote()
    for _ in range(3):
        world.churn(150)
        world.die(active)
        world.churn(20)
        world.drain(standby)  # the settling time: the frames that the dead copy sent have arrived
        world.copies[standby].promote()
        world.churn(30)
        _join(world, active)
        active, standby = standby, active
    world.churn(100)
    world.check()
    world.check_rows()
    assert sum(world.stations[0].said.values()) > 50


def _join(world: World, name: str) -> None:
    """Add a copy that begins to listen; the frames it hears first have no counterpart.

    Those with envelopes it may send again, so stations remember keys from now on.
    """
    for station in world.stations:
        station.remembers = True
    world.copies[name] = Copy(name, world)
    world.churn(20)
    world.drain(*world.copies)
    world.drain(*world.copies)
    world.copies[name].gate.blind(world.clock.now)
    world.clock.now += 0.3


@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("seed", range(8))
def test_a_frozen_one_that_wakes_sends_nothing(trunks: tuple[bool, bool], seed: int) -> None:
    world = World(trunks, seed, False, True)
    a, b = world.copies["a"], world.copies["b"]
    a.promote()
    world.churn(100)
    frozen = [medium.ends.pop("a") for medium in world.media]
    backlog = [medium.ends["b"] for medium in world.media]
    a.may = False  # its lease runs out meanwhile
    world.churn(30)
    world.drain("b")
    b.promote()
    world.churn(50)
    for end, twin, medium in zip(frozen, backlog, world.media, strict=True):
        medium.ends["a"] = end
        end.coming.extend(twin.coming)
    sent = [end.stats.sent for end in frozen]
    while any(end.coming for end in frozen):
        for end in frozen:
            end.hear(2)
    assert [end.stats.sent for end in frozen] == sent
    world.churn(50)
    world.check()


def test_a_bridge_pauses_and_resumes_with_nothing_missing() -> None:
    world = World((True, False), 5, False, True)
    copy = world.copies["a"]
    copy.promote()
    world.churn(100)
    copy.gate.pause()
    world.churn(100)
    copy.gate.resume()
    world.churn(100)
    world.check()


def test_filters_hold_for_what_is_replayed() -> None:
    clock = Clock()
    bridge = Bridge("x", 1, clock=clock, pattern=(7,))
    one, two = bridge.side("one"), bridge.side("two", Policy(deny_out=[(7, 9)]))
    gate = bridge.stand_by(lambda _: True)
    media = Medium(), Medium()
    ends = [m.join("b", s) for m, s in zip(media, (one, two), strict=True)]
    far = Station(media[1], False, 5)
    frames = [pack(1, (8,), b"other"), pack(1, (7, 9), b"denied"), pack(1, (7, 1), b"mine")]
    one.publish(from_payloads(frames), ends[0])
    assert one.ports[0].stats.rejected == {"pattern": 1, "standby": 2}
    assert gate.resume() == 1
    far.end.hear(9)
    assert list(far.heard) == [frames[2]]


def test_two_that_forward_at_once_make_no_loop_of_a_trunk_and_a_plain_wire() -> None:
    """As when a partition parts them, soon after their start, when neither is sure of the common stamps."""
    clock, said = Clock(), pack(1, (7, 1), b"said")
    bridges = [Bridge("x", 1, clock=clock) for _ in range(2)]
    bus, wire = [b.side("bus", Policy(trunk=True)) for b in bridges], [b.side("wire") for b in bridges]
    for number, bridge in enumerate(bridges):
        bridge.stand_by(lambda _: True, rank=Rank(number, 2)).resume()
    wires = [recorder(side) for side in wire]
    join(bus[0], bus[1])
    wire[0].publish(from_payloads([said]), wires[0])
    assert wires[1].messages == []
    assert bus[1].ports[0].stats.rejected == {"echo": 1}
    other = wrap(said, Envelope(private_origin(2, 1), 5))
    bus[1].publish(from_payloads([other]), None)
    assert wires[1].messages == [said]


def test_a_process_frozen_on_the_way_through_sends_nothing_late() -> None:
    clock = Clock()
    bridge = Bridge("x", 1, clock=clock, pattern=(7,))
    one, two = bridge.side("one"), bridge.side("two")
    may = False
    gate = bridge.stand_by(lambda now: now < 1001.0 or may)
    media = Medium(), Medium()
    ends = [m.join("b", s) for m, s in zip(media, (one, two), strict=True)]
    far = Station(media[1], False, 5)
    gate.resume()
    bridge.tap(lambda *_: clock.sleep(2.0))
    one.publish(from_payloads([pack(1, (7, 1), b"late")]), ends[0])
    far.end.hear(9)
    assert not far.heard
    (port,) = two.ports
    assert port.stats.dropped == {"fenced": 1}
    assert port.stats.balance() == 0
    gate.pause()
    may = True
    assert gate.resume() == 1  # no other copy has had a turn
    far.end.hear(9)
    assert list(far.heard.values()) == [1]
    assert gate.window.stats.balance() == 0


def test_what_is_queued_when_the_lease_ends_goes_before_what_came_later() -> None:
    clock, may = Clock(), True
    bridge = Bridge("x", 1, clock=clock, pattern=(7,))
    one, two = bridge.side("one"), bridge.side("two")
    gate = bridge.stand_by(lambda _: may)
    media = Medium(), Medium()
    ends = [m.join("b", s) for m, s in zip(media, (one, two), strict=True)]
    far = Station(media[1], False, 5)
    ends[1].slow = True
    gate.resume()
    frames = [pack(1, (7, n), b"in order") for n in range(4)]
    one.publish(from_payloads(frames[:2]), ends[0])

    def lapse(*_: object) -> None:
        nonlocal may
        may = False

    bridge.tap(lapse)
    one.publish(from_payloads(frames[2:]), ends[0])
    assert two.ports[0].inner.stats.dropped == {"fenced": 2}
    gate.pause()
    may = True
    assert gate.resume() == 4
    ends[1].move(9)
    assert list(far.end.coming) == frames
    assert gate.window.stats.balance() == two.ports[0].stats.balance() == ends[1].stats.balance() == 0


def test_what_a_standby_says_itself_goes_out() -> None:
    bridge = Bridge("x", 1, pattern=(7,))
    side = bridge.side("one")
    bridge.stand_by(lambda _: False)
    medium = Medium()
    medium.join("b", side)
    far = Station(medium, False, 5)
    canary = pack(1, (7, 1), b"is there a loop?")
    bridge.publish(from_payloads([canary]))
    assert list(far.end.coming) == [canary]


class Wire(World):
    """A bus, and a wire whose devices speak a protocol, to which commands go in order.

    The data of commands are numbers, and their pattern is one of three.
    """

    def __init__(self, seed: int, replay_s: float | None) -> None:
        self.replay_s = replay_s
        super().__init__((False, False), seed, equal=False, known=True)
        self.old = Counter[bytes]()  # said more than the age before a takeover, and not yet heard then

    def age(self, copy: Copy) -> None:
        copy.bridge.revise_side(copy.sides[1], Policy(replay_s=self.replay_s))

    def frame(self, side: int) -> bytes:
        self.number += 1
        return pack(1, (7, side, self.chance.randrange(3)), b"%06d" % self.number)

    def take_over(self, active: str, standby: str, pause_s: float) -> None:
        self.die(active)
        self.drain(standby, "station")
        if pause_s >= (self.replay_s or 0):
            self.old |= self.stations[0].said - self.stations[1].heard
        self.clock.now += pause_s
        self.copies[standby].promote()


@pytest.mark.parametrize("replay_s", [0.1, 0.0], ids=["young only", "nothing"])
@pytest.mark.parametrize("seed", range(10))
def test_commands_come_in_order_once_and_none_comes_late(seed: int, replay_s: float) -> None:
    world = Wire(seed, replay_s)
    for copy in world.copies.values():
        world.age(copy)
    active, standby = "a", "b"
    world.copies[active].promote()
    for pause_s in (0.05, 0.2, 0.05):
        world.churn(150)
        world.take_over(active, standby, pause_s)
        world.churn(30)
        _join(world, active)
        world.age(world.copies[active])
        active, standby = standby, active
    world.drain("station", *world.copies)
    world.drain("station", *world.copies)
    bus, wire = world.stations
    assert bus.heard == wire.said
    assert bus.said - wire.heard == world.old  # lost outside of the age, and only there
    assert wire.heard - bus.said == Counter()  # none twice
    for topic in range(3):
        came = [frame for frame in wire.heard if unpack(frame).tokens[2] == topic]
        assert came == sorted(came, key=lambda frame: unpack(frame).data)
    assert all(copy.balanced() for copy in world.copies.values())


class Trio(World):
    """Three copies. Frames to a frozen copy wait."""

    def __init__(self, trunks: tuple[bool, bool], seed: int, equal: bool, known: bool) -> None:
        super().__init__(trunks, seed, equal, known)
        self.copies["c"] = Copy("c", self)
        self.frozen = set[str]()
        self._slow_down()
        self.clock.now += 11.0 * known

    def _slow_down(self) -> None:
        for copy in self.copies.values():
            for end in copy.ends:
                end.slow = True

    def ends(self, who: str) -> list[End]:
        return [] if who in self.frozen else super().ends(who)

    def churn(self, steps: int) -> None:
        for _ in range(steps):
            self.clock.now += self.chance.random() * 0.002
            if self.chance.random() < 0.25:
                side = self.chance.randrange(2)
                self.stations[side].say(self.frame(side))
            for who in self.chance.choices(["station", *self.copies], k=3):
                for end in self.ends(who):
                    end.hear(self.chance.randint(1, 4))
                    end.move(self.chance.randint(0, 3))
            assert all(copy.balanced() for copy in self.copies.values())

    def leave(self, who: str, fault: str) -> None:
        """Make a copy stop forwarding."""
        if fault == "dies":
            return self.die(who)
        self.copies[who].may = False
        if fault == "freezes":
            self.frozen.add(who)
        else:
            self.copies[who].gate.pause()
            self.copies[who].gate.purge()

    def come_back(self, who: str, fault: str) -> None:
        if fault == "dies":
            _join(self, who)
            return self._slow_down()
        if fault == "freezes":
            self.frozen.discard(who)
            self.copies[who].gate.purge()
            self.drain(who)
            self.drain(*self.copies)
            self.copies[who].gate.pause()
            for station in self.stations:
                station.remembers = True
            self.copies[who].gate.blind(self.clock.now)
            self.clock.now += 0.3


@pytest.mark.parametrize("equal", [False, True], ids=["numbered", "equal readings"])
@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "young"])
@pytest.mark.parametrize("seed", range(6))
def test_of_three_whichever_leaves_however_every_frame_crosses_once(
    trunks: tuple[bool, bool], seed: int, equal: bool, known: bool
) -> None:
    world = Trio(trunks, seed, equal, known)
    chance, active = world.chance, "a"
    world.copies[active].promote()
    for _ in range(4):
        world.churn(chance.randint(5, 100))
        fault = chance.choice(["dies", "freezes", "resigns"])
        before, active = active, chance.choice([who for who in "abc" if who != active or fault == "resigns"])
        world.leave(before, fault)
        world.churn(chance.randint(0, 20))
        world.drain(active)
        world.copies[active].promote()
        world.churn(chance.randint(5, 60))
        world.come_back(before, fault)
    world.churn(60)
    world.check()


@pytest.mark.parametrize("trunks", [(False, False), (True, False)], ids=["plain", "trunk, young"])
def test_what_the_other_had_queued_and_comes_late_does_not_go_back_to_its_sender(
    trunks: tuple[bool, bool],
) -> None:
    world = World(trunks, 1, False, False)
    world.copies["a"].promote()
    frame = world.frame(1)
    world.stations[1].say(frame)
    world.drain("a")  # it sends, and its frames arrive late
    late, original = world.ends("b")
    original.hear(1)
    world.copies["a"].gate.pause()
    world.copies["b"].promote()
    world.stations[0].say(world.frame(0))
    late.hear(9)
    world.drain("station", "b")
    assert world.stations[0].heard[frame] == 2  # this duplicate cannot be avoided
    assert world.stations[1].heard == world.stations[0].said
    rejected = [port.stats.rejected for side in world.copies["b"].sides for port in side.ports]
    assert rejected[0] == {"late": 1}
    assert world.copies["b"].balanced()
    world.clock.now += 0.3
    world.stations[0].say(frame)
    world.drain("b", "station")
    assert world.stations[1].heard[frame] == 1  # this one is new


def test_one_candidate_costs_a_bridge_nothing() -> None:
    assert Bridge("x", 1).gate is None
