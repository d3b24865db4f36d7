"""A candidate's decisions, each at its very moment. Leases last 0.25 s, and binary numbers hold all times."""

from collections.abc import Callable
from math import inf

import pytest

from bus.leases.candidate import BrokerView, Candidate, Reach
from bus.leases.wire import ANOTHER, Grant

LEASE_S = 0.25


def candidate(brokers: int = 1) -> Candidate:
    """Return a candidate that is ready, and reaches all brokers since 0.0."""
    made = Candidate((1,), "x", 5, 0, brokers, "a")
    made.links(True)
    for broker in range(brokers):
        made.reached(broker, "up", 0.0)
    return made


def granting(
    one: Candidate, now: float, broker: int = 0, alone: bool = True, please_resign: bool = False
) -> str:
    """Let a broker grant the lease at once; return the state that follows."""
    number = one.claim(broker, now).number
    return one.heard(
        broker,
        Grant(
            (1,), "x", True, please_resign, False, alone,
            holder=5, order=0, epoch=1, lease_ms=250, number=number, name="a",
        ),
        now,
    )  # fmt: skip


def telling(one: Candidate, now: float, broker: int = 0, acting: bool = True, holder: int = ANOTHER) -> str:
    """Let a broker say that another has the lease; return the state that follows."""
    return one.heard(broker, Grant((1,), "x", acting=acting, holder=holder, epoch=1, name="b"), now)


def test_a_candidate_begins_with_nothing() -> None:
    one = Candidate((1,), "x", 5, 0, 1)
    assert (one.state, one.until_s, one.epoch, one.ready, one.name) == ("standby", -inf, 0, False, "")
    assert (one.heartbeat_ms, one.lease_s) == (100, LEASE_S)
    claim = one.claim(0, 0.0)
    assert (claim.number, claim.ready, claim.holding, claim.resign) == (1, False, False, False)
    view = BrokerView()
    assert (view.reach, view.since_s, view.heard_s, view.until_s) == ("unknown", -inf, -inf, -inf)


@pytest.mark.parametrize(
    ("now", "holder", "gives_back"), [(1.9375, ANOTHER, True), (1.9375, 0, False), (2.0, ANOTHER, False)]
)
def test_who_has_resigned_gives_back_for_four_leases_what_not_all_brokers_grant(
    now: float, holder: int, gives_back: bool
) -> None:
    """A broker that did not hear it resign chose it, another one another: neither would begin."""
    one = candidate(2)
    one.resign(1.0)
    telling(one, now, 1, acting=False, holder=holder)
    granting(one, now, 0)
    claims = [one.claim(broker, now) for broker in (0, 1)]
    assert [claim.ready for claim in claims] == [not gives_back, True]
    assert one.reached(1, "refused", now) == ("standby" if gives_back else "active")


def test_who_forwards_again_gives_back_nothing() -> None:
    one = candidate(2)
    one.resign(1.0)
    for broker in (0, 1):
        granting(one, 1.125, broker)
    telling(one, 1.125, 1, acting=False)
    assert (one.state, one.claim(0, 1.125).ready) == ("active", True)


def test_claims_are_numbered_up_to_65535_and_from_0_again() -> None:
    one = Candidate((1,), "x", 5, 0, 1)
    numbers = [one.claim(0, 0.0).number for _ in range(65_537)]
    assert numbers == [*range(1, 65_536), 0, 1]


@pytest.mark.parametrize(
    ("number", "state"), [(1, "standby"), (2, "active"), (65, "active"), (66, "standby")]
)
def test_an_answer_to_one_of_the_last_64_claims_counts(number: int, state: str) -> None:
    one = candidate()
    for _ in range(65):
        one.claim(0, 1.0)
    assert one.heard(0, Grant((1,), "x", True, holder=5, lease_ms=250, number=number), 1.0) == state


def test_a_claim_says_that_it_holds_the_lease_unless_it_resigns() -> None:
    one = candidate()
    assert not one.claim(0, 0.0).holding
    granting(one, 1.0)
    assert (one.claim(0, 1.0).holding, one.claim(0, 1.0).resign) == (True, False)
    assert (one.claim(0, 1.0, resign=True).holding, one.claim(0, 1.0, resign=True).resign) == (False, True)


def test_a_lease_of_milliseconds_ends_at_its_very_moment() -> None:
    one = candidate()
    granting(one, 1.0)
    assert one.may_forward(1.2499)
    assert one.views[0].granted(1.2499)
    assert not one.may_forward(1.25)
    assert not one.views[0].granted(1.25)
    assert one.judge(1.2499) == "active"
    assert one.judge(1.25) == "fenced"


@pytest.mark.parametrize(
    "grant",
    [Grant((2,), "x", True), Grant((1,), "y", True), Grant((2,), "y", True)],
)
def test_a_grant_of_another_lease_counts_for_nothing(grant: Grant) -> None:
    one = candidate()
    number = one.claim(0, 1.0).number
    one.heard(0, grant._replace(holder=5, epoch=9, lease_ms=250, number=number), 1.0)
    assert (one.state, one.epoch, one.views[0].grant) == ("standby", 0, None)


def test_a_grant_of_a_broker_that_is_out_of_reach_counts_for_nothing() -> None:
    one = candidate()
    one.reached(0, "unreachable", 1.0)
    granting(one, 1.0)
    assert (one.state, one.views[0].grant) == ("standby", None)


def test_a_broker_is_as_it_is_since_that_changed() -> None:
    view, found = BrokerView(), []
    steps: list[tuple[Reach, float]] = [("up", 1.0), ("up", 2.0), ("refused", 3.0), ("refused", 4.0)]
    for reach, now in steps:
        view.enter(reach, now)
        found.append((view.reach, view.since_s))
    assert found == [("up", 1.0), ("up", 1.0), ("refused", 3.0), ("refused", 3.0)]


@pytest.mark.parametrize(
    ("acting", "holder", "state"),
    [(True, ANOTHER, "standby"), (True, 7, "standby"), (False, ANOTHER, "active"), (True, 5, "active")],
)
def test_who_forwards_stops_when_a_broker_says_that_another_does(
    acting: bool, holder: int, state: str
) -> None:
    one = candidate(2)
    for broker in (0, 1):
        granting(one, 1.0, broker)
    assert telling(one, 1.125, 1, acting, holder) == state


@pytest.mark.parametrize(("lease_ms", "lease_s", "state"), [(313, 0.3125, "active"), (400, 0.4, "standby")])
def test_what_a_broker_said_of_another_counts_for_a_lease_also_for_a_longer_one_since(
    lease_ms: int, lease_s: float, state: str
) -> None:
    one = candidate(2)
    telling(one, 1.0, 1)
    assert granting(one, 1.3125) == "active"
    one.revise(lease_ms)
    assert one.lease_s == lease_s
    assert one.judge(1.3125) == state


@pytest.mark.parametrize(("now", "state"), [(1.25, "standby"), (1.3125, "active")])
def test_a_broker_that_says_nothing_for_longer_than_a_lease_is_not_waited_for(now: float, state: str) -> None:
    one = candidate(2)
    telling(one, 1.0, 1, acting=False)
    assert granting(one, now) == state


def test_a_broker_that_never_said_anything_is_waited_for_since_the_start() -> None:
    one = candidate(2)
    assert granting(one, 0.25) == "standby"
    assert granting(one, 0.3125) == "active"
    waits = candidate(2)
    assert granting(waits, 0.3125, alone=False) == "standby"


def test_a_broker_that_is_dead_is_not_waited_for() -> None:
    one = candidate(2)
    one.reached(1, "refused", 0.0)
    assert granting(one, 0.0, alone=False) == "active"


@pytest.mark.parametrize(("holder", "other"), [(0, False), (5, False), (1, True), (7, True), (ANOTHER, True)])
def test_another_has_the_lease_if_a_broker_names_neither_nobody_nor_us(holder: int, other: bool) -> None:
    one = candidate()
    telling(one, 1.0, acting=False, holder=holder)
    assert one.other_holds == other


def test_it_is_alone_while_it_forwards_and_all_that_grant_it_say_so() -> None:
    one = candidate(2)
    assert not one.alone
    granting(one, 1.0)
    assert (granting(one, 1.0, 1, alone=False), one.alone) == ("active", False)
    granting(one, 1.0, 1)
    assert one.alone
    telling(one, 1.0, 1, acting=False)
    assert one.alone


@pytest.mark.parametrize(
    ("now", "up", "reach", "may"),
    [
        (1.25, True, "up", True),
        (1.1875, True, "up", False),
        (1.1875, False, "up", True),  # nothing passes anyway
        (1.1875, True, "unreachable", True),
    ],
)
def test_one_whose_links_are_up_resigns_no_sooner_than_a_broker_that_is_back_may_grant(
    now: float, up: bool, reach: Reach, may: bool
) -> None:
    one = candidate(2)
    one.reached(1, "refused", 0.9375)
    one.reached(1, reach, 1.0)
    one.links(up)
    assert one.may_resign(now) == may


def test_it_is_asked_to_resign_only_while_it_forwards() -> None:
    one = candidate(2)
    assert granting(one, 0.125, please_resign=True) == "standby"
    assert not one.asked_to_resign
    assert granting(one, 0.125, 1) == "active"
    assert one.asked_to_resign
    granting(one, 0.125)
    assert not one.asked_to_resign


def test_it_says_why_it_is_in_a_state() -> None:
    one = candidate()
    told = [one.cause]
    steps: list[Callable[[], object]] = [
        lambda: granting(one, 1.0),
        lambda: one.reached(0, "unreachable", 1.0625),
        lambda: one.reached(0, "up", 1.125),
        lambda: granting(one, 1.125),
        lambda: one.reached(0, "refused", 1.1875),
        lambda: one.reached(0, "up", 2.0),
        lambda: one.judge(2.25),
        lambda: granting(one, 3.0),
        lambda: one.judge(3.25),
        lambda: one.judge(4.0),
    ]
    for step in steps:
        step()
        told.append(f"{one.state}: {one.cause}")
    assert told == [
        "started",
        "active: granted by all brokers that can be reached",
        "doubt: no broker grants it now",
        "doubt: no broker grants it now",
        "active: confirmed",
        "orphan: no broker is left",
        "orphan: no broker is left",
        "fenced: a broker came back, and did not answer",
        "active: granted by all brokers that can be reached",
        "fenced: the lease ran out",
        "fenced: the lease ran out",
    ]


@pytest.mark.parametrize(("first", "then"), [(7, 8), (8, 7)])
def test_the_broker_heard_last_names_who_forwards(first: int, then: int) -> None:
    one = candidate(2)
    for broker, holder in ((0, first), (1, then)):
        grant = Grant((1,), "x", acting=True, holder=holder, name=f"gw-{holder}")
        one.heard(broker, grant, 1.0 + broker)
        assert one.holder_name == f"gw-{holder}"


def test_what_a_broker_tells_unasked_of_a_change_is_no_late_answer_and_lengthens_no_lease() -> None:
    """It names the last claim again, which was answered at once and may be a heartbeat old."""
    one = candidate()
    one.revise(250, 2000)
    granting(one, 1.0)
    told = Grant((1,), "x", True, holder=5, epoch=1, lease_ms=250, number=1, name="a")
    one.heard(0, told, 1.0625)
    assert one.pace.judge(1.125) == one.pace.least_ms
    number = one.claim(0, 1.125).number
    one.heard(0, told._replace(number=number), 1.1875)  # an answer, and late
    assert one.pace.judge(1.25) == one.pace.least_ms + 500


def test_a_candidate_settles_once_a_fault_costs_no_more_than_a_lease() -> None:
    one = Candidate((1,), "x", 5, 0, 2, "a", most_ms=2000)
    told = [one.settling]
    steps: list[Callable[[], object]] = [
        lambda: one.reached(0, "up", 1.0),
        lambda: one.links(True),
        lambda: granting(one, 1.0),  # the other broker is not known yet
        lambda: one.reached(1, "refused", 1.0625),
        lambda: one.links(False),  # later that is another state
        lambda: one.judge(1.125),
    ]
    for step in steps:
        step()
        told.append(one.settling)
    assert told == [True, True, True, True, False, False, False]


def test_a_standby_settles_once_another_forwards() -> None:
    one = candidate()
    telling(one, 1.0, acting=False)
    assert one.settling
    telling(one, 1.0625)
    assert not one.settling


def test_a_candidate_settles_when_what_was_late_at_its_start_counts_no_more() -> None:
    one = Candidate((1,), "x", 5, 0, 1, "a", most_ms=2000)
    one.links(True)
    one.reached(0, "up", 0.0)
    one.pace.late(0.25, 1.0)
    for at_s, settling in ((2.0, True), (20.0, True), (32.0, False)):
        one.pace.judge(at_s)
        granting(one, at_s)
        assert one.settling == settling
