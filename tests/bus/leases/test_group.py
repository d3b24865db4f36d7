"""The choice between the candidates for one lease: each rule at its very moment."""

from math import inf

import pytest

from bus.leases.group import KEPT_S, LATE_S, Group, Member
from bus.leases.wire import ANOTHER, Claim, Grant, unpack_grant

LEASE_S = 0.25


def claim(
    id: int, order: int = 0, epoch: int = 0, ready: bool = True, holding: bool = False, resign: bool = False
) -> Claim:
    return Claim((1,), "x", id, order, epoch, ready=ready, holding=holding, resign=resign)


def hear(group: Group, said: Claim, now: float) -> Member:
    """Let a group take a claim, as the table does."""
    member = group.candidates.setdefault(said.id, Member(said.id, said, now))
    group.hear(member, said, now)
    return member


def answers(group: Group, now: float) -> dict[object, Grant]:
    """Return the grants by the candidate that they are for."""
    found = {who: unpack_grant(frame) for who, frame in group.answers(now)}
    return {who: grant for who, grant in found.items() if grant is not None}


def new_group(free_s: float = 0.0) -> Group:
    return Group(((1,), "x"), free_s)


def acting(*others: Claim, epoch: int = 5, order: int = 1) -> Group:
    """Return a group in which 5 forwards since 1.0, and has said so; others claim at that time."""
    group = new_group()
    for said in (claim(5, order, epoch, holding=True), *others):
        hear(group, said, 1.0)
    return group


def beats(since: float, until: float) -> list[float]:
    """Return the times of heartbeats from one moment to another."""
    return [since + step * LEASE_S / 4 for step in range(1, round((until - since) * 4 / LEASE_S) + 1)]


def test_a_candidate_lives_for_a_lease_and_is_fit_while_it_is_ready() -> None:
    member = Member("a", claim(1), 1.0)
    assert member.resigned_s == -inf
    assert not member.fit(1.0)
    member.heard(claim(1), 1.0, LEASE_S)
    assert (member.live(1.2), member.fit(1.2), member.live(1.25), member.fit(1.25)) == (True, True) + (
        False,
    ) * 2
    member.heard(claim(1, ready=False), 1.25, LEASE_S)
    assert (member.live(1.375), member.fit(1.375)) == (True, False)


def test_a_candidate_is_ready_since_its_last_break() -> None:
    member = Member("a", claim(1), 1.0)
    found = []
    for now, ready in ((1.0, True), (1.125, True), (1.25, False), (1.375, True), (1.5, True)):
        member.heard(claim(1, ready=ready), now, LEASE_S)
        found.append(member.ready_s)
    assert found == [1.0, 1.0, None, 1.375, 1.375]


def test_who_has_resigned_comes_last_for_four_leases() -> None:
    member, other = Member("a", claim(1, 0), 1.0, lease_s=LEASE_S), Member("b", claim(2, 1), 1.0)
    assert member.rank(1.0) < other.rank(1.0)
    member.resigned_s = 1.0
    assert [member.rank(now)[0] for now in (1.0, 1.9375, 2.0)] == [True, True, False]
    assert (member.status(1.5).silent_ms, member.status(1.5).known_ms) == (500, 500)


def test_the_first_claim_of_all_starts_one_lease_of_grace() -> None:
    group = new_group()
    hear(group, claim(5, ready=False), 1.0)
    hear(group, claim(6, 1), 1.125)
    assert group.grace_s == 1.25
    assert group.due_s == 1.25
    group.settle(1.2)
    assert group.holder is None
    group.settle(1.25)
    assert group.holder is group.candidates[6]


@pytest.mark.parametrize(
    ("rival", "wins"),
    [
        (claim(9, 9, 6, holding=True), True),
        (claim(1, 0, 4, holding=True), False),
        (claim(9, 0, 5, holding=True), True),
        (claim(1, 2, 5, holding=True), False),
        (claim(4, 1, 5, holding=True), True),
        (claim(6, 1, 5, holding=True), False),
        (claim(1, 0, 6), False),
    ],
)
def test_of_two_that_say_that_they_forward_the_later_epoch_wins_then_the_order_then_the_id(
    rival: Claim, wins: bool
) -> None:
    group = acting()
    hear(group, rival, 1.125)
    assert (group.claim.id == rival.id) == wins
    assert answers(group, 1.2)[rival.id].alone == (not wins)  # else the lease of the other may still run
    assert answers(group, 1.25)[rival.id].alone


def test_a_holder_that_does_not_forward_yields_to_one_that_says_it_does() -> None:
    group = new_group()
    hear(group, claim(5), 1.0)
    hear(group, claim(5), 1.25)
    assert group.claim.id == 5
    hear(group, claim(9, 9, 0), 1.25)
    assert group.claim.id == 5
    hear(group, claim(9, 9, 0, holding=True), 1.25)
    assert group.claim.id == 9


@pytest.mark.parametrize(
    ("flags", "keeps"),
    [
        ({"ready": True, "holding": False}, True),
        ({"ready": False, "holding": True}, True),
        ({"ready": False, "holding": False}, False),
    ],
)
def test_a_holder_renews_its_lease_while_it_forwards_or_is_ready(flags: dict[str, bool], keeps: bool) -> None:
    group = new_group()
    hear(group, claim(5), 1.0)
    hear(group, claim(5), 1.25)
    hear(group, claim(5, **flags), 1.375)
    assert (group.holder is not None) == keeps
    assert not keeps or group.expiry_s == 1.625
    group.settle(1.625)
    assert group.holder is None


def test_who_was_chosen_has_one_lease_to_begin_before_a_better_one_is() -> None:
    group = new_group()
    hear(group, claim(5, 1), 1.0)
    hear(group, claim(5, 1), 1.25)
    hear(group, claim(4, 0), 1.375)
    hear(group, claim(5, 1), 1.5)  # just a lease since it was chosen
    assert group.claim.id == 5
    hear(group, claim(5, 1), 1.5625)
    assert group.holder is None
    assert group.grace_s == 1.75  # until then it may yet begin


def test_who_stopped_as_this_broker_was_late_goes_on_and_no_better_one_is_chosen_for_it() -> None:
    group = acting(claim(4, 0))
    for at in beats(1.0, 3.0):
        hear(group, claim(5, 1, 5, holding=True), at)
        hear(group, claim(4, 0), at)
    hear(group, claim(5, 1, 5), 3.0625)
    assert (group.claim.id, group.claim.holding) == (5, False)
    hear(group, claim(4, 0), 3.2)
    hear(group, claim(5, 1, 5), 3.25)  # just a lease since it forwarded
    assert group.claim.id == 5
    hear(group, claim(5, 1, 5), 3.3125)
    assert group.holder is None


@pytest.mark.parametrize(("back_s", "late"), [(1.4, True), (1.5 + LATE_S, False)])
@pytest.mark.parametrize("gone", [False, True])
def test_a_new_holder_hears_that_the_one_before_was_only_late(back_s: float, late: bool, gone: bool) -> None:
    group = acting(other := claim(6, 2), claim(7, 3))
    for now in (1.2, 1.3, back_s - 0.05):
        hear(group, other, now)
    if gone:
        group.remove(group.candidates[7])
    assert not answers(group, back_s)[6].late
    hear(group, claim(5, 1, 5), back_s)
    assert {who: grant.late for who, grant in answers(group, back_s).items() if who != 7} == {
        5: False,
        6: late,
    }


def test_who_resigns_is_free_of_its_lease_at_once_and_others_are_not_touched() -> None:
    group = acting(claim(6, 2))
    hear(group, claim(5, 1, 5, holding=True), 1.2)
    hear(group, claim(6, 2, resign=True), 1.25)
    assert group.claim.id == 5
    hear(group, claim(7, 3), 1.25)
    hear(group, claim(5, 1, 5, resign=True), 1.375)
    assert (group.claim.id, group.free_s) == (7, 1.375)
    assert answers(group, 1.375)[7].alone


def test_who_goes_on_keeps_its_epoch_and_any_other_gets_the_next() -> None:
    group = acting(claim(6, 2))
    group.settle(1.25)
    hear(group, claim(5, 1, 5), 1.25)
    assert (group.claim.id, group.epoch) == (5, 5)
    hear(group, claim(6, 2), 1.25)
    group.remove(group.candidates[5])
    group.settle(1.25)
    assert (group.claim.id, group.epoch, group.epoch_held) == (6, 6, 6)


def test_a_lease_ends_at_its_very_moment() -> None:
    group = acting()
    group.settle(1.2)
    assert group.holder is not None
    group.settle(1.25)
    assert group.holder is None


@pytest.mark.parametrize(("removed", "holder", "free_s"), [(5, None, 1.25), (6, 5, 0.0)])
def test_the_lease_of_one_whose_connection_ends_may_still_run(
    removed: int, holder: int | None, free_s: float
) -> None:
    group = acting(claim(6, 2))
    group.remove(group.candidates[removed])
    assert (group.holder and group.holder.claim.id, group.free_s) == (holder, free_s)
    assert removed not in group.candidates


def test_a_group_is_looked_at_when_a_lease_or_the_grace_ends_or_somebody_was_silent_for_long() -> None:
    assert new_group().due_s == inf
    assert Group(((1,), "x"), 0.0, grace_s=5.0).due_s == 5.0
    group = acting(claim(6, 2, ready=False))
    assert group.due_s == 1.25
    group.expiry_s = inf
    assert group.due_s == 1.25 + KEPT_S
    group = new_group()
    hear(group, claim(6, 2, ready=False), 1.0)
    assert group.due_s == 1.25
    group.settle(1.25)
    assert group.due_s == 1.25 + KEPT_S


def test_who_is_silent_for_a_lease_and_longer_is_named_except_the_holder() -> None:
    group = acting(claim(6, 2))
    other = group.candidates[6]
    assert group.silent(3.2, 2.0) == []
    assert group.silent(3.25, 2.0) == [other]
    assert group.silent(1.25, 0.0) == [other]


def test_a_holder_hears_its_id_and_all_others_that_there_is_another() -> None:
    group = new_group(free_s=1.125)
    hear(group, claim(6, 2), 1.0)
    none = answers(group, 1.0)[6]
    assert (none.granted, none.holder, none.lease_ms, none.alone) == (False, 0, 250, False)
    group = acting(claim(6, 2))
    found = answers(group, 1.0)
    assert [(one.granted, one.holder, one.acting) for one in (found[5], found[6])] == [
        (True, 5, True),
        (False, ANOTHER, True),
    ]


@pytest.mark.parametrize(("order", "now", "asked"), [(0, 3.0, True), (0, 2.9375, False), (1, 3.0, False)])
def test_a_holder_is_asked_to_resign_when_a_better_one_was_ready_for_the_hold_down(
    order: int, now: float, asked: bool
) -> None:
    group = acting(claim(6, order))
    group.terms.hold_down_s = 2.0
    for at in beats(1.0, now):
        hear(group, claim(5, 1, 5, holding=True), at)
        hear(group, claim(6, order), at)
    found = answers(group, now)
    assert (found[5].please_resign, found[6].please_resign) == (asked, False)


@pytest.mark.parametrize(("silent_s", "asked"), [(0.1875, True), (0.25, False), (1.5, False)])
def test_one_that_was_silent_for_a_lease_has_not_been_ready_without_a_break(
    silent_s: float, asked: bool
) -> None:
    again = 1.0 + silent_s
    group = acting(claim(6, 0))
    group.terms.hold_down_s, group.grace_s = silent_s / 2, 1.0
    for at in beats(1.0, again):
        hear(group, claim(5, 1, 5, holding=True), at)
    hear(group, claim(6, 0), again)
    assert answers(group, again)[5].please_resign == asked


@pytest.mark.parametrize(("flags", "asked"), [({"ready": True}, True), ({"ready": False}, False)])
def test_a_holder_that_lost_a_link_is_asked_to_resign_for_any_other_that_is_fit(
    flags: dict[str, bool], asked: bool
) -> None:
    group = acting(claim(6, 9, **flags))
    group.grace_s = 1.0
    hear(group, claim(5, 1, 5, ready=False, holding=True), 1.0)
    assert answers(group, 1.125)[5].please_resign == asked
    assert not answers(group, 1.25)[5].please_resign  # the other is silent


@pytest.mark.parametrize(("order", "ready"), [(9, False), (0, True)])
def test_nobody_is_asked_to_resign_before_another_may_have_the_lease(order: int, ready: bool) -> None:
    """A broker that has just started gives it to nobody who does not forward yet."""
    group = acting(claim(6, order))
    group.terms.hold_down_s = 0.0
    found = []
    for now in (1.125, 1.1875, 1.25):
        hear(group, claim(6, order), now)
        hear(group, claim(5, 1, 5, ready=ready, holding=True), now)
        found.append(answers(group, now)[5].please_resign)
    assert found == [False, False, True]


def test_an_epoch_is_believed_up_to_half_of_all_at_first_and_one_further_afterwards() -> None:
    half = 0x7FFFFFFF
    assert [hear(new_group(), claim(5, epoch=one), 1.0).claim.epoch for one in (half, half + 1)] == [
        half,
        half,
    ]
    assert [hear(acting(), claim(5, epoch=one), 1.0).claim.epoch for one in (4, 5, 6, 7)] == [4, 5, 6, 6]


def test_long_leases_are_told_in_milliseconds() -> None:
    group = new_group()
    member = Member("a", claim(5, epoch=3), 1.0)
    group.candidates[5] = member
    group.terms.lease_s = 60.0
    group.hear(member, claim(5, epoch=3, holding=True)._replace(heartbeat_ms=24_000), 1.0)
    assert answers(group, 1.0)["a"].lease_ms == 60_000
    assert group.lease(1.0).expires_ms == 60_000
