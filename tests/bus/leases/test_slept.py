"""Candidates that slept: what waited in their sockets meanwhile is old, until all of it is read."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from bus.leases.hearing import UNREAD_S
from tests.bus.leases.candidacies import Behind, Standby
from tests.bus.leases.failover_world import World


@pytest.mark.parametrize(("stall_s", "trusts"), [(0.9, True), (1.2, False)])
def test_a_standby_trusts_what_waited_in_its_sockets_through_a_short_stall(
    stall_s: float, trusts: bool
) -> None:
    one = Standby()
    assert one.candidate.ready
    one.gate.before_s.clear()
    one.loop.now += stall_s
    one.loop.run(0.05)
    assert one.candidate.ready == trusts
    one.loop.run(0.5)
    assert one.candidate.ready
    assert bool(one.gate.before_s) != trusts


@pytest.fixture
def behind() -> Iterator[Behind]:
    with closing(Behind()) as loop:
        yield loop


def test_a_standby_that_slept_is_ready_when_it_has_read_what_waited_in_its_sockets(behind: Behind) -> None:
    one = Standby(behind=behind)
    assert not one.candidate.ready
    behind.read_all()
    one.loop.run(0.1)
    assert one.candidate.ready
    one.loop.now += 1.2
    one.loop.run(0.5)
    assert not one.candidate.ready
    assert len(behind.asked) == 1
    behind.read_all()
    read_s = one.loop.now
    one.loop.run(0.1)
    assert one.candidate.ready
    assert one.gate.before_s[-1] == read_s


def test_a_standby_that_never_has_read_all_is_ready_after_a_bounded_time(behind: Behind) -> None:
    one = Standby(behind=behind)
    one.loop.run(UNREAD_S - 0.6)
    assert not one.candidate.ready
    one.loop.run(0.2)
    assert one.candidate.ready
    assert one.gate.before_s[-1] > one.loop.now - 0.2


def test_a_holder_that_slept_for_a_lease_listens_anew() -> None:
    one = Standby()
    one.candidate.state = "active"
    one.loop.now += 0.3
    one.loop.run(0.05)
    assert not one.candidate.holding
    assert not one.candidate.ready


@pytest.mark.parametrize("other_forwards", [True, False])
def test_a_holder_that_slept_trusts_what_waited_unless_another_forwarded_meanwhile(
    other_forwards: bool,
) -> None:
    world = World(7, 1, 2, hold_down_s=1.0)
    world.run(2.0)
    (first,) = world.forwarding()
    one = world.gateways[first]
    if not other_forwards:
        world.kill(1 - first)
    one.process.frozen = True
    world.run(2.0)
    assert world.forwarding() == ([1 - first] if other_forwards else [])
    world.kill(1 - first)
    world.run(2.0)
    one.gate.told.clear()
    woke_s = world.now
    one.process.thaw()
    world.run(3.0)
    assert world.forwarding() == [first]
    assert [what for what, at_s in one.gate.told if at_s >= woke_s] == (
        ["blind", "resume"] if other_forwards else ["again"]
    )
