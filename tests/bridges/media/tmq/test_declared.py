"""Which patterns a publisher keeps declared, and which messages wait until a broker knows theirs."""

import pytest

from bridges.media.shedding import Shed
from bridges.media.tmq.declared import Declarations, Declared, Holding
from bus.ledger import Stats


def key(number: int) -> bytes:
    return number.to_bytes(4)


def declared(limit: int = 3, *numbers: int) -> Declarations:
    """Return declarations with patterns in use that were used at 0, 1, 2... s; unused ones go after 10 s."""
    made = Declarations(limit, 10.0)
    for now, number in enumerate(numbers):
        assert made.add(key(number), now)
    return made


def first_tokens(found: list[Declared]) -> list[int]:
    return [one.tokens[0] for one in found]


def test_a_new_pattern_has_its_tokens_and_is_not_known_yet() -> None:
    made = Declarations(2)
    assert made.idle_s == 60
    pattern = made.add(key(7) + key(8), 5.0)
    assert pattern
    assert (pattern.tokens, pattern.used_s, pattern.known, dict(pattern.peers)) == ((7, 8), 5.0, False, {})
    assert made.find(key(7) + key(8), 6.0) is pattern
    assert pattern.used_s == 6.0
    assert made.find(key(7), 6.0) is None


def test_at_the_limit_there_is_no_room_whoever_uses_the_patterns() -> None:
    made = Declarations(2)
    assert made.add(key(1), 0.0)
    assert made.add(key(2), 0.0, ahead=True)
    assert len(made) == 2
    assert made.add(key(3), 0.0) is made.add(key(3), 0.0, ahead=True) is None


def test_what_was_declared_ahead_is_in_use_from_its_first_message_on() -> None:
    made = Declarations(2)
    pattern = made.add(key(1), 0.0, ahead=True)
    assert pattern
    assert made.find(key(1), 1.0) is None
    assert made.adopt(key(2), 1.0) is None
    assert made.adopt(key(1), 2.0) is pattern
    assert made.adopt(key(1), 3.0) is None
    assert pattern.used_s == 2.0
    assert made.find(key(1), 4.0) is pattern
    assert len(made) == 1


def test_what_is_overheard_is_new_or_used_again() -> None:
    made = declared(4, 1, 2)
    made.add(key(3), 2.0, ahead=True)
    assert [made.overhear(key(number), 5.0) for number in (1, 3, 4)] == [True, True, False]
    assert first_tokens(made.idle(12.5)) == []
    made.add(key(4), 12.5)
    assert first_tokens(made.idle(12.5)) == [2]
    assert first_tokens(made.idle(14.5)) == []


def test_only_where_room_is_needed_and_after_its_time_the_unused_longest_goes() -> None:
    made = declared(3, 1, 2)
    assert made.idle(1000.0) == []
    made.add(key(3), 2.0)
    assert made.idle(9.999) == []
    assert first_tokens(made.idle(10.0)) == [1]
    assert made.idle(1000.0) == []
    made.add(key(4), 11.0)
    made.find(key(2), 11.0)
    assert first_tokens(made.idle(1000.0)) == [3]


def test_the_unused_of_another_gateway_go_first() -> None:
    made = declared(3, 1, 2)
    made.add(key(3), 5.0, ahead=True)
    assert first_tokens(made.idle(20.0)) == [3]
    made.add(key(3), 20.0, ahead=True)
    assert first_tokens(made.idle(20.0)) == [1]


def test_of_another_gateway_s_the_unused_longest_goes() -> None:
    made = Declarations(2, 10.0)
    made.add(key(1), 0.0, ahead=True)
    made.add(key(2), 1.0, ahead=True)
    made.overhear(key(1), 2.0)
    assert first_tokens(made.idle(50.0)) == [2]


def test_a_lower_limit_takes_effect_with_the_next_pattern() -> None:
    made = declared(3, 1, 2, 3)
    made.limit = 2
    assert first_tokens(made.idle(10.0)) == [1]
    assert first_tokens(made.idle(12.0)) == [2]


def test_a_pattern_in_use_gets_the_room_of_one_that_was_declared_ahead() -> None:
    made = declared(3, 1)
    assert made.surplus(5.0) == []
    made.add(key(2), 5.0, ahead=True)
    made.add(key(3), 5.0, ahead=True)
    assert first_tokens(made.surplus(5.0)) == [2]
    made.limit = 1
    assert first_tokens(made.surplus(5.0)) == [3]
    assert made.surplus(5.0) == []
    assert first_tokens(made.surplus(10.0)) == [1]


def pattern(number: int) -> Declared:
    return Declared((number,), 0.0)


def holding(age_s: float | None = None, stated: bool = False) -> Holding:
    return Holding(Stats(), Shed("newest", 10, age_s, stated=stated), 4.0)


def counts(held: Holding) -> tuple[int, int, int, dict[str, int]]:
    return len(held), held.stats.queued, held.stats.queued_bytes, dict(held.stats.dropped)


def test_a_broker_is_asked_about_all_that_gathered_and_one_question_is_open_at_a_time() -> None:
    held, first, second = holding(), pattern(1), pattern(2)
    assert not held.ask()
    held.add(first)
    assert held.ask()
    held.add(second)
    assert not held.ask()
    assert held.answered() == []
    assert (first.known, second.known) == (True, False)
    assert held.ask()
    held.answered()
    assert second.known
    assert not held.ask()


def test_messages_wait_until_their_pattern_is_known_in_order() -> None:
    held, first, second = holding(), pattern(1), pattern(2)
    held.add(first)
    held.ask()
    held.add(second)
    for one, message in ((first, b"aa"), (second, b"bbb"), (first, b"c")):
        held.put(one, message, 1.0)
    assert counts(held) == (3, 3, 6, {})
    assert held.answered() == [(1.0, first, b"aa"), (1.0, first, b"c")]
    assert counts(held) == (1, 1, 3, {})
    held.ask()
    assert held.answered() == [(1.0, second, b"bbb")]
    assert counts(held) == (0, 0, 0, {})


@pytest.mark.parametrize(("stated", "reason"), [(False, "queue full"), (True, "shed")])
def test_what_waits_is_bounded_and_the_newest_is_dropped(stated: bool, reason: str) -> None:
    held, one = holding(stated=stated), pattern(1)
    for message in (b"12345", b"678901", b"67890", b"1"):
        held.put(one, message, 0.0)
    assert counts(held) == (2, 2, 10, {reason: 2})
    assert held.clear("closed") == [b"12345", b"67890"]
    assert counts(held) == (0, 0, 0, {reason: 2, "closed": 2})
    held.put(one, b"1234567890", 0.0)
    assert counts(held) == (1, 1, 10, {reason: 2, "closed": 2})


def test_other_bounds_hold_for_the_next_message() -> None:
    held = holding()
    held.revise(Shed("newest", 4, 1.0))
    held.put(pattern(1), b"12345", 0.0)
    assert counts(held) == (0, 0, 0, {"queue full": 1})
    assert held.age_s == 1.0


@pytest.mark.parametrize(
    ("age_s", "stated", "waits_s", "reason"),
    [
        (None, False, 4.0, "undeclared"),
        (9.0, True, 4.0, "undeclared"),
        (2.0, False, 2.0, "stale"),
        (2.0, True, 2.0, "aged out"),
    ],
)
def test_a_message_waits_for_its_time_at_most(
    age_s: float | None, stated: bool, waits_s: float, reason: str
) -> None:
    held, one = holding(age_s, stated), pattern(1)
    assert held.expire(0.0) is None
    for now in (1.0, 1.5):
        held.put(one, b"12", now)
    assert held.age_s == waits_s
    assert held.expire(1.0 + waits_s - 0.25) == 1.0 + waits_s
    assert counts(held) == (2, 2, 4, {})
    assert held.expire(1.0 + waits_s) == 1.5 + waits_s
    assert counts(held) == (1, 1, 2, {reason: 1})
    assert held.expire(100.0) is None
    assert counts(held) == (0, 0, 0, {reason: 2})
