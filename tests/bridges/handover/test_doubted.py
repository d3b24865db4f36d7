"""A gateway that is back hears one side before the other: what was there already does not come back."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.handover.entrance import Rank
from bridges.handover.sides import SideRules
from bridges.handover.stamps import Stamps
from bridges.handover.window import Window
from bridges.policy import Policy
from bridges.rules import Seen
from bridges.simulate import CanWire, MulticastWire, RadioWire, SerialLine, run
from bus.hub import Hub
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack
from tests.bridges.handover.gate_support import SETUPS, Copy, World
from tests.bridges.handover.windows import every
from tests.bridges.support import RecordingPipe, recorder
from tests.helpers.peers import until

NEAR, FAR, THIRD = 0, 1, 2
Links = Callable[[], Any]
"""A function that makes one more link on a wire."""


def _can() -> Links:
    wire, nodes = CanWire(), count(1)
    return lambda: wire.link(next(nodes), fd=True)


WIRES: dict[str, Callable[[], Links]] = {
    "can": _can,
    "multicast": lambda: MulticastWire().link,
    "radio": lambda: RadioWire().link,
    "serial": lambda: SerialLine(baud=921600, shared=True).link,
}
"""Media that carry envelopes, and on which a gateway hears what another one sends."""


class Talker:
    """A station on a wire that remembers no keys: it notes all that it hears."""

    def __init__(self, make: Links, origin: int) -> None:
        self.hub, self.origin, self.said, self.link = Hub(), origin, 0, make()
        self.recorder: RecordingPipe = recorder(self.hub)
        self.link.open(self.hub, asyncio.get_running_loop())

    def say(self) -> None:
        self.said += 1
        frame = pack(1, (7, self.origin), b"%d" % self.said)
        self.hub.publish(from_payloads([wrap(frame, Envelope(self.origin, self.said))]), self.recorder)

    def heard(self) -> list[bytes]:
        return [take_apart(one).content for one in self.recorder.messages]


class Gateway:
    """A gateway's copy of the bridge between two wires; where all forward, number `rank` of the two."""

    def __init__(self, wires: list[Links], rank: int, parallel: bool) -> None:
        loop = asyncio.get_running_loop()
        self.bridge = Bridge("x", 0xABCD, pattern=(7,), clock=loop.time)
        hold_s = 0.04 * rank if parallel else 0.0
        policy = Policy(trunk=True, hold_s=hold_s, hold_always=parallel)
        self.sides = [self.bridge.side(str(number), policy) for number in range(len(wires))]
        self.links = [make() for make in wires]
        self.may = False
        if parallel:
            self.bridge.forward_beside_others(Rank(rank, 2))
        else:
            self.gate = self.bridge.stand_by(lambda _: self.may)

    async def open(self, number: int) -> None:
        self.links[number].open(self.sides[number], asyncio.get_running_loop())
        await until(lambda: self.links[number].state == "up")

    def promote(self) -> None:
        self.may = True
        self.gate.resume()

    def close(self) -> None:
        self.may = False
        for link in self.links:
            link.close()


class Site:
    """Two wires, a station on each, and two gateways, of which the first is open and forwards."""

    async def up(self, kind: str, parallel: bool = False) -> "Site":
        wires = [MulticastWire().link, WIRES[kind]()]
        self.stations = [Talker(wire, 77 + number) for number, wire in enumerate(wires)]
        self.first, self.second = (Gateway(wires, rank, parallel) for rank in range(2))
        for number in (NEAR, FAR):
            await self.first.open(number)
        await until(lambda: all(one.link.state == "up" for one in self.stations))
        if not parallel:
            self.first.promote()
        return self

    async def talk(self, *who: int) -> None:
        """Have some say ten frames each, in turn, so that they do not collide."""
        for _ in range(10):
            for number in who:
                self.stations[number].say()
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)

    async def hand_over(self) -> None:
        """Have the second gateway forward, the stations talk once more, and check what they have heard."""
        self.second.promote()
        await self.talk(NEAR, FAR)
        self.check()
        self.close()

    def check(self) -> None:
        """Check that each station has heard all that the other one said, once, and nothing of its own."""
        for here, there in (self.stations, self.stations[::-1]):
            expected = [pack(1, (7, there.origin), b"%d" % (n + 1)) for n in range(there.said)]
            assert sorted(here.heard()) == sorted(expected)

    def close(self) -> None:
        for link in (*self.first.links, *self.second.links, *(one.link for one in self.stations)):
            link.close()


@pytest.mark.parametrize("late", [NEAR, FAR], ids=["late near", "late far"])
@pytest.mark.parametrize("who", [(NEAR, FAR), (NEAR,), (FAR,)], ids=["both", "near", "far"])
@pytest.mark.parametrize("kind", WIRES)
def test_nothing_comes_back_from_a_gateway_that_heard_one_side_before_the_other(
    kind: str, who: tuple[int, ...], late: int
) -> None:
    async def scenario() -> None:
        site = await Site().up(kind)
        await site.second.open(1 - late)
        await site.talk(*who)
        await site.second.open(late)
        site.second.gate.blind(asyncio.get_running_loop().time())
        await site.talk(*who)
        assert site.second.gate.noted().keys() <= {"waiting", "heard"}
        assert site.second.gate.noted()["waiting"] == 0
        site.first.close()
        await site.hand_over()

    run(scenario())


@pytest.mark.parametrize("late", [NEAR, FAR], ids=["late near", "late far"])
@pytest.mark.parametrize("kind", WIRES)
def test_what_nobody_has_brought_is_sent_though_it_was_heard_before_the_other_side(
    kind: str, late: int
) -> None:
    async def scenario() -> None:
        site = await Site().up(kind)
        await site.second.open(1 - late)
        site.first.close()
        await site.talk(1 - late)
        await site.second.open(late)
        site.second.gate.blind(asyncio.get_running_loop().time())
        await site.talk(late)  # which tells nothing of the other way
        await site.hand_over()

    run(scenario())


@pytest.mark.parametrize("late", [NEAR, FAR], ids=["late near", "late far"])
@pytest.mark.parametrize("kind", WIRES)
def test_nor_does_anything_come_back_where_all_forward(kind: str, late: int) -> None:
    async def scenario() -> None:
        site = await Site().up(kind, parallel=True)
        await site.second.open(1 - late)
        await site.talk(NEAR, FAR)
        await site.second.open(late)
        await site.talk(NEAR, FAR)
        site.first.close()
        await site.talk(NEAR, FAR)
        own = [[take_apart(one).envelope for one in each.recorder.messages] for each in site.stations]
        assert not any(one and one.origin == 77 + number for number, some in enumerate(own) for one in some)
        site.close()

    run(scenario())


@pytest.mark.parametrize("late", [NEAR, FAR], ids=["late near", "late far"])
@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("seed", range(8))
def test_so_it_is_in_whatever_order_sides_are_read(seed: int, trunks: tuple[bool, bool], late: int) -> None:
    world = World(trunks, seed, equal=False, known=True)
    active, standby = "a", "b"
    world.copies[active].promote()
    for _ in range(3):
        world.die(standby)
        world.copies[standby] = back = Copy(standby, world)
        missing = world.media[late].ends.pop(standby)
        world.churn(60)
        world.media[late].ends[standby] = missing
        world.churn(20)
        world.drain(*world.copies)
        world.drain(*world.copies)
        back.gate.blind(world.clock.now)
        world.clock.now += 0.3
        world.churn(150)
        world.die(active)
        world.churn(20)
        world.drain(standby)
        back.promote()
        world.copies[active] = Copy(active, world)
        active, standby = standby, active
        world.churn(30)
    world.check()


def frame(origin: int, number: int, token: int = 1, hops: int = 8) -> bytes:
    return wrap(pack(1, (7, token), b"%d" % number), Envelope(origin, number, hops))


def doubting(*messages: bytes, sides: int = 2) -> Window:
    """Return a window that heard messages on the near side before it heard the others."""
    rules = [SideRules(every, every, trunk=True)] * sides
    heard = Window(rules, 1, Seen(), Stamps(), lambda: 5 << 32)
    for message in messages:
        heard.hear(NEAR, message, 1000.0)
    heard.void("blind", 1000.0, 1000.0)
    return heard


def sent(heard: Window, now: float = 1000.1) -> list[tuple[int, int]]:
    """Return the sides, as bits, and the number of what is sent at a takeover."""
    made = [(one.sides, int(take_apart(one.message).content[12:])) for one in heard.replay(now)]
    assert heard.stats.balance() == 0
    return made


@pytest.mark.parametrize("order", [(NEAR, FAR), (FAR, NEAR)])
def test_a_later_frame_on_both_sides_tells_that_the_earlier_ones_crossed(order: tuple[int, int]) -> None:
    heard = doubting(frame(9, 1), frame(9, 2))
    heard.hear(order[0], frame(9, 3), 1000.0)
    assert len(heard) == 3
    heard.hear(order[1], frame(9, 3), 1000.0)
    assert len(heard) == 0
    assert heard.stats.dropped == {"heard": 3}
    assert sent(heard) == []


def test_one_among_them_tells_of_those_before_it_only() -> None:
    heard = doubting(*(frame(9, number) for number in range(4)))
    heard.hear(FAR, frame(9, 2), 1000.0)
    assert sent(heard) == [(1 << FAR, 3)]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([(NEAR, frame(9, 2))], id="one side"),
        pytest.param([(FAR, frame(9, 2))], id="the other side"),
        pytest.param([(NEAR, frame(8, 2)), (FAR, frame(8, 2))], id="another origin"),
        pytest.param([(NEAR, frame(9, 2, token=2)), (FAR, frame(9, 2, token=2))], id="another topic"),
        pytest.param([(FAR, frame(9, 0))], id="one that came out late"),
    ],
)
def test_nothing_else_tells_that(later: list[tuple[int, bytes]]) -> None:
    heard = doubting(frame(9, 1))
    for side, message in later:
        heard.hear(side, message, 1000.05)
    assert (1 << FAR, 1) in sent(heard)


@pytest.mark.parametrize("order", [(NEAR, FAR), (FAR, NEAR)])
def test_so_it_is_of_frames_without_envelopes_that_another_candidate_stamped(order: tuple[int, int]) -> None:
    """A board sends without envelopes; the gateway that forwards is young, and stamps them as its own."""
    heard = doubting(frame(9, 1))
    bare = {NEAR: frame(9, 2), FAR: take_apart(frame(9, 2)).content}
    for side in order:
        heard.hear(side, bare[side], 1000.0)
    assert sent(heard) == []


def test_what_crossed_to_one_of_two_sides_is_due_on_the_other() -> None:
    heard = doubting(frame(9, 1), sides=3)
    heard.hear(FAR, frame(9, 2), 1000.0)
    heard.hear(THIRD, frame(9, 2), 1000.0)  # it may have come by one of these, before what is doubted
    assert (heard.stats.queued, heard.stats.dropped.get("heard")) == (2, None)
    heard.hear(NEAR, frame(9, 2), 1000.0)
    assert sent(heard) == []
    heard = doubting(frame(9, 1), sides=3)
    heard.hear(NEAR, frame(9, 2), 1000.0)
    heard.hear(FAR, frame(9, 2), 1000.0)
    assert sent(heard) == [(1 << THIRD, 1), (1 << THIRD, 2)]


def test_messages_that_are_no_frames_tell_of_each_other() -> None:
    rules = [SideRules(every, every, trunk=True, opaque=True)] * 2
    heard = Window(rules, 1, Seen(), Stamps(), lambda: 5 << 32)
    heard.hear(NEAR, wrap(b"hello", Envelope(9, 1)), 1000.0)
    heard.void("blind", 1000.0, 1000.0)
    for side in (FAR, NEAR):
        heard.hear(side, wrap(b"again", Envelope(9, 2)), 1000.0)
    assert heard.replay(1000.0) == []


def test_what_is_doubted_is_forgotten_with_the_window_and_its_sides() -> None:
    heard = doubting(frame(9, 1))
    rules = [SideRules(every, every, trunk=True)] * 2
    heard.revise(rules, (1, None), Stamps())
    for side in (NEAR, FAR):
        heard.hear(side, frame(9, 2), 1000.0)
    assert heard.stats.balance() == 0
    heard = doubting(frame(9, 1))
    heard.advance(1003.0)
    for side in (NEAR, FAR):
        heard.hear(side, frame(9, 2), 1003.0)
    assert heard.stats.dropped == {"stale": 1, "heard": 1}


def test_what_did_not_get_out_is_not_doubted() -> None:
    heard = doubting()
    heard.owe(FAR, [frame(9, 1)], 1000.0)
    heard.void("blind", 1000.0, 1000.0)
    for side in (NEAR, FAR):
        heard.hear(side, frame(9, 2), 1000.0)
    assert sent(heard) == [(1 << FAR, 1)]
