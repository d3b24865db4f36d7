"""The broker's registry, compared with a simple model of the rule: a pattern gets what starts with it."""

from collections.abc import Container, Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.tmq.broker.registry import Key, Registry, Step, Tell
from bus.wire.frame import PUB, SUB

S, P, Q = ("10.0.0.1", 1), ("10.0.0.2", 2), ("10.0.0.3", 3)
patterns = st.lists(st.integers(1, 3), max_size=3).map(tuple)
who = st.sampled_from([S, P, Q])
steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "dead"]), st.sampled_from([SUB, PUB]), patterns, who),
    max_size=40,
)


def said(registry: Registry, role: int, tokens: tuple[int, ...], address: tuple[str, int]) -> list[Tell]:
    steps, fault = registry.add(role, tokens, address, address[0])
    assert not fault
    return told(steps)


def told(steps: Iterable[Step]) -> list[Tell]:
    return [tell for _, tell in steps if tell is not None]


def expire(
    registry: Registry,
    now_s: float,
    silent: Container[int] = (),
    here: Container[tuple[str, int]] = (),
) -> tuple[list[Tell], list[tuple[str, int]]]:
    lapsed = dict[tuple[str, int], None]()
    return told(registry.expire(now_s, silent, here, lapsed)), list(lapsed)


def adopt(registry: Registry, address: tuple[str, int]) -> tuple[list[Key], list[Tell], str]:
    adopted, steps, fault = registry.adopt(address)
    return adopted, told(steps), fault


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
    assert told(registry.remove(SUB, (1,), S)) == []
    assert told(registry.remove(SUB, (), S)) == [Tell(P, (1, 2), "remove", (S,))]
    assert told(registry.remove(SUB, (), S)) == []


def test_the_dead_are_not_told_of_their_own_end() -> None:
    registry = Registry()
    said(registry, PUB, (1,), S)
    said(registry, PUB, (1,), P)
    said(registry, SUB, (1,), S)
    assert told(registry.remove_address(S)) == [Tell(P, (1,), "remove", (S,))]
    assert not registry.knows(S)


def test_the_end_of_a_client_is_one_unit_of_work_for_each_look_and_each_telling() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    for pattern in ((1,), (2,), (3,)):
        said(registry, SUB, pattern, S)
    work = [units for units, _ in registry.remove_address(S)]
    assert work == 5 * [1]  # three patterns, a publisher of one of them that is looked at, and told


def test_a_repeated_subscription_is_told_again() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    assert said(registry, SUB, (1,), S) == said(registry, SUB, (1,), S) == [Tell(P, (1,), "add", (S,))]
    assert len(registry) == 2


def test_what_brokers_share_expires_unless_repeated_or_own() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    assert told(registry.share(SUB, (1,), S, 7, 10.0)[0]) == [Tell(P, (1,), "add", (S,))]
    assert told(registry.share(SUB, (1,), S, 7, 20.0)[0]) == []
    assert expire(registry, 15.0) == ([], [])
    assert expire(registry, 20.0) == ([Tell(P, (1,), "remove", (S,))], [])
    registry.share(SUB, (1,), S, 7, 30.0)
    said(registry, SUB, (1,), S)
    assert expire(registry, 40.0) == ([], [])
    assert registry.subscribers((1,)) == [S]


def lapsed(**bounds: int) -> Registry:
    """Return a registry in which S subscribed to (1,) at broker 7, which has been silent since."""
    registry = Registry(**bounds)
    said(registry, PUB, (1,), P)
    registry.share(SUB, (1,), S, 7, 10.0)
    assert expire(registry, 10.0, {7}) == ([], [S])
    return registry


def test_what_a_silent_broker_said_stays_until_its_client_is_found_dead() -> None:
    registry = lapsed()
    assert registry.subscribers((1,)) == [S]
    assert expire(registry, 11.0) == ([], [S])
    assert told(registry.remove_address(S)) == [Tell(P, (1,), "remove", (S,))]
    assert expire(registry, 12.0) == ([], [])


def test_what_a_client_that_is_there_did_not_repeat_here_is_forgotten() -> None:
    registry = Registry()
    registry.share(SUB, (1,), S, 7, 10.0)
    assert expire(registry, 10.0, {7}, {S}) == ([], [])
    assert len(registry) == 0


def test_an_adopted_client_is_our_own_and_a_publisher_hears_of_its_subscribers() -> None:
    registry = lapsed()
    registry.share(PUB, (1, 2), Q, 7, 10.0)
    assert expire(registry, 10.0, {7}) == ([], [S, Q])
    assert adopt(registry, S) == ([(SUB, (1,), S)], [], "")
    assert adopt(registry, Q) == ([(PUB, (1, 2), Q)], [Tell(Q, (1, 2), "add", (S,))], "")
    assert adopt(registry, S) == ([], [], "")
    assert {(SUB, (1,), S), (PUB, (1, 2), Q)} < set(registry.own())
    assert expire(registry, 99.0) == ([], [])


def test_adopted_clients_count_for_their_host_and_are_removed_beyond_its_bound() -> None:
    registry = lapsed(per_host=1)
    registry.share(SUB, (2,), S, 7, 10.0)
    expire(registry, 10.0, {7})
    assert adopt(registry, S) == ([(SUB, (1,), S)], [], "registrations of one host")
    assert registry.of(S) == [(SUB, (1,))]
    assert registry.add(SUB, (3,), S, S[0])[1] == "registrations of one host"
    told(registry.remove_address(S))
    assert registry.add(SUB, (3,), S, S[0])[1] == ""


@pytest.mark.parametrize("adopted", [True, False])
def test_a_broker_that_is_back_has_its_clients_again_and_ends_what_it_does_not_repeat(
    adopted: bool,
) -> None:
    registry = lapsed()
    registry.share(SUB, (1, 2), S, 7, 10.0)
    expire(registry, 10.0, {7})
    if adopted:
        adopt(registry, S)
        expire(registry, 11.0)
    told(registry.return_to_broker(7, 40.0))
    assert [key for key in registry.own() if key[2] == S] == []
    registry.share(SUB, (1, 2), S, 7, 50.0)
    assert expire(registry, 40.0) == ([Tell(P, (1,), "remove", (S,))], [])
    assert registry.of(S) == [(SUB, (1, 2))]


def test_a_broker_that_is_back_just_before_its_time_runs_out_gets_more() -> None:
    registry = Registry()
    registry.share(SUB, (1,), S, 7, 10.0)
    expire(registry, 1.0)
    told(registry.return_to_broker(7, 40.0))
    assert expire(registry, 10.0) == ([], [])
    assert registry.of(S)


def test_a_client_that_comes_here_itself_ends_what_it_does_not_repeat() -> None:
    registry = lapsed()
    registry.share(SUB, (1, 2), S, 7, 10.0)
    expire(registry, 10.0, {7})
    adopt(registry, S)
    registry.return_to_client(S, 99, 40.0)
    said(registry, SUB, (1, 2), S)
    assert expire(registry, 40.0, {7}, {S}) == ([Tell(P, (1,), "remove", (S,))], [])
    assert registry.of(S) == [(SUB, (1, 2))]


def test_what_clients_here_registered_of_an_address_ends_unless_it_is_repeated() -> None:
    registry = Registry()
    said(registry, SUB, (1,), S)
    said(registry, SUB, (2,), S)
    registry.share(SUB, (3,), S, 8, 99.0)
    registry.disown(S, 7, 40.0)
    assert list(registry.own()) == []
    said(registry, SUB, (2,), S)
    expire(registry, 40.0)
    assert registry.of(S) == [(SUB, (2,)), (SUB, (3,))]


def test_another_broker_that_says_what_has_lapsed_has_adopted_it() -> None:
    registry = lapsed()
    registry.share(SUB, (1,), S, 8, 40.0)
    assert adopt(registry, S) == ([], [], "")
    assert expire(registry, 11.0) == ([], [])
    assert expire(registry, 40.0, {7}) == ([Tell(P, (1,), "remove", (S,))], [])


def test_publishers_of_other_brokers_are_told_by_them() -> None:
    registry = Registry()
    assert told(registry.share(PUB, (1,), P, 7, 10.0)[0]) == []
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
        told(registry.remove_address(S))
        registry.add(SUB, (1,), ("1.1.1.1", port), "flood")
    assert registry.add(SUB, (1,), ("1.1.1.1", 9), "flood")[1] == "registrations of one host"
    said(registry, SUB, (1,), P)
    assert registry.add(SUB, (1,), Q, "h")[1] == "registrations full"
    said(registry, SUB, (1,), P)  # a known registration can be repeated
    told(registry.remove_address(("1.1.1.1", 0)))
    assert registry.add(SUB, (1,), ("1.1.1.1", 9), "flood")[1] == ""


def test_long_patterns_are_bounded_by_their_tokens() -> None:
    registry = Registry(tokens=520)
    said(registry, SUB, tuple(range(255)), S)
    assert registry.add(SUB, tuple(range(6)), S, S[0])[1] == "registrations of one host"
    said(registry, SUB, tuple(range(255)), P)
    assert registry.add(SUB, tuple(range(11)), Q, "h")[1] == "registrations full"
    said(registry, SUB, tuple(range(10)), Q)
    told(registry.remove_address(S))
    said(registry, SUB, tuple(range(250)), Q)


def test_a_repeated_subscription_is_not_told_again_if_again_is_false() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    assert told(registry.add(SUB, (1,), S, "h", again=False)[0]) != []
    assert told(registry.add(SUB, (1,), S, "h", again=False)[0]) == []


def test_exact_subscribers_get_nothing_longer() -> None:
    registry = Registry()
    said(registry, PUB, (1, 2), P)
    assert told(registry.add(SUB, (1,), S, "h", exact=True)[0]) == []
    assert registry.subscribers((1, 2)) == []
    assert told(registry.add(SUB, (1, 2), S, "h", exact=True)[0]) == [Tell(P, (1, 2), "add", (S,))]


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
            news = said(registry, role, tokens, address)
            model.add((role, tokens, address))
        elif step == "remove":
            news = told(registry.remove(role, tokens, address))
            model.discard((role, tokens, address))
        else:
            news = told(registry.remove_address(address))
            model = {m for m in model if m[2] != address}
        known = {key: value for key, value in known.items() if (PUB, key[1], key[0]) in model}
        for tell in news:
            listed = known[tell.publisher, tell.tokens]
            listed |= set(tell.subscribers) if tell.change == "add" else set()
            listed -= set(tell.subscribers) if tell.change == "remove" else set()
        assert len(registry) == len(model)
        for (_, tokens_), listed in known.items():
            assert listed == {a for r, t, a in model if r == SUB and tokens_[: len(t)] == t}


@given(steps, st.data())
def test_publishers_know_it_also_if_the_steps_of_several_changes_are_taken_by_turns(
    taken: list[tuple[str, int, tuple[int, ...], tuple[str, int]]], data: st.DataObject
) -> None:
    """Clients take their steps in their order; deaths are found beside them."""
    registry = Registry()
    model: set[tuple[int, tuple[int, ...], tuple[str, int]]] = set()
    known: dict[tuple[tuple[str, int], tuple[int, ...]], set[tuple[str, int]]] = {}
    lines: dict[object, list[Iterator[Step]]] = {}

    def advance(key: object) -> None:
        _, tell = next(lines[key][0], (0, None))
        if tell is not None and (tell.publisher, tell.tokens) in known:
            listed = known[tell.publisher, tell.tokens]
            listed.update(tell.subscribers) if tell.change == "add" else listed.difference_update(
                tell.subscribers
            )

    def finish(key: object) -> None:
        for job in lines.pop(key, []):
            lines[key] = [job]
            for _ in range(200):
                advance(key)

    for step, role, tokens, address in taken:
        for key in list(lines):
            for _ in range(data.draw(st.integers(0, 3))):
                advance(key)
        if step == "dead":
            lines.setdefault((address, "dead"), []).append(registry.remove_address(address))
            model = {m for m in model if m[2] != address}
        else:
            finish(address)
            if step == "add":
                lines[address] = [registry.add(role, tokens, address, "h")[0]]
                model.add((role, tokens, address))
                known.setdefault((address, tokens), set()) if role == PUB else None
            else:
                lines[address] = [registry.remove(role, tokens, address)]
                model.discard((role, tokens, address))
        known = {key: value for key, value in known.items() if (PUB, key[1], key[0]) in model}
    for key in list(lines):
        finish(key)
    assert {(role, tokens, a) for a in (S, P, Q) for role, tokens in registry.of(a)} == model
    for (_, tokens_), listed in known.items():
        assert listed == {a for r, t, a in model if r == SUB and tokens_[: len(t)] == t}


def test_no_step_is_long_however_many_publishers_and_subscribers_there_are() -> None:
    """A step costs no more than its units say: counted in addresses and patterns that it looked at."""
    registry = Registry(per_address=100_000)
    for number in range(3000):
        registry.add(PUB, (7, number), P, "h")
        registry.add(SUB, (7, 1), ("10.1.0.1", number), "h")
    steps = list(registry.add(SUB, (7,), S, "h")[0])
    assert len(steps) == 2 * 3000
    assert {units for units, _ in steps} == {1}
    steps = list(registry.add(PUB, (7, 1, 2), Q, "h")[0])
    assert max(len(tell.subscribers) for _, tell in steps if tell) <= 128
    assert sum(len(tell.subscribers) for _, tell in steps if tell) == 3001
    assert max(units for units, _ in steps) < 16
    assert len(told(registry.remove_address(P))) == 0
    assert len(told(registry.remove_address(S))) == 1  # Q is told


def test_what_a_client_says_while_it_is_buried_stays_and_nobody_hears_of_the_rest() -> None:
    registry = Registry()
    said(registry, PUB, (1,), P)
    for tokens in ((1,), (2,)):
        said(registry, SUB, tokens, S)
        said(registry, PUB, tokens, S)
    burial = registry.remove_address(S)
    assert not registry.knows(S)
    assert registry.subscribers((1,)) == registry.subscribers((2,)) == []
    assert told(registry.add(SUB, (1,), Q, "h")[0]) == [Tell(P, (1,), "add", (Q,))]  # the dead hear nothing
    assert told(registry.add(SUB, (1,), S, "h", again=False)[0]) == [Tell(P, (1,), "add", (S,))]
    assert told(burial) == []
    assert registry.of(S) == [(SUB, (1,))]
    assert registry.subscribers((1,)) == [S, Q]


def test_the_bounds_that_a_broker_has_by_default() -> None:
    """One address has 1,024 registrations, one host 16,384, all together 65,536, and a million tokens."""
    registry = Registry()
    assert registry.expired == 0
    taken = [registry.add(SUB, (number,), S, "h")[1] for number in range(1025)]
    assert taken == [""] * 1024 + ["registrations of one address"]
    ports = range(2, 2 + 16384 - 1024)
    assert not any(registry.add(SUB, (1,), ("10.0.0.1", port), "h")[1] for port in ports)
    assert registry.add(SUB, (1,), Q, "h")[1] == "registrations of one host"
    for host in "ijk":
        assert not any(registry.add(SUB, (1,), (host, port), host)[1] for port in range(16384))
    assert len(registry) == 65536
    assert registry.add(SUB, (1,), Q, "l")[1] == "registrations full"


def test_patterns_have_a_million_tokens_together_by_default() -> None:
    registry = Registry()
    long, count = tuple(range(255)), (1 << 20) // 255
    for number in range(count):
        said(registry, SUB, long, (f"10.0.0.{number % 3}", number))
    rest = (1 << 20) - count * 255
    assert registry.add(SUB, long[: rest + 1], S, "h")[1] == "registrations full"
    assert registry.add(SUB, long[:rest], S, "h")[1] == ""
