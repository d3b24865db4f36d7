"""The bounds of a table of leases, each at its very number."""

import pytest

from bus.leases.table import LeaseTable
from bus.leases.wire import Claim, pack_claim, unpack_grant


def claim(group: int, id: int = 9, ready: bool = False, holding: bool = False) -> bytes:
    return pack_claim(Claim((group,), "x", id, ready=ready, holding=holding))


def granted(answers: list[tuple[object, bytes]]) -> list[object]:
    return [who for who, frame in answers if (grant := unpack_grant(frame)) and grant.granted]


def test_a_table_has_1024_groups_and_64_candidates_in_each_by_default() -> None:
    table = LeaseTable()
    for number in range(1025):
        table.heard(claim(number), number, 0.0)
    assert (len(table), table.rejected) == (1024, {"groups full": 1})
    for number in range(64):
        table.heard(claim(0, number + 10), f"c{number}", 0.0)
    assert table.rejected == {"groups full": 1, "candidates full": 1}


def test_a_table_has_four_candidates_for_each_group() -> None:
    table = LeaseTable(groups=1)
    for number in range(5):
        table.heard(claim(0, number + 1), number, 0.0)
    assert table.rejected == {"candidates full": 1}


def test_a_table_of_one_group_takes_one_candidate_of_a_host() -> None:
    table = LeaseTable(groups=1)
    for number in range(2):
        table.heard(claim(0, number + 1), number, 0.0, "10.0.0.1")
    assert table.rejected == {"candidates of one host": 1}


def test_a_connection_has_1000_answers_at_once_and_1000_a_second() -> None:
    table = LeaseTable()
    assert [bool(table.heard(claim(0), "one", 1.0)) for _ in range(1001)] == [True] * 1000 + [False]
    assert [bool(table.heard(claim(0), "one", 1.125)) for _ in range(126)] == [True] * 125 + [False]
    assert table.rejected == {"claims too fast": 2}
    for _ in range(1001):
        table.heard(b"no claim", "two", 1.0)
    assert table.rejected == {"claims too fast": 3, "not a claim": 1000}


def test_a_group_makes_room_for_one_new_candidate_when_others_were_silent_for_a_lease() -> None:
    table = LeaseTable(candidates=2)
    for number in (1, 2):
        table.heard(claim(0, number), number, 1.0)
    assert table.heard(claim(0, 3), 3, 1.2) == []
    assert table.heard(claim(0, 3), 3, 1.25)
    assert len(table.leases(1.25)[0].candidates) == 1


def test_what_is_due_is_done_at_its_very_moment() -> None:
    table = LeaseTable()
    table.heard(claim(0, 1, ready=True), "a", 1.0)
    assert table.due_s == 1.25
    table.heard(claim(0, 1, ready=True), "a", 1.125)
    assert table.tick(1.2) == []
    assert granted(table.tick(1.25)) == ["a"]
    assert table.due_s == 1.5
    (ended,) = table.tick(1.5)
    assert granted([ended]) == []


def test_the_place_of_an_old_connection_is_taken_by_a_claim_that_is_no_older_than_a_lease() -> None:
    for at_s, taken in ((1.375, True), (1.5, False)):
        table = LeaseTable()
        table.heard(claim(0, 1, ready=True, holding=True), "old", 1.125)
        assert granted(table.heard(claim(0, 1, ready=True, holding=True), "new", 1.25)) == ["old"]
        assert granted(table.lost("old", at_s)) == (["new"] if taken else [])


def test_the_group_without_candidates_for_longest_makes_room() -> None:
    table = LeaseTable(groups=2)
    for number in range(2):
        table.heard(claim(number), f"g{number}", 0.0)
    assert table.heard(claim(2), "late", 0.0) == []
    table.lost("g1", 0.0)
    table.lost("g0", 0.0)
    assert table.heard(claim(2), "late", 0.0)
    assert {lease.pattern for lease in table.leases(0.0)} == {(0,), (2,)}


def test_the_place_of_an_old_connection_is_not_taken_by_one_that_has_a_candidate_there() -> None:
    table = LeaseTable()
    table.heard(claim(0, 1, ready=True, holding=True), "one", 1.0)
    table.heard(claim(0, 2, ready=True), "two", 1.0)
    table.heard(claim(0, 1, ready=True, holding=True), "two", 1.0)
    table.heard(claim(0, 1, ready=True, holding=True), "one", 1.1875)
    table.heard(claim(0, 2, ready=True), "two", 1.1875)
    table.lost("one", 1.25)
    assert len(table.leases(1.25)[0].candidates) == 1


def test_the_place_of_an_old_connection_is_not_taken_by_one_that_has_64_groups() -> None:
    table = LeaseTable()
    table.heard(claim(0, 1, ready=True), "one", 1.0)
    for number in range(64):
        table.heard(claim(number + 1), "greedy", 1.0)
    table.heard(claim(0, 1, ready=True), "greedy", 1.0)
    assert table.rejected == {"id of another connection": 1}
    assert table.lost("one", 1.125) == []
    assert table.leases(1.125)[0].candidates == ()
    assert table.heard(claim(0, 1), "new", 1.125)


@pytest.mark.parametrize("bound", ["candidates of one connection", "candidates of one host"])
def test_a_claim_that_is_refused_makes_no_group_in_place_of_one_that_is_remembered(bound: str) -> None:
    """A group without candidates has the epoch of the last holder, for whoever comes back."""
    is_host = bound.endswith("host")
    table = LeaseTable(groups=4 if is_host else 65)
    frame = pack_claim(Claim((7,), "honest", 9, epoch=5, ready=True, holding=True))
    table.heard(frame, "honest", 1.0)
    table.lost("honest", 2.0)
    for number in range(65):
        table.heard(claim(number), "stranger", 3.0, "10.0.0.1" if is_host else "")
    assert set(table.rejected) == {bound}
    assert [lease.epoch for lease in table.leases(3.0) if lease.bridge == "honest"] == [5]
