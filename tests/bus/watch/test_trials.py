"""A trial tells a ring from a dialogue and from senders of equal messages, and asks only where it must."""

import pytest

from bus.watch.trials import (
    ASK_S,
    FLOOD,
    HOLD_S,
    LAP_MAX_S,
    LAP_MIN_S,
    MANY,
    STORM,
    STRICT,
    Ask,
    Release,
    Rules,
    Trial,
)

RULES = Rules[str](32, 0.01, {"a": 1600.0, "b": 1700.0})
LAP_S = 0.02


def trial(rules: Rules[str] = RULES) -> Trial[str]:
    return Trial[str](rules, 0.0, lambda ways: sorted(ways)[0])


def drained(rules: Rules[str] = RULES, **held: int) -> Trial[str]:
    """Return a trial in which copies came at its start only."""
    made = trial(rules)
    for way, count in held.items():
        made.heard(way, count, 0.0)
    assert made.next(LAP_S - 0.001) is None
    return made


def test_copies_that_come_when_nothing_was_let_go_are_of_senders() -> None:
    made = drained(a=1, b=1)
    for way in "ab":
        made.heard(way, 4 + (way == "b"), 0.015)
    assert made.next(LAP_S) == "legal"


def test_a_few_copies_after_the_drain_explain_no_storm() -> None:
    made = drained(a=1, b=1)
    for way in "ab":
        made.heard(way, 1, 0.015)
    assert made.next(LAP_S) == "unknown"


def test_an_answer_by_another_way_is_of_a_dialogue() -> None:
    made, now = drained(a=1, b=0), LAP_S
    for way, answer in (("a", "b"), ("b", "a")):
        assert made.next(now) == Release(way, False)
        assert made.next(now) is None
        now += 0.001
        made.heard(answer, 1, now)
    assert made.next(now) == "legal"


def test_a_dialogue_of_bursts_is_told_when_all_of_a_burst_is_let_go() -> None:
    made, now = drained(a=1, b=99), LAP_S
    made.held["a"] = 0
    assert made.next(now) == Release("b", False)
    now += LAP_S / 2
    assert made.next(now) == Release("b", True)
    made.heard("a", 100, now)
    assert made.next(now) == Release("a", False)
    now += LAP_S / 2
    assert made.next(now) == Release("a", True)
    made.heard("b", 100, now)
    assert made.next(now) == "legal"


@pytest.mark.parametrize(("rules", "rounds"), [(RULES, 2), (RULES._replace(strict=True), STRICT)])
def test_what_comes_back_by_its_own_way_alone_is_asked_about_by_one_canary(
    rules: Rules[str], rounds: int
) -> None:
    made, now = drained(rules, a=1, b=1), LAP_S
    for _ in range(rounds):
        assert made.next(now) == Release("a", False)
        now += 0.001
        made.heard("a", 1, now)
    assert made.next(now) == Ask(("a",))
    assert made.asked
    assert made.next(now + ASK_S) == "legal"


def test_where_one_talks_with_one_other_a_single_answer_forbids_to_ask() -> None:
    made, now = drained(RULES._replace(strict=True), a=1, b=1), LAP_S
    for number in range(20):
        step = made.next(now)
        if not isinstance(step, Release):
            break
        now += 0.001
        made.heard("b" if number == 1 else "a", 1, now)
    assert step == "unknown"


def steps(made: Trial[str], now: float = LAP_S) -> list[object]:
    """Return the steps of a trial in which nothing comes any more, up to the first that is no release."""
    found = list[object]()
    while now < HOLD_S and (not found or isinstance(found[-1], Release)):
        found.append(made.next(now))
        now += LAP_S / 2
    return found


@pytest.mark.parametrize(("strict", "tried"), [(False, False), (False, True), (True, False), (True, True)])
def test_silence_is_no_proof_and_is_asked_about_the_second_time_unless_that_is_to_be_avoided(
    strict: bool, tried: bool
) -> None:
    made = drained(RULES._replace(strict=strict, tried=tried), a=1, b=1)
    last = steps(made)[-1]
    assert isinstance(last, Ask) if tried and not strict else last == ("legal" if tried else "unknown")


def test_one_copy_that_goes_round_one_way_is_let_go_and_asked_about() -> None:
    made, now = drained(a=1), LAP_S
    for _ in range(2):
        assert made.next(now) == Release("a", False)
        now += 0.001
        made.heard("a", 1, now)
    assert made.next(now) == Ask(("a",))


def test_one_message_between_two_is_a_dialogue_at_first() -> None:
    assert drained(RULES._replace(strict=True), a=1).next(LAP_S) == "legal"
    again = drained(RULES._replace(strict=True, tried=True), a=1)
    assert again.next(LAP_S) == Release("a", False)


def test_a_crowd_that_came_by_three_ways_is_asked_about_whatever_comes_of_it() -> None:
    rules = RULES._replace(rates={"a": 900.0, "b": 900.0, "c": 900.0}, is_mesh=True)
    silent = drained(rules, a=MANY)
    assert isinstance(steps(silent)[-1], Ask)
    noisy = drained(rules, a=MANY, b=1)
    for way in "ab":
        noisy.heard(way, 1, 0.019)
    assert isinstance(noisy.next(LAP_S), Ask)


@pytest.mark.parametrize(("rate", "due_s"), [(1.0, 0.0), (149.0, 0.0), (151.0, LAP_S)])
def test_where_few_copies_come_in_a_lap_no_lap_is_waited_for(rate: float, due_s: float) -> None:
    assert trial(RULES._replace(rates={"a": rate, "b": rate / 2})).due_s == due_s


def test_patience_is_by_chance_and_bounded() -> None:
    assert trial(RULES._replace(patience=1.5)).due_s == pytest.approx(1.5 * LAP_MIN_S)
    assert trial(RULES._replace(span_s=9.0, patience=1.5)).due_s == pytest.approx(LAP_MAX_S)


def test_many_copies_that_answer_may_wait_at_several_hubs_of_a_mesh() -> None:
    made, now = drained(a=MANY, b=MANY), LAP_S
    for _ in range(2):
        made.next(now)
        now += 0.001
        made.heard("b", 1, now)
    assert isinstance(made.next(now), Ask)
    assert made.next(now + ASK_S) == "unknown"


@pytest.mark.parametrize(("strict", "found"), [(False, Ask(("a", "b"))), (True, "legal")])
def test_a_storm_that_needs_us_not_is_asked_about(strict: bool, found: object) -> None:
    made = drained(RULES._replace(strict=strict, copies=STORM), a=1, b=1)
    made.heard("a", int(STORM * LAP_S) + 1, 0.015)
    made.heard("b", 1, 0.015)
    assert made.next(LAP_S) == found


def test_more_copies_than_can_be_on_their_way_end_the_wait() -> None:
    made = trial(RULES._replace(strict=True))
    made.heard("a", 1, 0.0)
    assert made.next(0.001) is None
    made.heard("b", FLOOD * RULES.copies, 0.001)
    made.heard("a", 1, 0.001)
    assert made.next(0.001) == "legal"


def test_who_gives_way_waits_for_the_other_hub() -> None:
    made = drained(a=1, b=1)
    made.give_way(0.001)
    assert made.next(0.001 + ASK_S - 0.001) is None
    assert made.next(0.001 + ASK_S) == "unknown"
    many = drained(a=MANY, b=MANY)
    many.give_way(0.001)
    assert isinstance(many.next(0.001 + ASK_S), Ask)


def test_a_trial_ends_in_bounded_time_whatever_happens() -> None:
    for rules in (RULES, RULES._replace(strict=True), RULES._replace(span_s=9.0), RULES._replace(again=True)):
        made, now = trial(rules), 0.0
        while made.next(now) not in ("legal", "unknown"):
            made.heard("abc"[int(now * 1000) % 3], 1, now)
            if int(now * 1000) % 50 == 7:
                made.give_way(now)
            now += 0.001
            assert now <= HOLD_S + 0.01


def test_a_full_trial_ends_without_a_verdict() -> None:
    made = drained(a=1, b=1)
    made.overflow()
    assert made.next(0.0) == "unknown"


def test_a_way_that_leaves_is_not_waited_for() -> None:
    made, now = drained(a=1, b=1), LAP_S
    assert made.next(now) == Release("a", False)
    made.leave("a")
    assert made.next(now + LAP_S / 2) == Release("b", False)


def test_the_time_for_a_lap_is_bounded() -> None:
    for span_s, lap_s in ((0.0, LAP_MIN_S), (0.05, 0.1), (9.0, LAP_MAX_S)):
        made = trial(RULES._replace(span_s=span_s))
        assert made.due_s == pytest.approx(lap_s)
