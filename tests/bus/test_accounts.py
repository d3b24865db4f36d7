"""Counts of ledgers and accounts: each is added to its own, and what does not come out even is told."""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import astuple, fields

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

    def __init__(self, stats: Stats) -> None:
        self.stats = stats
        self.is_there = True


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


COUNTS = [field.name for field in fields(Stats)]


def count(stats: Stats, name: str) -> None:
    """Count one more of something."""
    found = getattr(stats, name)
    if isinstance(found, dict):
        found["again"] = found.get("again", 0) + 1
    else:
        setattr(stats, name, found + 1)


Chain = tuple[Accounts, Layer, Layer, Stats]


def chain_of_two() -> Chain:
    """Return accounts of a chain of two pipes, the pipes, and a ledger that is kept beside them."""
    accounts, outer, inner, kept = Accounts(), Layer(Stats()), Layer(Stats()), Stats()
    accounts.enlist("open", "no peer", 0, None)
    accounts.enter(outer, "tcp", [outer, inner], 0)
    accounts.keep("tcp", kept)
    return accounts, outer, inner, kept


def values(accounts: Mapping[str, Account]) -> dict[str, tuple[object, ...]]:
    return {link: astuple(account) for link, account in accounts.items()}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("of", [1, 2])
def test_accounts_are_the_same_object_until_a_ledger_of_a_pipe_has_counted_anything(
    name: str, of: int
) -> None:
    read, unread = chain_of_two(), chain_of_two()
    for _ in range(2):  # a reason of a drop is there from the second on
        before = read[0].read(0)
        assert read[0].read(0) is before
        was = values(before)
        for chain in (read, unread):
            count((chain[1] if of == 1 else chain[2]).stats, name)
        assert read[0].read(0) is not before
        assert values(before) == was
    assert values(read[0].read(0)) == values(unread[0].read(0))


@pytest.mark.parametrize("name", COUNTS)
def test_accounts_are_the_same_object_until_a_ledger_of_no_pipe_has_counted_anything(name: str) -> None:
    accounts, *_, kept = chain_of_two()
    count(kept, "offered")
    before = accounts.read(0)
    assert accounts.read(0) is before
    count(kept, name)
    assert getattr(accounts.read(0)["tcp"].stats, name) == getattr(kept, name)


CHANGES: list[Callable[[Accounts, Layer], object]] = [
    lambda accounts, _: accounts.keep("late", numbered(1)),
    lambda accounts, _: accounts.inherit({"old": Account(numbered(1))}, str),
    lambda accounts, _: accounts.enlist("new", "no peer", 0, None),
    lambda accounts, _: accounts.miss("open", from_payloads([b"1"])),
    lambda accounts, _: accounts.lend("tcp", 1),
    lambda accounts, _: accounts.enter(other := Layer(Stats()), "tcp", [other], 0),
    lambda accounts, pipe: accounts.note_waiting(pipe, 1),
    lambda accounts, pipe: accounts.leave(pipe, 0),
    lambda _, pipe: setattr(pipe, "stats", numbered(1)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_accounts_are_added_up_anew_after_whatever_else_changes_them(
    change: Callable[[Accounts, Layer], object],
) -> None:
    (accounts, pipe, *_), (unread, other, *_) = chain_of_two(), chain_of_two()
    before = accounts.read(0)
    assert accounts.read(0) is before
    change(accounts, pipe)
    change(unread, other)
    assert values(accounts.read(0)) != values(before)
    assert values(accounts.read(0)) == values(unread.read(0))


def test_a_peer_that_goes_while_its_pipe_stays_changes_accounts() -> None:
    accounts, _, inner, _ = chain_of_two()
    assert accounts.read(0)["tcp"].live == 1
    inner.is_there = False
    assert accounts.read(0)["tcp"].live == 0


def test_what_a_hub_passes_on_and_a_link_that_closes_change_accounts() -> None:
    accounts, kept = Accounts(), numbered(1)
    accounts.enlist("open", "no peer", 0, None)
    accounts.keep("late", kept)
    assert accounts.read(0)["open"].due == 0
    assert accounts.read(2)["open"].due == 2
    before = accounts.read(2)
    accounts.strike("open", 3)
    assert accounts.read(3)["open"].due == 3 > before["open"].due
    accounts.fold("late", kept)
    assert accounts.read(3)["late"].stats.sent == kept.sent


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("held", [True, False])
def test_accounts_are_the_same_object_until_a_ledger_of_a_pipe_that_left_has_counted_anything(
    name: str, held: bool
) -> None:
    accounts, stats = Accounts(), Stats()  # a device has one ledger for all its openings
    pipe = Layer(stats)
    accounts.enter(pipe, "tcp", [pipe], 0)
    accounts.leave(pipe, 0)
    if not held:
        del pipe
    accounts.read(0)
    before = accounts.read(0)
    assert accounts.read(0) is before
    count(stats, name)
    assert accounts.read(0) is not before
    assert values(accounts.read(0)) != values(before)


def test_what_a_link_without_a_pipe_has_missed_of_a_hub_is_added_up_once() -> None:
    accounts = Accounts()
    accounts.enlist("open", "no peer", 0, None)
    before = accounts.read(2)
    assert before["open"].stats.dropped == {"no peer": 2}
    assert accounts.read(2) is before
