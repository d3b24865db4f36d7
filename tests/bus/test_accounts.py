"""Counts of ledgers and accounts: each is added to its own, and what does not come out even is told."""

import weakref
from dataclasses import astuple

import pytest

from bus.accounts import Accounts
from bus.ledger import Account, Stats
from bus.wire.batch import from_payloads


def numbered(first: int) -> Stats:
    """Return a ledger in which no two counts are equal."""
    one, two, three, four, five, six, seven, dropped, rejected, *rest = range(first, first + 12)
    return Stats(one, two, three, four, five, six, seven, {"full": dropped}, {"bad": rejected}, *rest)


def test_every_count_is_added_to_its_own_and_taken_from_its_own() -> None:
    total = numbered(10)
    total.add(numbered(200))
    assert astuple(total) == (210, 212, 214, 216, 218, 220, 222, {"full": 224}, {"bad": 226}, 228, 230, 232)
    assert astuple(total.since(numbered(10))) == astuple(numbered(200))
    assert astuple(total.copy()) == astuple(total)
    other = Stats(dropped={"closed": 2}, rejected={"late": 1})
    assert other.since(numbered(1)).dropped == other.dropped
    assert other.since(numbered(1)).rejected == other.rejected


@pytest.mark.parametrize(
    ("stats", "used"),
    [
        (Stats(), False),
        (Stats(offered=1), True),
        (Stats(received=1), True),
        (Stats(rejected={"bad": 1}), True),
        (Stats(noise_bytes=1), True),
        (Stats(dropped={"full": 1}), True),
    ],
)
def test_a_ledger_is_used_as_soon_as_one_count_is_there(stats: Stats, used: bool) -> None:
    assert stats.used() == used


def test_a_count_of_none_adds_no_reason() -> None:
    stats = Stats()
    stats.drop("full", 0)
    stats.reject("bad", 0)
    assert (stats.dropped, stats.rejected) == ({}, {})
    stats.drop("full")
    stats.reject("bad")
    assert (stats.dropped, stats.rejected) == ({"full": 1}, {"bad": 1})


def test_a_batch_that_came_counts_in_messages_and_bytes() -> None:
    stats = Stats()
    for _ in range(2):
        stats.receive(from_payloads([b"12", b"3"]))
    assert (stats.received, stats.received_bytes) == (4, 2 * (8 + 2 + 8 + 1))


class Layer:
    """One pipe of a chain."""

    is_there = True

    def __init__(self, stats: Stats) -> None:
        self.stats = stats


def test_what_an_outer_pipe_rejects_was_heard_by_nobody_behind_it() -> None:
    accounts, outer, inner = Accounts(), Layer(Stats()), Layer(Stats())
    accounts.enter(outer, "tcp", [outer, inner], 0)
    outer.stats.received, inner.stats.received = 3, 5
    outer.stats.reject("bad", 2)
    account = accounts.read(3)["tcp"]
    assert (account.live, account.heard, account.stats.received) == (1, 3, 3)
    assert list(account.faults()) == []


@pytest.mark.parametrize("held", [0, 10])
def test_few_ledgers_are_kept_of_pipes_that_nobody_holds(held: int) -> None:
    accounts, ledgers, most = Accounts(), weakref.WeakSet[Stats](), 0
    holder = [Layer(Stats()) for _ in range(held)]
    for layer in [*holder, *(None for _ in range(200))]:
        leaver = layer or Layer(Stats())
        ledgers.add(leaver.stats)
        accounts.enter(leaver, "tcp", [leaver], 0)
        accounts.leave(leaver, 0)
        del leaver
        most = max(most, len(ledgers))
    assert most == 65 + 2 * held  # the last one may still be held when they are looked through


def test_accounts_go_on_with_those_of_another_hub_under_new_names() -> None:
    accounts, old = Accounts(), Accounts()
    accounts.inherit({"tcp": Account(numbered(10), 1, 20, 30, 40), "ipc": Account(numbered(200))}, str.upper)
    old.inherit(accounts.read(0), lambda link: "all")
    old.inherit({"TCP": Account(numbered(10), 0, 1, 2, 3)}, lambda link: "all")
    assert list(accounts.read(0)) == ["IPC", "TCP"]
    account, sums = old.read(0)["all"], numbered(10)
    sums.add(numbered(200))
    sums.add(numbered(10))
    assert astuple(account.stats) == astuple(sums)
    assert (account.live, account.gone, account.due, account.heard) == (0, 21, 32, 43)


def test_counts_without_a_pipe_have_an_account_from_the_first_on() -> None:
    accounts, kept = Accounts(), Stats()
    accounts.keep("trunk", kept)
    assert accounts.read(0) == {}
    kept.offered = kept.sent = 5
    kept.received = 3
    account = accounts.read(0)["trunk"]
    assert (account.live, account.gone, list(account.faults())) == (0, 0, [])
    assert (account.due, account.heard) == (5, 3)


def test_kept_ledgers_that_are_folded_stay_in_the_sum() -> None:
    accounts, first, second = Accounts(), Stats(offered=5, sent=5, received=3), Stats(offered=2, sent=2)
    for stats in (first, second):
        accounts.keep("clients", stats)
    before = accounts.read(0)["clients"]
    accounts.fold("clients", first)
    assert astuple(accounts.read(0)["clients"]) == astuple(before)
    accounts.fold("clients", second)
    first.sent = 9  # what a ledger counts later is nobody's
    account = accounts.read(0)["clients"]
    assert (account.stats.sent, account.stats.received, list(account.faults())) == (7, 3, [])


def test_an_account_says_each_sum_that_does_not_come_out_even() -> None:
    account = Account(Stats(offered=10, sent=4, queued=2, dropped={"full": 1}, received=7), due=11, heard=9)
    assert list(account.faults()) == [
        "3 of 10 offered are unaccounted for",
        "10 were offered, 11 were due",
        "9 came in, 7 were received",
    ]
