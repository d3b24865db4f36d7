"""Two copies of a bridge between media that both hear: one dies at any moment, each frame crosses once."""

from collections import Counter

import pytest

from bridges.bridge import Bridge
from bridges.front.hub import FrontHub
from bridges.front.settings import Front
from bridges.handover.entrance import Rank
from bridges.handover.gate import private_origin
from bridges.policy import Policy
from bridges.side import Side
from bus.hub import Hub
from bus.patch import join
from bus.renaming import Renaming
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack, unpack
from tests.bridges.handover.gate_support import SETUPS, Clock, Copy, Medium, Station, World, come_in
from tests.bridges.support import recorder, say


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
        come_in(world, active)
        active, standby = standby, active
    world.churn(100)
    world.check()
    world.check_rows()
    assert sum(world.stations[0].said.values()) > 50


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
    assert gate.noted() == {"waiting": 0}
    gate.pause()
    one.publish(from_payloads([pack(1, (7, 2), b"kept")]), ends[0])
    assert gate.noted() == {"waiting": 1}
    gate.blind(clock())
    assert gate.noted() == {"waiting": 0, "blind": 1}


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
        come_in(world, active)
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


def test_what_comes_back_from_where_no_other_gateway_is_heard_is_no_copy_of_what_was_sent_again() -> None:
    bridge = Bridge("x", 1, clock=Clock())
    sides = bridge.side("near", Policy()), bridge.side("device", Policy(deaf=True))
    gate = bridge.stand_by(lambda _: True)
    near, device = (recorder(side) for side in sides)
    frame = pack(1, (7, 1), b"echoed")
    gate.resume()
    gate.pause()
    say(sides[0], near, frame)
    assert gate.resume(again=True) == 1
    assert device.messages == [frame]
    say(sides[1], device, frame)
    assert near.messages == [frame]
