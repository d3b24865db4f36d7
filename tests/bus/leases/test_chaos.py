"""Random faults of gateways and brokers: soon afterwards exactly one forwards, the best, and it stays."""

import random
from functools import partial

import pytest

from tests.bus.leases.failover_world import World

HOLD_DOWN_S = 0.5
FAULTS = (
    "kill", "stop", "revive", "freeze", "thaw", "stall", "flow", "cut", "cut late", "kill broker",
    "revive broker", "freeze broker", "thaw broker", "link down", "link up", "busy",
)  # fmt: skip


def befall(world: World, fault: str, order: int, broker: int) -> None:
    gateway, desk = world.gateways[order], world.desks[broker]
    if fault in ("freeze", "freeze broker"):
        (gateway if fault == "freeze" else desk).process.frozen = True
    elif fault in ("thaw", "thaw broker"):
        (gateway if fault == "thaw" else desk).process.thaw()
    elif fault in ("stall", "flow"):
        (world.stall if fault == "stall" else world.flow)(order, broker)
    elif fault in ("cut", "cut late"):
        world.cut(order, broker, late=fault == "cut late")
    elif fault in ("kill broker", "revive broker"):
        (world.kill_broker if fault == "kill broker" else world.revive_broker)(broker)
    elif fault in ("link down", "link up"):
        gateway.links = fault == "link up"
    elif fault == "busy":
        gateway.gate.busy_s = world.now + 0.7
    else:
        {"kill": world.kill, "stop": world.stop, "revive": world.revive}[fault](order)


def healed(world: World) -> None:
    """Check: one forwards within 1.5 s, the best at once or after the hold-down, and nothing more happens."""
    world.heal()
    world.run(1.5)
    assert len(world.forwarding()) <= 1
    world.mark()
    before = world.takeovers
    world.run(0.3)
    assert world.silence_s() < 0.25
    world.run(HOLD_DOWN_S + 1.7)
    assert world.forwarding() == [0]
    assert world.silence_s() < 0.25
    assert world.takeovers - before <= 1
    assert world.overlap_s == 0
    for gateway in world.gateways:
        assert gateway.gate.forwarding == gateway.candidate.may_forward(world.now)
        assert not gateway.candidacy.resigning
        assert gateway.candidate.epoch == world.gateways[0].candidate.epoch


@pytest.mark.parametrize("gateways", [2, 3])
@pytest.mark.parametrize("brokers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_after_any_faults_one_forwards_and_it_is_the_best(seed: int, brokers: int, gateways: int) -> None:
    world = World(seed, brokers, gateways, delay_s=0.05, hold_down_s=HOLD_DOWN_S)
    chance = random.Random(seed)
    world.run(0.8 if seed % 3 else 0.1)
    for _ in range(chance.randint(1, 14)):
        world.run(chance.choice([0.02, 0.1, 0.2, 0.6, 1.2]) * chance.random())
        befall(world, chance.choice(FAULTS), chance.randrange(gateways), chance.randrange(brokers))
    world.run(0.05)
    healed(world)


def test_two_whose_claims_and_grants_cross_do_not_take_the_lease_from_each_other_for_ever() -> None:
    world = World(3873, 1, 3, 0.05, HOLD_DOWN_S)
    world.run(0.1 + 0.46)
    befall(world, "freeze", 2, 0)
    world.run(0.08)
    befall(world, "busy", 0, 0)
    world.run(0.1)
    befall(world, "kill broker", 0, 0)
    world.run(0.005)
    befall(world, "link down", 0, 0)
    world.run(0.05)
    healed(world)


@pytest.mark.parametrize("seed", range(6))
def test_a_lease_of_a_broker_that_died_is_not_kept_for_one_that_ran_out_elsewhere(seed: int) -> None:
    """The other broker has not heard the holder for a while, and promotes the next one; nobody refuses."""
    world = World(seed, 2, 2)
    world.run(1.5)
    assert world.forwarding() == [0]
    world.stall(0, 0)
    world.run(0.8)
    assert world.forwarding() == [0]
    world.kill_broker(1)
    world.run(1.0)
    assert world.forwarding() == [1]
    assert world.overlap_s == 0


@pytest.mark.parametrize("back_s", [0.0, 0.005, 0.05, 0.09, 0.15, 0.195, 0.2, 0.205, 0.25])
def test_brokers_that_die_in_turns_agree_soon_on_who_follows_one_that_resigns(back_s: float) -> None:
    """The one that stays has just started; the other comes back, and may not have heard who resigned."""
    world = World(4, delay_s=0.002)
    world.run(1.5)
    assert world.forwarding() == [0]
    world.kill_broker(1)
    world.run(0.2)
    world.revive_broker(1)
    world.run(0.1)
    world.mark()
    world.kill_broker(0)
    world.gateways[0].links = False
    world.at(world.now + 0.11, partial(setattr, world.gateways[0], "links", True))
    world.run(back_s)
    world.revive_broker(0)
    world.run(2.5)
    assert len(world.forwarding()) == 1
    assert world.silence_s() < 0.4  # a lease, until the broker that is back may grant one, and a heartbeat
    assert world.overlap_s == 0


@pytest.mark.parametrize(("seed", "back_s"), [(0, 1.04), (1, 1.0), (3, 0.96), (4, 1.12), (5, 1.08)])
def test_the_best_takes_over_again_without_a_pause_also_when_a_broker_has_just_started(
    seed: int, back_s: float
) -> None:
    """It is ready for the hold-down while that broker grants nothing yet."""
    world = World(seed, delay_s=0.002, hold_down_s=1.0)
    world.run(4.0)
    world.kill(0)
    world.run(1.0)
    assert world.forwarding() == [1]
    world.revive(0)
    world.run(back_s)
    world.kill_broker(1)
    world.run(0.1)
    world.revive_broker(1)
    world.mark()
    world.run(2.0)
    assert world.forwarding() == [0]
    assert (world.silence_s() < 0.05, world.overlap_s) == (True, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_broken_connection_promotes_nobody_who_cannot_hear_the_other_broker(seed: int) -> None:
    world = World(seed, 2, 2, 0.05)
    world.run(1.5)
    world.stall(1, 0)
    world.run(0.5)
    world.cut(0, 1)
    world.run(1.0)
    assert world.forwarding() == [0]
    assert world.overlap_s == 0
    world.kill(0)
    world.run(0.5)
    assert world.forwarding() == [1]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_holder_that_dials_again_is_heard_though_the_broker_knows_the_old_connection(
    seed: int, late: bool
) -> None:
    world = World(seed, 1, 2)
    world.run(1.5)
    world.mark()
    for _ in range(10):
        (holder,) = world.forwarding()
        line = world.gateways[holder].dialers[0].line
        assert line is not None
        line.near.reset()  # a middlebox tells the gateway first, or it alone
        if late:
            line.far.reset(late)
        world.run(0.5)
    assert len(world.forwarding()) == 1
    assert world.silence_s() < 0.1


@pytest.mark.parametrize("seed", range(6))
def test_brokers_that_answer_late_cost_who_forwards_no_more_than_they_were_late(seed: int) -> None:
    """It is fenced until they answer, and goes on then, though a better candidate is ready."""
    world = World(seed, 2, 2)
    world.run(1.5)
    world.gateways[0].process.frozen = True
    world.run(1.0)
    world.gateways[0].process.thaw()
    world.run(1.0)
    assert world.forwarding() == [1]
    world.mark()
    for desk in world.desks:
        desk.process.frozen = True
    world.run(0.4)
    assert world.forwarding() == []
    for desk in world.desks:
        desk.thaw()
    world.run(0.15)
    assert world.forwarding() == [1]
    world.run(1.0)
    assert world.forwarding() == [1]
    assert world.overlap_s == 0
