"""Tests of the pace of a candidate, and of stalls of gateways and brokers in virtual time."""

import logging
import random

import pytest

from bus.leases.pace import FACTOR, FACTOR_REAL_TIME, KEPT_S, STARTED_S, STARTING_S, Pace, Worst
from bus.machine.stops import Turns
from tests.bus.leases.failover_world import Desk, Gateway, World

AT_S = STARTING_S + 1.0  # after the start


def settled(least_ms: int = 250, most_ms: int = 2000) -> Pace:
    pace = Pace(least_ms, most_ms)
    pace.late(0.0, 0.0)
    return pace


def test_a_machine_that_is_on_time_keeps_the_shortest_lease() -> None:
    pace = settled()
    for number in range(1000):
        pace.late(0.002, AT_S + number / 10)
        pace.answered(0.001, AT_S + number / 10)
    assert pace.judge(AT_S + 100) == 250


def test_the_lease_grows_with_the_worst_of_the_last_minutes_and_shrinks_again() -> None:
    pace = settled()
    pace.late(0.03, AT_S)
    pace.late(0.02, AT_S + 1)
    pace.answered(0.01, AT_S + 2)
    assert pace.judge(AT_S + 3) == 250 + FACTOR * 40
    assert pace.judge(AT_S + KEPT_S - 11) == 250 + FACTOR * 40
    assert pace.judge(AT_S + KEPT_S + 3) == 250


@pytest.mark.parametrize(("stall_s", "lease_ms"), [(0.5, 2000), (1.9, 2000), (2.0, 250), (9.0, 250)])
def test_the_longest_lease_bounds_and_a_freeze_is_no_lateness(stall_s: float, lease_ms: int) -> None:
    pace = settled()
    pace.late(stall_s, AT_S)
    assert pace.judge(AT_S) == lease_ms


def test_the_lateness_of_a_start_is_soon_forgotten() -> None:
    pace = settled()
    pace.late(0.1, 1.0)
    assert pace.judge(2.0) == 250 + FACTOR * 100
    assert pace.judge(1.0 + STARTED_S) == 250
    pace.late(0.1, STARTING_S)  # from then on it has started
    assert pace.judge(STARTING_S + STARTED_S + 20) == 250 + FACTOR * 100


def test_bounds_that_are_equal_leave_the_lease_as_it_is() -> None:
    pace = settled(250, 100)
    pace.late(0.1, AT_S)
    assert pace.judge(AT_S) == 250


def test_without_a_length_in_the_file_real_time_priority_makes_leases_short_while_it_lasts() -> None:
    pace = Pace(None, 2000)
    pace.late(0.0, 0.0)
    for real_time, lease_ms in ((False, 250), (True, 100), (False, 250), (True, 100)):
        pace.prioritize(real_time)
        assert pace.judge(AT_S) == pace.least_ms == lease_ms
    pace.late(0.01, AT_S)
    assert pace.judge(AT_S) == 100 + FACTOR_REAL_TIME * 10
    given = Pace(300, 2000)
    given.prioritize(True)
    assert given.judge(AT_S) == 300


@pytest.mark.parametrize(("stopped_s", "lease_ms"), [(0.0, 2000), (0.2499, 2000), (0.25, 250)])
def test_a_stop_makes_no_lease_longer_nor_do_the_answers_that_waited_for_its_end(
    stopped_s: float, lease_ms: int
) -> None:
    pace = settled()
    pace.late(0.9, AT_S, stopped_s)
    for number in range(1, 25):  # what waited is worked off, before and between what is asked now
        pace.answered(0.95 if number == 1 else 0.02, AT_S + number / 100)
    assert pace.judge(AT_S + 0.25) == lease_ms
    pace.answered(0.02, AT_S + 1.0)
    assert pace.judge(AT_S + 1.0) == min(2000, lease_ms + FACTOR * 20)


def test_a_measurement_counts_until_its_time_and_no_longer() -> None:
    worst = Worst()
    worst.note(0.5, 20.0)
    assert [worst.at(19.9), worst.at(20.0)] == [0.5, 0.0]


def test_the_worst_is_the_maximum_of_what_still_counts() -> None:
    chance = random.Random(5)
    worst, kept, now = Worst(), list[tuple[float, float]](), 0.0
    for _ in range(2000):
        now += chance.random()
        seconds, until_s = chance.random(), now + chance.choice([3.0, 60.0])
        worst.note(seconds, until_s)
        kept.append((until_s, seconds))
        assert worst.at(now) <= max((one for end_s, one in kept if end_s > now), default=0.0)
        assert worst.at(now) >= max((one for end_s, one in kept if end_s > now + 10), default=0.0)


def go_on(stalled: Gateway | Desk) -> None:
    if isinstance(stalled, Desk):
        stalled.thaw()
    else:
        stalled.process.thaw()


def busy(seed: int, worst_s: float, seconds: float, most_ms: int = 2000) -> World:
    """Return a world in which gateways and brokers of healthy machines often have no turn for a while."""
    world, chance = World(seed, most_ms=most_ms), random.Random(seed)
    world.run(3.0)
    world.log.clear()
    end_s = world.now + seconds
    while world.now < end_s:
        world.run(chance.expovariate(1.0))
        stalled = chance.choice(list[Gateway | Desk]([*world.gateways, *world.desks]))
        stalled.process.frozen = True
        world.run(worst_s * chance.random() ** 3)
        go_on(stalled)
    return world


@pytest.mark.parametrize("seed", range(5))
def test_stalls_of_up_to_a_tenth_of_a_second_cost_no_lease(seed: int) -> None:
    """The first stall of a machine may be so long: a lease of 250 ms less a heartbeat and both ways."""
    world = busy(seed, 0.1, 30.0)
    assert world.takeovers == 0
    assert world.overlap_s == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_machine_that_is_known_to_be_late_keeps_its_lease_through_longer_stalls(seed: int) -> None:
    world = busy(seed, 0.1, 20.0)
    stalls: list[Gateway | Desk] = [world.gateways[0], *world.desks]
    for stalled in stalls:
        lease_s = world.gateways[0].candidate.lease_s
        assert lease_s > 0.5
        stalled.process.frozen = True
        world.run(lease_s - 0.15)
        go_on(stalled)
        world.run(2.0)
    assert world.takeovers == 0
    assert world.forwarding() == [0]
    assert world.overlap_s == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_gateway_that_freezes_is_replaced_within_the_lease_that_its_machine_has(seed: int) -> None:
    world = busy(seed, 0.1, 20.0)
    lease_s = world.gateways[0].candidate.lease_s
    assert 0.25 < lease_s <= 2.0
    world.gateways[0].process.frozen = True
    world.mark()
    world.run(lease_s + 0.3)
    assert world.forwarding() == [1]
    assert world.overlap_s == 0
    world.gateways[0].process.thaw()


@pytest.mark.parametrize(
    ("runs", "words"), [(False, "was stopped, or its machine was paused"), (True, "was late, not dead")]
)
def test_a_takeover_without_a_fault_is_counted_and_told_on_both_sides(
    monkeypatch: pytest.MonkeyPatch, runs: bool, words: str
) -> None:
    """The kernel says that the process ran or waited for its turn meanwhile, or that it did neither."""
    world = World(3)
    monkeypatch.setattr("bus.leases.lateness.turns", lambda: Turns(world.now if runs else 5.0, 0))
    world.run(1.0)
    world.log.clear()
    world.gateways[0].process.frozen = True
    world.run(0.5)
    world.gateways[0].process.thaw()
    world.run(1.0)
    assert [gateway.candidacy.without_fault for gateway in world.gateways] == [0, 1]
    assert [gateway.candidacy.losses for gateway in world.gateways] == [1, 0]
    late = [(who, cause) for _, who, kind, cause, _ in world.log if kind == "late"]
    assert {who for who, _ in late} == {"g0", "g1"}
    told = {"g0": words, "g1": "was late or stopped, not dead"}
    assert all(told[who] in cause for who, cause in late)
    assert world.takeovers == 1


def test_a_gateway_that_was_frozen_for_long_or_died_is_a_fault() -> None:
    for seconds in (5.0, None):
        world = World(4)
        world.run(1.0)
        if seconds is None:
            world.kill(0)
        else:
            world.gateways[0].process.frozen = True
        world.run(seconds or 1.0)
        world.gateways[0].process.thaw()
        world.run(1.0)
        assert world.gateways[1].candidacy.without_fault == 0


@pytest.mark.parametrize("brokers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_gateways_that_start_together_warn_of_no_takeover(seed: int, brokers: int) -> None:
    world = World(seed, brokers, hold_down_s=0.5)
    world.run(4.0)
    assert world.takeovers >= 1
    assert world.forwarding() == [0]
    assert [level for _, kind, level in world.levels if kind == "takeover" and level > logging.INFO] == []


def test_a_takeover_after_a_death_is_a_warning() -> None:
    world = World(1)
    world.run(2.0)
    world.kill(0)
    world.run(1.0)
    assert [level for who, kind, level in world.levels if (who, kind) == ("g1", "takeover")] == [
        logging.WARNING
    ]
