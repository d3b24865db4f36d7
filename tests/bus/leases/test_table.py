"""The broker's table of leases, with a time that the tests control."""

from hypothesis import given
from hypothesis import strategies as st

from bus.leases.group import Group, Member
from bus.leases.table import LeaseTable
from bus.leases.wire import ANOTHER, Claim, Grant, pack_claim, unpack_claim, unpack_grant
from bus.wire.frame import BRIDGE, BROKER, pack

FRIDGE = (0x11223344,)


class Desk:
    """A table, and candidates whose claims the test decides."""

    def __init__(self, **options: float) -> None:
        self.table, self.now = LeaseTable(**options), 0.0  # type: ignore[arg-type]
        self.heard: dict[object, Grant] = {}

    def _take(self, answers: list[tuple[object, bytes]]) -> None:
        for who, frame in answers:
            grant = unpack_grant(frame)
            assert grant is not None
            self.heard[who] = grant

    def say(self, name: str, order: int = 0, **fields: object) -> Grant:
        claim = Claim(FRIDGE, "fridge", ord(name), order, name=name)._replace(**{"ready": True} | fields)  # type: ignore[arg-type]
        self._take(self.table.heard(pack_claim(claim), name, self.now))
        return self.heard[name]

    def lose(self, name: str) -> None:
        self._take(self.table.lost(name, self.now))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._take(self.table.tick(self.now))

    def settle(self, holder: str = "a", other: str = "b") -> None:
        """Let `holder` be chosen and forward, while `other` is the standby."""
        self.say(holder, 0)
        self.wait(0.2)
        self.say(holder, 0)
        self.wait(0.06)
        assert self.say(holder, 0, holding=True, epoch=1).granted
        assert not self.say(other, 1).granted


def test_a_broker_without_memory_waits_one_lease_and_then_takes_the_best() -> None:
    desk = Desk()
    assert not desk.say("b", 1).granted
    desk.wait(0.2)
    assert not desk.say("a", 0).granted
    assert not desk.say("b", 1).granted
    desk.wait(0.06)
    assert desk.heard["a"].granted
    assert not desk.heard["b"].granted
    assert (desk.heard["a"].holder, desk.heard["b"].holder) == (ord("a"), ANOTHER)


def test_a_candidate_that_says_it_forwards_is_believed_at_once_and_the_latest_epoch_wins() -> None:
    desk = Desk()
    desk.say("b", 1)
    assert desk.say("a", 0, holding=True, epoch=7) == Grant(
        FRIDGE, "fridge", True, False, True, True, ord("a"), 0, 7, 250, 0, "a", orderly=True
    )
    assert desk.say("b", 1, holding=True, epoch=8).granted
    assert not desk.say("a", 0, holding=True, epoch=7).granted
    assert desk.heard["a"].epoch == 8


def test_a_lost_connection_passes_the_lease_on_at_once_and_says_that_the_old_one_may_still_run() -> None:
    desk = Desk()
    desk.settle()
    desk.lose("a")
    assert desk.heard["b"].granted
    assert desk.heard["b"].epoch == 2
    assert not desk.heard["b"].alone
    desk.wait(0.2)
    assert not desk.say("b", 1, holding=True, epoch=2).alone
    desk.wait(0.06)
    assert desk.say("b", 1, holding=True, epoch=2).alone


def test_silence_passes_the_lease_on_when_it_has_run_out() -> None:
    desk = Desk()
    desk.settle()
    desk.wait(0.24)
    assert not desk.say("b", 1).granted
    desk.wait(0.02)
    assert desk.heard["b"].granted
    assert desk.heard["b"].alone


def test_only_who_is_ready_is_chosen_and_who_was_silent_is_not() -> None:
    desk = Desk()
    desk.settle()
    desk.say("b", 1, ready=False)
    desk.lose("a")
    assert desk.heard["b"].holder == 0
    assert desk.say("b", 1).granted
    desk.say("c", 2)
    desk.wait(0.3)  # all of them silent
    assert desk.heard["c"].holder == 0


def test_who_held_it_last_goes_on_in_its_epoch() -> None:
    desk = Desk()
    desk.settle()
    desk.say("b", 1, ready=False)
    desk.wait(0.3)
    assert desk.say("a", 0, epoch=1).granted
    assert desk.heard["a"].epoch == 1


def test_fail_back_waits_until_the_better_one_was_ready_without_a_break() -> None:
    desk = Desk(hold_down_s=1.0)
    desk.settle()
    desk.lose("a")
    for beat in range(25):
        ready = beat != 8
        desk.say("a", 0, ready=ready)
        grant = desk.say("b", 1, holding=True, epoch=2)
        assert grant.granted
        assert grant.please_resign == (beat >= 19), beat
        desk.wait(0.1)
    desk.say("b", 1, resign=True, epoch=2)
    assert desk.heard["a"].granted
    assert desk.heard["a"].alone
    assert desk.heard["a"].epoch == 3


def test_a_holder_that_cannot_is_asked_to_resign_for_one_who_can() -> None:
    desk = Desk()
    desk.settle()
    assert desk.say("a", 0, holding=True, epoch=1, ready=False).please_resign
    desk.say("a", 0, resign=True, ready=False, epoch=1)
    assert desk.heard["b"].granted


def test_who_was_chosen_and_does_not_act_yields_to_one_who_does() -> None:
    desk = Desk()
    desk.settle()
    desk.lose("a")
    assert desk.heard["b"].granted
    assert desk.say("a", 0, holding=True, epoch=1).granted  # another broker has granted it on
    assert not desk.heard["b"].granted
    assert desk.heard["a"].epoch == 3  # the epoch never goes back


def test_who_was_chosen_and_cannot_begin_makes_way_for_a_better_one_when_its_lease_has_run_out() -> None:
    desk = Desk()
    desk.say("b", 1)
    desk.wait(0.26)
    assert desk.say("b", 1).granted
    desk.say("a", 0)
    desk.wait(0.1)
    assert desk.say("b", 1).granted
    desk.wait(0.16)
    desk.say("a", 0)
    assert not desk.say("b", 1).granted
    assert not desk.say("a", 0).granted  # the lease of b may still run
    desk.wait(0.1)
    assert desk.say("a", 0).granted


def test_who_was_chosen_and_does_not_begin_stays_chosen_while_no_other_is_better() -> None:
    desk = Desk()
    desk.say("a", 0)
    for _ in range(20):
        desk.wait(0.1)
        desk.say("b", 1)
        assert desk.say("a", 0).granted == (desk.now > 0.25)
    assert desk.heard["a"].epoch == 1


def test_the_first_lease_of_all_is_the_first_epoch_whatever_the_id() -> None:
    desk = Desk()
    for _ in range(4):
        desk.say("\x01")
        desk.wait(0.1)
    assert desk.heard["\x01"].granted
    assert desk.heard["\x01"].epoch == 1


def test_a_page_shows_when_a_lease_ends() -> None:
    desk = Desk()
    desk.say("a", 0)
    (lease,) = desk.table.leases(desk.now)
    assert (lease.holder, lease.expires_ms, lease.epoch) == ("", 0, 0)
    desk.wait(0.26)
    desk.say("a", 0)
    (lease,) = desk.table.leases(desk.now + 0.125)
    assert (lease.holder, lease.expires_ms, lease.epoch) == ("a", 125, 1)
    (lease,) = desk.table.leases(desk.now + 1.0)
    assert (lease.holder, lease.expires_ms) == ("a", 0)
    assert [(one.name, one.ready, one.silent_ms) for one in lease.candidates] == [("a", False, 1000)]


def test_the_last_epoch_of_all_is_granted_on() -> None:
    group = Group(((1,), "x"), 0.0, epoch=0xFFFFFFFF, granted_s=0.0, grace_s=0.0)
    group.candidates[5] = Member("a", Claim((1,), "x", 5, epoch=7), 0.0, lease_s=0.25, ready_s=0.0)
    group.settle(0.125)
    ((_, answer),) = group.answers(0.125)
    grant = unpack_grant(answer)
    assert grant is not None
    assert (grant.granted, grant.epoch) == (True, 0xFFFFFFFF)
    last = Claim((1,), "x", 5, epoch=0xFFFFFFFF)
    group.hear(group.candidates[5], last, 0.125)
    assert group.candidates[5].claim.epoch == 0xFFFFFFFF


def test_one_who_has_not_heard_of_the_later_epoch_of_the_holder_does_not_take_it_from_it() -> None:
    desk = Desk()
    desk.settle()
    desk.lose("a")
    assert desk.heard["b"].epoch == 2
    assert desk.say("a", 0, holding=True, epoch=1).epoch == 3
    assert not desk.say("b", 1, holding=True, epoch=2).granted  # said before it heard of 3
    assert desk.say("a", 0, holding=True, epoch=3).granted
    assert desk.say("b", 1, holding=True, epoch=4).granted  # another broker has gone further


def test_one_whose_connection_ends_may_have_begun_with_what_it_was_just_granted() -> None:
    desk = Desk()
    desk.say("a", 0)
    desk.say("b", 1)
    desk.wait(0.24)
    desk.say("a", 0)
    desk.say("b", 1)
    desk.wait(0.02)
    assert desk.heard["a"].granted
    desk.lose("a")
    assert desk.heard["b"].granted
    assert not desk.heard["b"].alone


def test_tables_are_bounded_and_what_does_not_fit_is_counted() -> None:
    table = LeaseTable(groups=3, candidates=2)
    for number in range(5):
        table.heard(pack_claim(Claim((number,), "x", 1, ready=True)), f"g{number}", 0.0)
    for number in range(2, 5):
        table.heard(pack_claim(Claim((0,), "x", number)), f"c{number}", 0.0)
    assert len(table) == 3
    assert table.rejected == {"groups full": 2, "candidates full": 2}
    table.lost("g1", 1.0)
    assert table.heard(pack_claim(Claim((9,), "x", 1)), "new", 1.0)


HOLDER = Claim(FRIDGE, "fridge", 1, ready=True, holding=True, epoch=1)


def held() -> LeaseTable:
    """Return a table in which candidate 1 holds the lease by the connection "one", and 2 is the standby."""
    table = LeaseTable()
    for now in (-1.0, -0.8, 0.0):
        assert table.heard(pack_claim(HOLDER), "one", now)
        assert table.heard(pack_claim(Claim(FRIDGE, "fridge", 2, 1, ready=True)), "two", now)
    return table


def granted(answers: list[tuple[object, bytes]]) -> list[object]:
    return [who for who, frame in answers if (grant := unpack_grant(frame)) and grant.granted]


def test_a_claim_with_the_id_of_another_connection_is_refused_while_that_lives() -> None:
    table = held()
    forged = pack_claim(HOLDER._replace(resign=True, holding=False, number=9))
    (probed,) = table.heard(forged, "liar", 0.1)
    assert granted([probed]) == ["one"]  # something is sent there, to see whether it lives
    assert table.rejected == {"id of another connection": 1}
    assert granted(table.heard(pack_claim(HOLDER), "one", 0.2)) == ["one"]
    assert granted(table.lost("liar", 0.21)) == []
    assert granted(table.lost("one", 0.22)) == ["two"]


def test_a_candidate_that_has_dialled_again_goes_on_when_the_end_of_the_old_connection_is_found() -> None:
    table = held()
    table.heard(pack_claim(HOLDER._replace(number=1)), "new", 0.1)
    assert granted(table.lost("one", 0.11)) == ["new"]
    assert table.heard(pack_claim(HOLDER), "one", 0.12)  # late; and nobody has to answer it
    assert granted(table.heard(pack_claim(HOLDER), "new", 0.2)) == ["new"]
    assert granted(table.lost("one", 0.3)) == []


def test_an_old_connection_that_is_silent_for_a_lease_makes_way_without_its_end() -> None:
    table = held()
    assert granted(table.heard(pack_claim(HOLDER), "new", 0.24)) == ["one"]
    assert granted(table.heard(pack_claim(HOLDER), "new", 0.26)) == ["new"]
    assert granted(table.heard(pack_claim(HOLDER), "one", 0.27)) == ["new"]  # that is the probe


def test_a_claim_that_was_refused_counts_no_more_when_its_own_connection_is_gone() -> None:
    table = held()
    table.heard(pack_claim(HOLDER), "new", 0.1)
    table.lost("new", 0.11)
    assert granted(table.lost("one", 0.12)) == ["two"]


def test_a_connection_has_one_candidate_in_a_group_and_a_bound_of_groups() -> None:
    table = held()
    assert table.heard(pack_claim(HOLDER._replace(id=3)), "one", 0.1) == []
    assert table.rejected == {"a second id of one connection": 1}
    for number in range(70):
        table.heard(pack_claim(Claim((number,), "x", 9)), "greedy", 0.1)
    assert table.rejected["candidates of one connection"] == 6
    table.lost("greedy", 0.2)
    assert table.heard(pack_claim(Claim((1,), "x", 9)), "other", 0.2)


def test_one_host_has_half_of_the_groups_at_most() -> None:
    table = LeaseTable(groups=8)
    for number in range(6):
        table.heard(pack_claim(Claim((number,), "x", 9)), number, 0.1, "10.0.0.1")
    assert table.rejected == {"candidates of one host": 2}
    for number in range(4):
        table.lost(number, 0.2)
    for number in range(4):
        assert table.heard(pack_claim(Claim((number,), "x", 9)), f"again {number}", 0.2, "10.0.0.1")
    assert table.heard(pack_claim(Claim((9,), "x", 9)), "other", 0.1, "10.0.0.2")


def test_claims_that_come_too_fast_are_refused_until_there_was_time() -> None:
    table = held()
    heartbeat = pack_claim(HOLDER)
    answered = [bool(table.heard(heartbeat, "one", 0.1)) for _ in range(1100)]
    assert answered.count(False) == table.rejected["claims too fast"] >= 100
    assert table.heard(pack_claim(Claim(FRIDGE, "fridge", 2, 1, ready=True)), "two", 0.1)  # others are not
    assert table.heard(heartbeat, "one", 0.2)


def test_an_idle_table_has_nothing_due_and_is_looked_at_when_a_lease_ends() -> None:
    table = held()
    for number in range(64):
        table.heard(pack_claim(Claim((number,), "x", 9)), "other", 0.0)
    table.tick(0.0)
    assert table.due_s == 0.25
    table.lost("other", 0.1)
    assert granted(table.tick(0.26)) == []
    assert table.due_s > 600.0
    assert table.tick(599.0) == []
    table.tick(700.0)
    assert table.due_s == float("inf")
    assert [lease.candidates for lease in table.leases(700.0)] == [()] * 65


def test_whoever_falls_silent_makes_room_for_others() -> None:
    table = LeaseTable(candidates=2)
    for number in (1, 2):
        table.heard(pack_claim(Claim(FRIDGE, "x", number, ready=True)), f"c{number}", 0.0)
    assert table.heard(pack_claim(Claim(FRIDGE, "x", 3)), "c3", 0.1) == []
    assert table.heard(pack_claim(Claim(FRIDGE, "x", 3)), "c3", 0.6)


def test_an_epoch_grows_by_one_and_a_broker_without_memory_believes_half_of_all_at_most() -> None:
    desk = Desk()
    desk.say("b", 1, epoch=0xFFFFFFFF)
    desk.wait(0.26)
    assert desk.say("b", 1).granted
    assert desk.heard["b"].epoch == 0x80000000
    assert desk.say("c", 2, epoch=0xFFFFFFFF).epoch == 0x80000001
    assert desk.say("c", 2, epoch=0xFFFFFFFF).epoch == 0x80000002


def test_what_another_broker_granted_far_ahead_is_believed_step_by_step() -> None:
    desk = Desk()
    desk.settle()
    assert desk.say("b", 1, holding=True, epoch=9).granted
    assert [desk.say("b", 1, holding=True, epoch=9).epoch for _ in range(8)] == [3, 4, 5, 6, 7, 8, 9, 9]


@given(st.binary(max_size=60), st.sampled_from([BRIDGE | BROKER, BRIDGE]))
def test_bytes_that_are_no_claim_are_counted_and_never_raise(data: bytes, kind: int) -> None:
    table = LeaseTable()
    for frame in (data, pack(kind, (1,), data)):
        unpack_grant(frame)
        if unpack_claim(frame) is None:
            assert table.heard(frame, "x", 0.0) == []
            assert table.rejected["not a claim"] >= 1
