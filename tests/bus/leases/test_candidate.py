"""Candidates and brokers in virtual time: at most one candidate forwards, and one does so soon."""

import random
from collections import deque
from collections.abc import Iterator

import pytest

from bus.leases.candidate import Candidate
from bus.leases.table import LeaseTable
from bus.leases.wire import Grant, pack_claim, unpack_grant

STEP_S = 0.005
SETTLE_S = 0.02  # as `bus.leases.candidacy` waits before it forwards


class Wire:
    """A connection between a candidate and a broker, with delays. A stalled one delivers nothing."""

    def __init__(self) -> None:
        self.up = self.stalled = False
        self.there: deque[tuple[float, bytes]] = deque()
        self.back: deque[tuple[float, bytes]] = deque()


class World:
    """Two candidates and two brokers with faults. `forwarding` names those that forward at this step."""

    def __init__(self, seed: int, brokers: int = 2) -> None:
        self.now, self.chance = 100.0, random.Random(seed)
        self.tables: list[LeaseTable | None] = [LeaseTable() for _ in range(brokers)]
        self.candidates = [self._candidate(n) for n in range(2)]
        self.dead, self.frozen = set[int](), set[int]()
        self.wires = {(c, b): Wire() for c in range(2) for b in range(brokers)}
        self.active_s: dict[int, float] = {}
        self.beat_s = {c: self.now + self.chance.random() * 0.1 for c in range(2)}
        self.overlap_s = 0.0
        self.served_s = self.now
        self.gap_s = 0.0

    def _candidate(self, number: int) -> Candidate:
        made = Candidate((1,), "x", self.chance.getrandbits(31) + 1, number, len(self.tables), f"c{number}")
        made.links(True)
        return made

    def forwarding(self) -> list[int]:
        return [
            c
            for c, since_s in self.active_s.items()
            if c not in self.frozen
            and self.now >= since_s + SETTLE_S
            and self.candidates[c].may_forward(self.now)
        ]

    def run(self, seconds: float) -> None:
        end_s = self.now + seconds
        while self.now < end_s:
            self.now += STEP_S
            self._step()

    def _step(self) -> None:
        self._brokers()
        for c, candidate in enumerate(self.candidates):
            if c not in self.dead and c not in self.frozen:
                self._candidate_step(c, candidate)
        now = self.forwarding()
        self.overlap_s += STEP_S * (len(now) > 1)
        if now:
            self.served_s = self.now
        self.gap_s = max(self.gap_s, self.now - self.served_s)

    def _brokers(self) -> None:
        for b, table in enumerate(self.tables):
            if table is None:
                continue
            answers = []
            for c in range(2):
                for frame in self._arrived(self.wires[c, b], self.wires[c, b].there):
                    answers += table.heard(frame, (c, b), self.now)
            for who, frame in answers + table.tick(self.now):
                self._back(who, frame)  # type: ignore[arg-type]

    def _back(self, who: tuple[int, int], frame: bytes) -> None:
        wire = self.wires[who]
        if wire.up:
            wire.back.append((self._when(wire.back), frame))

    def _when(self, queue: deque[tuple[float, bytes]]) -> float:
        """Return when a packet arrives: after a random delay, but never before an earlier one."""
        return max(self.now + self.chance.random() * 0.02, queue[-1][0] if queue else 0.0)

    def _arrived(self, wire: Wire, queue: deque[tuple[float, bytes]]) -> Iterator[bytes]:
        while queue and queue[0][0] <= self.now and not wire.stalled:
            yield queue.popleft()[1]

    def _candidate_step(self, c: int, candidate: Candidate) -> None:
        candidate.judge(self.now)  # the loop's guard
        for b in range(len(self.tables)):
            wire = self.wires[c, b]
            if not wire.up:
                self._dial(c, b, candidate, wire)
            for frame in self._arrived(wire, wire.back):
                grant = unpack_grant(frame)
                assert isinstance(grant, Grant)
                candidate.heard(b, grant, self.now)
        self._act(c, candidate)
        if self.now >= self.beat_s[c]:
            self.beat_s[c] = self.now + 0.1
            self._beat(c, candidate)

    def _dial(self, c: int, b: int, candidate: Candidate, wire: Wire) -> None:
        if wire.stalled:
            candidate.reached(b, "unreachable", self.now)
        elif self.tables[b] is None:
            candidate.reached(b, "refused", self.now)
        else:
            wire.up = True
            candidate.reached(b, "up", self.now)
            self._say(c, b, candidate)

    def _say(self, c: int, b: int, candidate: Candidate, resign: bool = False) -> None:
        wire = self.wires[c, b]
        if wire.up:
            wire.there.append((self._when(wire.there), pack_claim(candidate.claim(b, self.now, resign))))

    def _act(self, c: int, candidate: Candidate) -> None:
        state = candidate.judge(self.now)
        if candidate.asked_to_resign:
            candidate.resign(self.now)
            for b in range(len(self.tables)):
                self._say(c, b, candidate, resign=True)
        if candidate.state in ("active", "orphan"):
            if c not in self.active_s:
                self.active_s[c] = self.now
                self._beat(c, candidate)
        elif state != "doubt":
            self.active_s.pop(c, None)

    def _beat(self, c: int, candidate: Candidate) -> None:
        for b in range(len(self.tables)):
            self._say(c, b, candidate)

    def cut(self, c: int, b: int) -> None:
        """End the connection; both sides notice at once."""
        wire = self.wires[c, b]
        if not wire.up:
            return
        wire.up = False
        wire.there.clear()
        wire.back.clear()
        table = self.tables[b]
        if table is not None:
            for who, frame in table.lost((c, b), self.now):
                self._back(who, frame)  # type: ignore[arg-type]
        if c not in self.dead and c not in self.frozen:
            self.candidates[c].reached(b, "unreachable", self.now)

    def kill(self, c: int) -> None:
        self.dead.add(c)
        self.active_s.pop(c, None)
        for b in range(len(self.tables)):
            self.cut(c, b)

    def revive(self, c: int) -> None:
        self.dead.discard(c)
        self.candidates[c] = self._candidate(c)

    def kill_broker(self, b: int) -> None:
        self.tables[b] = None
        for c in range(2):
            self.cut(c, b)

    def who(self) -> int:
        now = self.forwarding()
        assert len(now) == 1
        return now[0]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("brokers", [1, 2])
def test_one_fault_at_a_time_never_makes_two_forward_and_one_does_soon(seed: int, brokers: int) -> None:
    world = World(seed, brokers)
    world.run(1.0)
    faults = ["kill", "freeze", "partition", "broker", "brokers"]
    for fault in world.chance.choices(faults, k=4):
        world.run(0.5 + world.chance.random() * 0.2)
        world.gap_s, world.served_s = 0.0, world.now
        who = world.who()
        _befall(world, fault, who)
        world.run(0.8)
        assert world.who() == (who if "broker" in fault else 1 - who), fault
        assert world.gap_s < (0.32 if fault in ("freeze", "partition") else 0.1), fault
        _undo(world, who)
        world.run(0.8)
    assert world.overlap_s == 0


@pytest.mark.parametrize("seed", range(200))
def test_brokers_that_chose_differently_at_the_start_agree_soon(seed: int) -> None:
    """All parts start within half a second in any order, and connections can be slow."""
    world = World(seed)
    chance = world.chance
    ready_s = [world.now + chance.random() * 0.5 for _ in range(2)]
    dial_s = {ends: world.now + chance.random() * 0.2 for ends in world.wires}  # within a lease
    for candidate in world.candidates:
        candidate.links(False)
    while world.now < 101.6:
        for c, candidate in enumerate(world.candidates):
            candidate.links(world.now >= ready_s[c])
        for ends, wire in world.wires.items():
            wire.stalled = world.now < dial_s[ends]
        world.run(STEP_S)
    assert len(world.forwarding()) == 1
    assert world.overlap_s == 0


def _befall(world: World, fault: str, who: int) -> None:
    if fault == "kill":
        world.kill(who)
    elif fault == "freeze":
        world.frozen.add(who)
    elif fault == "partition":
        for b in range(len(world.tables)):
            world.wires[who, b].stalled = True
    elif fault == "broker":
        world.kill_broker(world.chance.randrange(len(world.tables)))
    else:
        for b in range(len(world.tables)):
            world.kill_broker(b)


def _undo(world: World, who: int) -> None:
    if who in world.dead:
        world.revive(who)
    world.frozen.clear()
    for wire in world.wires.values():
        wire.stalled = False
    world.tables = [LeaseTable() if table is None else table for table in world.tables]


def test_a_broker_cut_off_from_the_holder_alone_makes_nobody_a_second_one() -> None:
    world = World(1)
    world.run(1.0)
    who = world.who()
    world.wires[who, 0].stalled = True
    world.run(1.0)
    assert world.who() == who  # the other broker still grants it, and the standby learns this there
    world.wires[who, 0].stalled = False
    world.cut(who, 0)
    world.run(1.0)
    assert world.who() == who
    assert world.overlap_s == 0


def test_a_partitioned_pair_whose_every_broker_says_otherwise_ends_with_one() -> None:
    """Each candidate reaches only one broker, so two forward, which nothing can prevent. Healing ends it."""
    world = World(2)
    world.run(1.0)
    who = world.who()
    for c in range(2):
        world.wires[c, c if who == 0 else 1 - c].stalled = True
    world.run(1.0)
    assert sorted(world.forwarding()) == [0, 1]
    for wire in world.wires.values():
        wire.stalled = False
    world.run(0.5)
    assert len(world.forwarding()) == 1


def test_the_lease_runs_from_when_the_claim_was_sent() -> None:
    candidate = Candidate((1,), "x", 5, 0, 1)
    candidate.links(True)
    candidate.reached(0, "up", 0.0)
    claim = candidate.claim(0, 10.0)
    grant = Grant((1,), "x", granted=True, alone=True, holder=5, epoch=1, lease_ms=250, number=claim.number)
    candidate.heard(0, grant, 10.2)
    assert candidate.may_forward(10.24)
    assert not candidate.may_forward(10.25)
    assert candidate.judge(10.25) == "fenced"


def test_nobody_is_promoted_whose_links_are_down_nor_by_an_old_answer() -> None:
    candidate = Candidate((1,), "x", 5, 0, 1)
    candidate.reached(0, "up", 0.0)
    grant = Grant((1,), "x", granted=True, holder=5, epoch=1, lease_ms=250)
    number = candidate.claim(0, 10.0).number
    assert candidate.heard(0, grant._replace(number=number), 10.1) == "standby"
    candidate.links(True)
    assert candidate.heard(0, grant._replace(number=number), 10.3) == "standby"
    assert candidate.heard(0, grant._replace(number=999), 10.3) == "standby"
    number = candidate.claim(0, 10.35).number
    assert candidate.heard(0, grant._replace(number=number), 10.4) == "active"


def test_with_every_broker_dead_the_active_one_goes_on_and_no_other_starts() -> None:
    world = World(3)
    world.run(1.0)
    who = world.who()
    for b in range(2):
        world.kill_broker(b)
    world.run(5.0)
    assert world.who() == who
    assert world.candidates[who].state == "orphan"
    assert world.candidates[1 - who].state == "standby"
    assert not world.candidates[who].alone


def test_an_answer_to_a_claim_from_before_resigning_grants_nothing() -> None:
    candidate = Candidate((1,), "x", 5, 0, 1)
    candidate.links(True)
    candidate.reached(0, "up", 0.0)
    grant = Grant((1,), "x", granted=True, please_resign=True, holder=5, epoch=1, lease_ms=250)
    numbers = [candidate.claim(0, at_s).number for at_s in (10.0, 10.01)]
    assert candidate.heard(0, grant._replace(number=numbers[0]), 10.02) == "active"
    assert candidate.resign(10.03) == "standby"
    assert candidate.judge(10.03) == "standby"
    assert candidate.heard(0, grant._replace(number=numbers[1]), 10.04) == "standby"
    number = candidate.claim(0, 10.05, resign=True).number
    assert candidate.heard(0, grant._replace(number=number), 10.06) == "active"  # no other candidate is ready


def test_a_lease_counts_no_more_once_its_broker_is_out_of_reach() -> None:
    candidate = Candidate((1,), "x", 5, 0, 2)
    candidate.links(True)
    for broker, sent_s in ((0, 9.8), (1, 9.9)):
        candidate.reached(broker, "up", 0.0)
        number = candidate.claim(broker, sent_s).number
        grant = Grant((1,), "x", granted=True, holder=5, epoch=1, lease_ms=250, number=number)
        candidate.heard(broker, grant, sent_s)
    assert candidate.judge(10.06) == "active"  # the first lease has run out
    assert candidate.reached(1, "unreachable", 10.07) == "doubt"
    assert not candidate.may_forward(10.07)


@pytest.mark.parametrize("alone", [False, True])
def test_with_a_broker_out_of_reach_the_last_holder_s_lease_must_be_over(alone: bool) -> None:
    candidate = Candidate((1,), "x", 5, 0, 2)
    candidate.links(True)
    candidate.judge(0.0)
    candidate.reached(1, "up", 0.0)
    number = candidate.claim(1, 1.0).number
    grant = Grant((1,), "x", granted=True, alone=alone, holder=5, epoch=1, lease_ms=250, number=number)
    assert candidate.heard(1, grant, 1.01) == ("active" if alone else "standby")
    assert candidate.reached(0, "refused", 1.02) == "active"


def orphan() -> Candidate:
    """Return a candidate whose only broker is dead since 1.1 s."""
    candidate = Candidate((1,), "x", 5, 0, 1)
    candidate.links(True)
    candidate.reached(0, "up", 0.0)
    number = candidate.claim(0, 1.0).number
    candidate.heard(0, Grant((1,), "x", granted=True, holder=5, lease_ms=250, number=number), 1.0)
    assert candidate.reached(0, "refused", 1.1) == "orphan"
    return candidate


def test_an_orphan_goes_on_when_a_broker_was_back_for_a_moment_only() -> None:
    candidate = orphan()
    assert candidate.reached(0, "up", 2.0) == "orphan"
    candidate.reached(0, "unreachable", 2.01)
    assert candidate.reached(0, "refused", 2.02) == "orphan"
    assert candidate.may_forward(9.0)


def test_an_orphan_waits_one_lease_for_the_answer_of_a_broker_that_is_back() -> None:
    candidate = orphan()
    candidate.reached(0, "up", 2.0)
    assert candidate.judge(2.24) == "orphan"
    assert candidate.may_forward(2.24)
    assert candidate.judge(2.25) == "fenced"
    assert not candidate.may_forward(2.24)


def test_an_orphan_waits_one_lease_for_the_answer_of_a_broker_that_is_new() -> None:
    candidate = orphan()
    added = candidate.add_broker(2.0)
    assert candidate.judge(2.24) == "orphan"
    assert candidate.may_forward(2.24)
    assert candidate.reached(added, "refused", 2.24) == "orphan"
    assert candidate.may_forward(9.0)
    candidate.add_broker(9.0)
    assert candidate.judge(9.25) == "fenced"


def test_who_holds_it_is_known_from_the_latest_grant() -> None:
    candidate = Candidate((1,), "x", 5, 0, 2, "a")
    candidate.links(True)
    assert (candidate.holder_name, candidate.other_holds) == ("", False)
    for broker in (0, 1):
        candidate.reached(broker, "up", 0.0)
    candidate.heard(0, Grant((1,), "x", holder=7, name="b"), 2.0)
    candidate.heard(1, Grant((1,), "x", holder=0, name=""), 1.0)
    assert (candidate.holder_name, candidate.other_holds) == ("b", True)
    candidate.heard(1, Grant((1,), "x", holder=8, name="c"), 3.0)
    assert candidate.holder_name == "c"
    for broker in (0, 1):
        number = candidate.claim(broker, 4.0).number
        mine = Grant((1,), "x", granted=True, alone=True, holder=5, lease_ms=250, number=number, name="a")
        candidate.heard(broker, mine, 4.0)
    assert (candidate.holder_name, candidate.other_holds, candidate.state) == ("a", False, "active")
    assert candidate.alone


def test_brokers_come_and_go_and_no_number_is_used_twice_at_a_time() -> None:
    candidate = Candidate((1,), "x", 5, 0, 0)
    assert [candidate.add_broker(0.0) for _ in range(3)] == [0, 1, 2]
    candidate.drop_broker(1)
    assert candidate.add_broker(0.0) == 3
    assert len(candidate.views) == 3
