"""A window that compares lists of messages says what one says that looks at each: about any traffic."""

from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.handover.in_order import InOrderWindow
from bridges.handover.replay import Due
from bridges.handover.sides import SideRules
from bridges.handover.stamps import LIFE_S, Stamps
from bridges.handover.window import Window
from bridges.rules import Seen
from bus.ledger import Stats
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack

OURS, FAR, OTHER_CANDIDATE, OWN = 1, 77, 5, 6
TRUNK, WIRE = 0, 1
BEGAN_S = 1000.0


def every(_: bytes) -> bool:
    return True


def reading(frame: bytes) -> bool:
    return frame.startswith(pack(1, (7,))[:1]) and frame[4:8] == b"\0\0\0\7"


def rules(replay_s: float | None = None) -> list[SideRules]:
    """Return those of a trunk, and of a wire on which readings come in, and all may go out."""
    return [SideRules(every, every, trunk=True), SideRules(reading, every, replay_s=replay_s)]


def settled() -> Stamps:
    """Return stamps that have listened for long enough."""
    stamps = Stamps()
    stamps.advance(0.0)
    stamps.advance(BEGAN_S)
    return stamps


class Listener:
    """A window of one kind, with all that it is told, and what it counts."""

    def __init__(self, kind: type[Window], replay_s: float | None, is_young: bool) -> None:
        self.stamps, self.stats = Stamps() if is_young else settled(), Stats()
        self.stamps.advance(BEGAN_S)
        own = count(OWN << 32)
        self.rules = rules(replay_s)
        self.window = kind(self.rules, OURS, Seen(), self.stamps, own.__next__)

    def hear(self, side: int, messages: Sequence[bytes], now: float) -> None:
        self.window.advance(now)
        self.window.hear_all(side, from_payloads(messages), now, self.stats)

    def told(self, now: float) -> tuple[object, ...]:
        """Return all that can be seen of it, without a change."""
        stats = self.window.stats
        ledger = stats.offered, stats.queued, stats.dropped, stats.balance()
        return ledger, self.stats.rejected, len(self.window), self.window.lag_s(now)


def by_side(due: Sequence[Due]) -> list[list[tuple[bytes, int, int, int]]]:
    """Return what is due on each side, in order: the sides are asked one after the other."""
    return [
        [
            (without_private(one.message), one.hops, one.withheld, one.came)
            for one in due
            if (one.sides | one.withheld) >> side & 1
        ]
        for side in (TRUNK, WIRE)
    ]


def without_private(message: bytes) -> bytes:
    """Return a message without the key that nobody else knows: its number counts only what had one."""
    envelope, content, _ = take_apart(message)
    return content if envelope is not None and envelope.origin == OWN else message


class Active:
    """The gateway that forwards: it stamps what it heard on the wire, and sends what comes by the trunk.

    What it stamped reaches the standby with these `hops` left.
    """

    def __init__(self, hops: int) -> None:
        self.stamps, self.sequence, self.hops = settled(), count(1), hops
        self.to_trunk: list[bytes] = []
        self.to_wire: list[bytes] = []

    def hear(self, frames: Sequence[bytes], now: float) -> None:
        self.stamps.advance(now)
        stamped = (Envelope(OURS, self.stamps.take(one), self.hops) for one in frames)
        self.to_trunk += map(wrap, frames, stamped)

    def far(self, number: int) -> bytes:
        """Return a frame of another gateway, which this one puts on the wire."""
        frame = pack(1, (8, number))
        self.to_wire.append(frame)
        return wrap(frame, Envelope(FAR, next(self.sequence)))


class Scene:
    """Both listeners, beside one active gateway."""

    def __init__(self, replay_s: float | None, is_young: bool, hops: int = 8) -> None:
        self.both = [Listener(kind, replay_s, is_young) for kind in (Window, InOrderWindow)]
        self.active, self.now = Active(hops), BEGAN_S
        self.replay_s, self.fresh = replay_s, count()

    def hear(self, side: int, messages: Sequence[bytes]) -> None:
        for one in self.both:
            one.hear(side, messages, self.now)

    def readings(self, some: Sequence[int]) -> list[bytes]:
        """Return frames: of few contents, so that many are equal, or of one that never came before."""
        return [pack(1, (7, number), b"" if number < 3 else next(self.fresh).to_bytes(4)) for number in some]

    def taken(self, count: int) -> list[bytes]:
        found, self.active.to_trunk = self.active.to_trunk[:count], self.active.to_trunk[count:]
        return found

    def wire(self, some: list[int]) -> None:
        frames = self.readings(some)
        self.active.hear(frames, self.now)
        self.hear(WIRE, frames)

    def wire_unheard_by_the_active_one(self, some: list[int]) -> None:
        self.hear(WIRE, self.readings(some))

    def wire_unheard_by_us(self, some: list[int]) -> None:
        self.active.hear(self.readings(some), self.now)

    def trunk(self, number: int) -> None:
        self.hear(TRUNK, self.taken(number))

    def trunk_in_another_order(self, number: int) -> None:
        self.hear(TRUNK, self.taken(number)[::-1])

    def trunk_twice(self, number: int) -> None:
        self.hear(TRUNK, self.taken(number) * 2)

    def trunk_loses(self, number: int) -> None:
        self.hear(TRUNK, self.taken(number)[1:])

    def trunk_and_far(self, some: list[int]) -> None:
        copies = self.taken(len(some))
        messages = list[bytes]()
        for place, number in enumerate(some):
            messages += [self.active.far(number), *copies[place : place + 1]]
        self.hear(TRUNK, messages)

    def sent_on_the_wire(self, number: int) -> None:
        found, self.active.to_wire = self.active.to_wire[:number], self.active.to_wire[number:]
        readings = self.readings([number])
        self.active.hear(readings, self.now)
        self.hear(WIRE, [*found, *readings])

    def another_candidates_stamp(self, number: int) -> None:
        frame = pack(1, (7, number))
        self.hear(TRUNK, [wrap(frame, Envelope(OTHER_CANDIDATE, next(self.active.sequence)))])

    def bare_on_the_trunk(self, number: int) -> None:
        self.hear(TRUNK, [pack(1, (7, number))])

    def opaque(self, number: int) -> None:
        self.hear(TRUNK, [b"hello", b"", bytes(5000)][: number + 1])
        self.hear(WIRE, [b"hello"])

    def later(self, seconds: float) -> None:
        """Let time pass. Nothing is on its way for longer than its stamp is remembered."""
        self.now += seconds
        if seconds > LIFE_S:
            self.active.to_trunk.clear()

    def void(self, is_all: bool) -> None:
        for one in self.both:
            one.window.void("blind", self.now if is_all else self.now - 0.2, self.now)

    def owe(self, is_fresh: bool) -> None:
        messages = self.active.to_trunk[:2]
        for one in self.both:
            one.window.owe(TRUNK, messages, self.now, is_fresh)

    def revise(self, is_swapped: bool) -> None:
        for one in self.both:
            if is_swapped:
                one.window.revise([*rules(self.replay_s), SideRules(every, every)], (0, 1), one.stamps)
                one.window.revise(one.rules, (0, 1, None), one.stamps)
            else:
                one.window.revise(one.rules, (0, 1), one.stamps)

    def wire_after_trunk(self, some: list[int]) -> None:
        """Say what the trunk says before the wire does: we were late to read the wire."""
        frames = self.readings(some)
        self.active.hear(frames, self.now)
        self.trunk(len(self.active.to_trunk))
        self.hear(WIRE, frames)

    def compare(self) -> None:
        plain, ours = (one.told(self.now) for one in self.both)
        assert plain == ours


def some(random: Random) -> list[int]:
    return [random.randint(0, 9) for _ in range(random.randint(0, 6))]


def one(random: Random) -> int:
    return random.randint(0, 9)


def yes(random: Random) -> bool:
    return random.random() < 0.5


Step = tuple[Callable[[Scene, Any], None], Callable[[Random], Any]]
USUAL: Sequence[Step] = (
    (Scene.wire, some),
    (Scene.trunk, one),
    (Scene.wire_after_trunk, some),
    (Scene.trunk_and_far, some),
    (Scene.sent_on_the_wire, one),
    (Scene.later, lambda random: random.choice((0.001, 0.01, 0.1))),
)
ODD: Sequence[Step] = (
    (Scene.wire_unheard_by_the_active_one, some),
    (Scene.wire_unheard_by_us, some),
    (Scene.trunk_in_another_order, one),
    (Scene.trunk_twice, one),
    (Scene.trunk_loses, one),
    (Scene.another_candidates_stamp, one),
    (Scene.bare_on_the_trunk, one),
    (Scene.opaque, one),
    (Scene.later, lambda random: random.choice((0.3, 1.0, 2.5, 25.0))),
    (Scene.void, yes),
    (Scene.owe, yes),
    (Scene.revise, yes),
)


@given(
    st.integers(0, 1 << 32),
    st.sampled_from([None, 0.1]),
    st.booleans(),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.sampled_from([8, 7, 1, 0]),
)
def test_it_says_what_a_window_says_that_looks_at_each_message(
    seed: int, replay_s: float | None, is_young: bool, oddly: float, hops: int
) -> None:
    scene, random = Scene(replay_s, is_young, hops), Random(seed)
    for _ in range(40):
        step, argument = random.choice(ODD if random.random() < oddly else USUAL)
        step(scene, argument(random))
        scene.compare()
    plain, ours = (by_side(one.window.replay(scene.now)) for one in scene.both)
    assert plain == ours
    scene.compare()


@pytest.mark.parametrize("is_young", [False, True])
@pytest.mark.parametrize("hops", [8, 7, 1])
@pytest.mark.parametrize("step", [Scene.wire, Scene.wire_after_trunk])
def test_no_message_is_looked_at_alone_while_frames_pass_in_order(
    step: Callable[[Scene, Any], None], hops: int, is_young: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(None, is_young, hops)
    monkeypatch.setattr(Window, "hear", None)
    scene.both = scene.both[1:]
    for _ in range(20):
        step(scene, [7, 8, 9])
        scene.trunk(2)
        scene.trunk(9)
        assert len(scene.both[0].window) == 0


@pytest.mark.parametrize("first", [TRUNK, WIRE])
@pytest.mark.parametrize("missed_on", [TRUNK, WIRE])
def test_only_what_was_missed_is_looked_at_alone(
    first: int, missed_on: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, looked, hear = Scene(None, is_young=False), list[bytes](), Window.hear

    def look(self: Window, side: int, message: bytes, now: float) -> str:
        looked.append(message)
        return hear(self, side, message, now)

    monkeypatch.setattr(Window, "hear", look)
    scene.both = scene.both[1:]
    for number in range(20):
        frames = scene.readings([7] * 20)
        scene.active.hear(frames, scene.now)
        said = {WIRE: frames, TRUNK: scene.taken(20)}
        del said[missed_on][number]
        for side in (first, 1 - first):
            scene.hear(side, said[side])
    assert len(looked) <= 20
    assert len(scene.both[0].window) == 20


def test_it_holds_no_more_than_the_other() -> None:
    for kind in (Window, InOrderWindow):
        window = kind(rules(), OURS, Seen(), settled(), lambda: OTHER_CANDIDATE << 32, count=100)
        frames = [pack(1, (7, number)) for number in range(150)]
        for first in range(0, 150, 30):
            window.hear_all(WIRE, from_payloads(frames[first : first + 30]), BEGAN_S, Stats())
            assert len(window) == min(100, first + 30)
        assert window.stats.dropped == {"full": 50}
        assert [take_apart(one.message).content for one in window.replay(BEGAN_S)] == frames[50:]
