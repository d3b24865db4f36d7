"""The registry's steps: their units of work, where they pause, and what holds if it changes between two."""

from itertools import islice

from bus.tmq.broker.registry import Registry, Step, Tell
from bus.tmq.wire import Address, Tokens
from bus.wire.frame import PUB, SUB

S, P, Q = ("10.0.0.1", 1), ("10.0.0.2", 2), ("10.0.0.3", 3)


def add(registry: Registry, role: int, tokens: Tokens, address: Address) -> list[Step]:
    """Register something and return the steps."""
    steps, fault = registry.add(role, tokens, address, address[0])
    assert not fault
    return list(steps)


def shared(count: int, node: int) -> Registry:
    """Return a registry with so many patterns that a broker said, good until 10.0."""
    registry = Registry()
    for number in range(count):
        assert registry.share(SUB, (number,), S, node, 10.0)[1] == ""
    return registry


def test_what_one_broker_said_is_found_with_a_pause_after_every_64_others() -> None:
    registry = shared(130, 8)
    registry.share(SUB, (5,), S, 7, 10.0)
    registry.share(SUB, (6,), S, 7, 10.0)
    add(registry, SUB, (6,), S)  # its client has said it here
    assert list(registry.said_by(7)) == [None, (SUB, (5,), S), None, None]
    assert [key for key in registry.said_by(8) if key] == [(SUB, (n,), S) for n in range(130) if n != 6]
    assert list(registry.said_by(9)) == [None] * 3
    found = registry.said_by(7)
    assert next(found) is None
    list(registry.remove(SUB, (5,), S))
    list(registry.remove(SUB, (64,), S))
    assert list(found) == [None, None]


def test_what_clients_said_here_is_listed_by_pattern_some_at_a_time_while_it_changes() -> None:
    registry = shared(1, 7)
    for number in range(130):
        add(registry, SUB, (0,), ("10.0.0.9", number))
    add(registry, PUB, (2,), P)
    assert [(role, tokens, len(some)) for role, tokens, some in registry.own_by_pattern()] == [
        (SUB, (0,), 127),
        (SUB, (0,), 3),
        (PUB, (2,), 1),
    ]
    found = registry.own_by_pattern()
    next(found)
    list(registry.remove(SUB, (0,), ("10.0.0.9", 129)))
    assert next(found) == (SUB, (0,), [("10.0.0.9", 127), ("10.0.0.9", 128)])


def test_what_other_brokers_say_is_bounded_and_the_dead_have_their_place_already() -> None:
    registry = Registry(limit=1)
    add(registry, SUB, (1,), S)
    assert registry.share(SUB, (1,), Q, 7, 10.0)[1] == "registrations full"
    burial = registry.remove_address(S)
    assert not registry.knows(S)
    assert registry.share(SUB, (1,), S, 7, 10.0)[1] == ""
    assert registry.knows(S)
    assert list(burial) == []
    assert len(registry) == 1


def test_a_subscriber_stays_when_another_of_the_same_pattern_goes() -> None:
    registry = Registry()
    for address in (S, Q):
        add(registry, SUB, (1,), address)
    list(registry.remove(SUB, (1,), S))
    assert registry.subscribers((1, 2)) == [Q]


def test_what_is_not_repeated_is_forgotten_and_counted_with_a_pause_at_every_64() -> None:
    registry = shared(130, 7)
    assert list(registry.expire(9.0)) == [(1, None)] * 3
    assert (registry.expired, len(registry)) == (0, 130)
    assert list(registry.return_to_broker(7, 10.0)) == [(1, None)] * 3
    assert list(registry.return_to_broker(8, 10.0)) == []
    list(registry.expire(10.0))
    assert (registry.expired, len(registry)) == (130, 0)


def test_subscribers_cost_a_unit_for_each_16_and_a_look_one_and_one_more_for_each_4_lengths() -> None:
    registry = Registry()
    for port in range(16):
        add(registry, SUB, (1,), ("10.0.0.9", port))
    ((units, _),) = add(registry, PUB, (1,), P)
    assert units == 2
    list(registry.remove(SUB, (1,), ("10.0.0.9", 0)))
    ((units, _),) = add(registry, PUB, (1,), P)
    assert units == 1


def look(registry: Registry, tokens: int) -> int:
    """Return the units of a look for all that covers a pattern of so many tokens."""
    add(registry, PUB, (9,) * tokens, P)
    units, tell = next(registry.add(SUB, (9,) * tokens, S, S[0])[0])
    assert tell is None
    list(registry.remove(PUB, (9,) * tokens, P))
    list(registry.remove(SUB, (9,) * tokens, S))
    return units


def test_a_look_costs_one_unit_and_one_more_for_each_four_lengths_of_patterns() -> None:
    registry = Registry()
    for length in range(3):
        for last in (1, 2):
            add(registry, SUB, (*(7,) * length, last)[:length], (f"10.0.1.{last}", 1))
    assert [look(registry, tokens) for tokens in (3, 4, 5)] == [1, 2, 2]
    add(registry, SUB, (7,) * 6, Q)
    assert [look(registry, tokens) for tokens in (3, 4, 8)] == [1, 2, 2]
    add(registry, SUB, (7,) * 5, Q)
    for length in (0, 1, 2):
        for last in (1, 2):
            list(registry.remove(SUB, (*(7,) * length, last)[:length], (f"10.0.1.{last}", 1)))
    assert look(registry, 9) == 1


def test_nothing_is_looked_at_where_nobody_publishes_any_more() -> None:
    registry = Registry()
    add(registry, PUB, (1, 2), P)
    list(registry.remove(PUB, (1, 2), P))
    assert add(registry, SUB, (1,), S) == []


def test_publishers_that_come_and_go_between_two_steps_neither_hide_others_nor_are_told_twice() -> None:
    for change, role, tokens in (
        ("remove", PUB, (1, 1)),
        ("remove", PUB, (1, 3)),
        ("add", PUB, (1, 0)),
        ("add", PUB, (1, 2, 5)),
    ):
        registry = Registry()
        for last in (1, 2, 3):
            add(registry, PUB, (1, last), P)
        steps = registry.add(SUB, (1,), S, S[0])[0]
        told = list(islice(steps, 2))  # the look at (1, 1), and what its publisher is told
        if change == "add":
            add(registry, role, tokens, Q)
        else:
            list(registry.remove(role, tokens, P))
        told += steps
        patterns = [tell.tokens for _, tell in told if tell]
        here = {(1, 1), (1, 2), (1, 3)} - ({tokens} if tokens == (1, 3) else set())
        assert patterns == sorted(here | ({tokens} if tokens == (1, 2, 5) else set()))


def test_the_last_publisher_may_go_when_it_has_been_told() -> None:
    registry = Registry()
    add(registry, PUB, (1, 1), P)
    steps = registry.add(SUB, (1,), S, S[0])[0]
    assert list(islice(steps, 2)) == [(1, None), (1, Tell(P, (1, 1), "add", (S,)))]
    list(registry.remove(PUB, (1, 1), P))
    assert list(steps) == []
