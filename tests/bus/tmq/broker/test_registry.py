"""The broker's registry, compared with a simple model of the rule: a pattern gets what starts with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.tmq.broker.registry import Registry, Tell
from bus.wire.frame import PUB, SUB

S, P, Q = ("10.0.0.1", 1), ("10.0.0.2", 2), ("10.0.0.3", 3)
patterns = st.lists(st.integers(1, 3), max_size=3).map(tuple)
who = st.sampled_from([S, P, Q])
steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "dead"]), st.sampled_from([SUB, PUB]), patterns, who),
    max_size=40,
)


def said(registry: Registry, role: int, tokens: tuple[int, ...], address: tuple[str, int]) -> list[Tell]:
    told, fault = registry.add(role, tokens, address, address[0])
    assert not fault
    return told


@pytest.mark.parametrize("subscribed", [(), (1,), (1, 2), (1, 2, 3)])
def test_a_publisher_hears_of_every_prefix_in_both_orders(subscribed: tuple[int, ...]) -> None:
    for first, second in ((SUB, PUB), (PUB, SUB)):
        registry = Registry()
        told = []
        for role in (first, second):
            tokens, address = (subscribed, S) if role == SUB else ((1, 2, 3), P)
            told += said(registry, role, tokens, address)
        assert told == [Tell(P, (1, 2, 3), "add", (S,))]


def test_a_publisher_hears_only_of_patterns_that_match() -> None:
    registry = Registry()
    for tokens in ((1, 2), (2,), (0, 1), (1, 1, 9)):
        said(registry, PUB, tokens, P)
    assert said(registry, SUB, (1, 2, 3), S) == []
    assert [tell.tokens for tell in said(registry, SUB, (1,), S)] == [(1, 1, 9), (1, 2)]


def test_a_subscription_taken_back_leaves_what_another_covers() -> None:
    registry = Registry()
    said(registry, PUB, (1, 2), P)
    said(registry, SUB, (1,), S)
    said(registry, SUB, (), S)
    assert registry.remove(SUB, (1,), S) == []
    assert registry.remove(SUB, (), S) == [Tell(P, (1, 2), "remove", (S,))]
    assert registry.remove(SUB, (), S) == []


def test_the_dead_are_not_told_of_their_own_end() -> None:
    registry = Registry()
    said(registry, PUB, (1,), S)
    said(registry, PUB, (1,), P)
    said(registry, SUB, (1,), S)
    assert registry.remove_address(S) == [Tell(P, (1,), "remove", (S,))]
    assert not registry.knows(S)


def test_a_repeated_subscription_is_told_again() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    assert said(registry, SUB, (1,), S) == said(registry, SUB, (1,), S) == [Tell(P, (1,), "add", (S,))]
    assert len(registry) == 2


def test_what_brokers_share_expires_unless_repeated_or_own() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    assert registry.share(SUB, (1,), S, 7, 10.0)[0] == [Tell(P, (1,), "add", (S,))]
    assert registry.share(SUB, (1,), S, 7, 20.0)[0] == []
    assert registry.expire(15.0) == []
    assert registry.expire(20.0) == [Tell(P, (1,), "remove", (S,))]
    registry.share(SUB, (1,), S, 7, 30.0)
    said(registry, SUB, (1,), S)
    assert registry.expire(40.0) == []
    assert registry.subscribers((1,)) == [S]


def test_publishers_of_other_brokers_are_told_by_them() -> None:
    registry = Registry()
    assert registry.share(PUB, (1,), P, 7, 10.0)[0] == []
    assert said(registry, SUB, (1,), S) == []


def test_only_local_registrations_are_shared() -> None:
    registry = Registry()
    registry.share(SUB, (1,), S, 7, 10.0)
    said(registry, SUB, (1,), Q)
    assert list(registry.own()) == [(SUB, (1,), Q)]


def test_each_bound_refuses_and_the_rest_goes_on() -> None:
    registry = Registry(limit=4, per_address=2, per_host=3)
    said(registry, SUB, (1,), S)
    said(registry, SUB, (2,), S)
    assert registry.add(SUB, (3,), S, "h")[1] == "registrations of one address"
    for port in range(3):
        registry.remove_address(S)
        registry.add(SUB, (1,), ("1.1.1.1", port), "flood")
    assert registry.add(SUB, (1,), ("1.1.1.1", 9), "flood")[1] == "registrations of one host"
    said(registry, SUB, (1,), P)
    assert registry.add(SUB, (1,), Q, "h")[1] == "registrations full"
    said(registry, SUB, (1,), P)  # a known registration can be repeated
    registry.remove_address(("1.1.1.1", 0))
    assert registry.add(SUB, (1,), ("1.1.1.1", 9), "flood")[1] == ""


def test_long_patterns_are_bounded_by_their_tokens() -> None:
    registry = Registry(tokens=300)
    said(registry, SUB, tuple(range(255)), S)
    assert registry.add(SUB, tuple(range(46)), P, "h")[1] == "registrations full"
    said(registry, SUB, tuple(range(45)), P)
    registry.remove_address(S)
    said(registry, SUB, tuple(range(255)), Q)


def test_a_repeated_subscription_is_not_told_again_if_again_is_false() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    assert registry.add(SUB, (1,), S, "h", again=False)[0] != []
    assert registry.add(SUB, (1,), S, "h", again=False)[0] == []


def test_exact_subscribers_get_nothing_longer() -> None:
    registry = Registry()
    said(registry, PUB, (1, 2), P)
    assert registry.add(SUB, (1,), S, "h", exact=True)[0] == []
    assert registry.subscribers((1, 2)) == []
    assert registry.add(SUB, (1, 2), S, "h", exact=True)[0] == [Tell(P, (1, 2), "add", (S,))]


@given(steps)
def test_publishers_know_what_a_plain_search_finds(
    taken: list[tuple[str, int, tuple[int, ...], tuple[str, int]]],
) -> None:
    registry = Registry()
    model: set[tuple[int, tuple[int, ...], tuple[str, int]]] = set()
    known: dict[tuple[tuple[str, int], tuple[int, ...]], set[tuple[str, int]]] = {}
    for step, role, tokens, address in taken:
        if role == PUB and step == "add":
            known.setdefault((address, tokens), set())
        if step == "add":
            told = said(registry, role, tokens, address)
            model.add((role, tokens, address))
        elif step == "remove":
            told = registry.remove(role, tokens, address)
            model.discard((role, tokens, address))
        else:
            told = registry.remove_address(address)
            model = {m for m in model if m[2] != address}
        known = {key: value for key, value in known.items() if (PUB, key[1], key[0]) in model}
        for tell in told:
            listed = known[tell.publisher, tell.tokens]
            listed |= set(tell.subscribers) if tell.change == "add" else set()
            listed -= set(tell.subscribers) if tell.change == "remove" else set()
        assert len(registry) == len(model)
        for (_, tokens_), listed in known.items():
            assert listed == {a for r, t, a in model if r == SUB and tokens_[: len(t)] == t}
