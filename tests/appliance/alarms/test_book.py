"""One gateway leads an alarm, all agree on its states, and people are told of each once."""

from dataclasses import replace
from typing import Any

import pytest

from appliance.alarms.announcement import KEY_TOKENS_MAX
from appliance.alarms.book import REPEAT_S, SUBJECTS, Book
from appliance.alarms.states import State
from bus.key_types import TOKEN_MAX
from bus.wire.pattern import token
from tests.appliance.alarms.alarms_support import FRIDGE, alarm, book


def stages(of: Book) -> list[tuple[int, str]]:
    return [(state.number, state.stage) for state in of.states()]


def exchange(one: Book, other: Book, now_s: float, leads: tuple[bool, bool] = (True, False)) -> None:
    """Let two books hear each other's announcements."""
    for key, state in list(one.due(now_s, leads[0])):
        other.merge(key, state, leads[1], now_s)
    for key, state in list(other.due(now_s, leads[1])):
        one.merge(key, state, leads[0], now_s)


@pytest.fixture
def pair() -> tuple[Book, Book]:
    """Two books, in which the alarm is raised: the first leads."""
    one, other = book("a"), book("b")
    for each in (one, other):
        each.hear(FRIDGE, 9, 1)
    assert one.look(1, 100, True)
    assert not other.look(1, 100, False)
    exchange(one, other, 1)
    return one, other


def test_who_leads_makes_the_states_and_who_follows_takes_them(pair: tuple[Book, Book]) -> None:
    one, other = pair
    assert stages(one) == stages(other) == [(1, "raised")]
    for each in pair:
        each.hear(FRIDGE, 5, 2)
    (deed,) = one.look(2, 200, True)
    assert deed.state.stage == "cleared"
    assert not other.look(2, 200, False)
    assert stages(other) == [(1, "raised")]
    exchange(one, other, 2)
    assert stages(other) == [(1, "cleared")]


def test_who_takes_over_goes_on_with_the_number_and_raises_nothing_again(pair: tuple[Book, Book]) -> None:
    _, other = pair
    assert not other.look(3, 300, True)
    other.hear(FRIDGE, 5, 4)
    assert [deed.state.stage for deed in other.look(4, 400, True)] == ["cleared"]
    other.hear(FRIDGE, 9, 5)
    assert [deed.state.number for deed in other.look(5, 500, True)] == [2]


def test_who_takes_over_goes_on_within_the_hysteresis() -> None:
    one, other = (book(name, above=8, hysteresis=1) for name in "ab")
    one.hear(FRIDGE, 9, 1)
    one.look(1, 100, True)
    exchange(one, other, 1)
    other.hear(FRIDGE, 7.5, 2)  # the first value that it hears
    assert not other.look(2, 200, True)


def test_people_are_to_be_told_by_who_leads_until_somebody_has() -> None:
    one, other = (book(name, above=8, notify=("mail", "siren")) for name in "ab")
    one.hear(FRIDGE, 9, 1)
    one.look(1, 100, True)
    assert [outlet for _, _, outlet in one.untold(True)] == ["mail", "siren"]
    one.told("7/1", 1, "raised", "mail", True)
    exchange(one, other, 1)
    assert [outlet for _, _, outlet in other.untold(True)] == ["siren"]  # it takes over
    assert not list(other.untold(False))


def told_and_failed(one: Book) -> tuple[list[str], list[str]]:
    (state,) = one.states()
    return sorted(state.told), sorted(state.failed)


def test_an_outlet_that_gave_up_has_told_nobody_unless_that_of_another_gateway_has() -> None:
    one, other = (book(name, above=8, notify=("mail", "siren")) for name in "ab")
    one.hear(FRIDGE, 9, 1)
    one.look(1, 100, True)
    one.told("7/1", 1, "raised", "mail", False)
    exchange(one, other, 1)
    assert [outlet for _, _, outlet in other.untold(True)] == ["siren"]
    assert told_and_failed(other) == ([], ["mail"])
    after = book("b", above=8, notify=("mail", "siren"))
    after.restore(other.kept())
    assert after.states() == other.states()
    other.told("7/1", 1, "raised", "mail", True)
    exchange(one, other, 2)
    one.told("7/1", 1, "raised", "mail", False)
    assert told_and_failed(one) == (["mail"], [])


def test_an_acknowledgement_at_any_gateway_is_known_at_all(pair: tuple[Book, Book]) -> None:
    one, other = pair
    assert not other.acknowledge("7/2", "ann", 2, 200)
    (deed,) = other.acknowledge("7/1", "ann", 2, 200)
    assert (deed.state.stage, deed.state.by) == ("acknowledged", "ann")
    exchange(one, other, 2)
    assert stages(one) == [(1, "acknowledged")]
    assert not one.acknowledge("", "bob", 3, 300)  # nothing is left to acknowledge


def test_what_is_lost_on_the_way_is_said_again(pair: tuple[Book, Book]) -> None:
    one, other = pair
    other.acknowledge("", "ann", 2, 200)
    list(other.due(2, False))  # nobody hears it
    for now_s in range(3, 12):
        exchange(one, other, now_s)
    assert stages(one) == [(1, "acknowledged")]


def test_a_raised_alarm_is_announced_again_and_a_cleared_one_only_for_a_while(
    pair: tuple[Book, Book],
) -> None:
    one, _ = pair
    list(one.due(10, True))
    assert not list(one.due(10 + REPEAT_S / 2, True))
    assert list(one.due(10 + REPEAT_S, True))
    one.hear(FRIDGE, 5, 20)
    one.look(20, 200, True)
    assert list(one.due(20, True))
    assert list(one.due(22, True))
    assert not list(one.due(60, True))


def test_who_comes_back_with_an_old_state_is_answered(pair: tuple[Book, Book]) -> None:
    one, _ = pair
    old = one.kept()
    one.hear(FRIDGE, 5, 2)
    one.look(2, 200, True)
    list(one.due(2, True))  # nobody hears it
    late = book("b")
    late.restore(old)
    assert stages(late) == [(1, "raised")]
    exchange(one, late, 1000)  # long after the last announcement: it says what it knows
    exchange(one, late, 1001)
    assert stages(late) == [(1, "cleared")]


def test_the_newer_state_wins_wherever_it_is_from(pair: tuple[Book, Book]) -> None:
    one, _ = pair
    later = State(5, "raised", "7/1", 900, "x", "b")
    assert one.merge(FRIDGE, later, True, 3)
    assert not one.merge(FRIDGE, later, True, 3)
    assert not one.merge(FRIDGE, later._replace(number=4, stage="cleared"), True, 3)
    assert stages(one) == [(5, "raised")]


def test_subjects_are_bounded_and_those_that_are_raised_stay() -> None:
    one = book()
    for place in range(SUBJECTS + 5):
        one.hear((7, place), 9, 1)
    assert one.left_out == 5
    assert len(one.look(1, 100, True)) == SUBJECTS
    full = book("b")
    for place in range(SUBJECTS):
        full.merge((7, place), State(place + 1, "cleared", "x", place, "", "a"), False, place)
    full.merge((7,), State(99, "raised", "y", 1, "", "a"), False, 99)
    assert full.left_out == 0
    assert (99, "raised") in stages(full)


def test_all_patterns_together_are_missing() -> None:
    one = book("a", missing_s=10)
    assert not one.look(9, 90, True)
    one.hear((7, 3), None, 9)
    one.hear((7, 4), None, 11)
    assert not one.look(20, 200, True)
    (deed,) = one.look(21, 210, True)
    assert (deed.key, deed.state.of) == ((7,), "7")


def test_a_gateway_with_a_link_leads_it_and_hears_of_those_of_others() -> None:
    one = Book(alarm((), link="can", missing_s=5), "a", str, 0)
    one.merge((2,), State(3, "raised", "b/can", 1, "", "b"), True, 1)
    one.link((1,), "a/can", False, None, 1)
    (deed,) = one.look(6, 600, True)
    assert (deed.state.of, deed.state.number) == ("a/can", 4)
    assert [key for key, _ in one.due(6, True)] == [(1,)]


def test_what_was_kept_is_restored_and_what_is_none_is_left_out(pair: tuple[Book, Book]) -> None:
    one, _ = pair
    after = book("a")
    after.restore([{}, {"key": "x"}, {"key": [1], "number": -1}, *one.kept()])
    assert after.states() == one.states()
    assert not after.look(9, 900, True)  # nothing was heard yet
    after.hear(FRIDGE, 5, 10)
    assert [deed.state.stage for deed in after.look(10, 1000, True)] == ["cleared"]


@pytest.mark.parametrize("key", [(7, 0), (7, TOKEN_MAX), (7,) * KEY_TOKENS_MAX])
def test_any_subject_that_can_be_announced_outlives_a_restart(key: tuple[int, ...]) -> None:
    one, after = book("a"), book("a")
    one.hear(key, 9, 1)
    one.look(1, 100, True)
    after.restore(one.kept())
    assert after.states() == one.states() != []


def test_outlets_that_an_alarm_does_not_have_are_not_taken_over() -> None:
    one = book("a", above=8, notify=("ops", "chat"))
    for number in range(40):
        names = frozenset({"ops", *(f"{number}-{place}" for place in range(15))})
        one.merge(FRIDGE, State(1, "raised", "7/1", 1, "", "b", names, names | {"chat"}), False, number)
    assert told_and_failed(one) == (["ops"], ["chat"])
    other = book("a", above=8, notify=("chat",))
    other.restore([*one.kept(), {**one.kept()[0], "key": [-1]}, {**one.kept()[0], "key": [1] * 300}])
    (state,) = other.states()
    assert state.told == frozenset()


def test_a_link_that_the_file_has_no_more_is_cleared_also_after_a_restart() -> None:
    can, uart = (token("a"), 1), (token("a"), 2)
    one = Book(alarm((), link="x", missing_s=5, notify=("ops",)), "a", str, 0)
    for key, of in ((can, "a/can"), (uart, "a/uart")):
        one.link(key, of, False, None, 0)
    assert len(one.look(6, 600, False)) == 2
    after = Book(one.alarm, "a", str, 10)
    after.restore(one.kept())
    for changed in (one, after):
        changed.link(can, "a/can", False, None, 11)
        (deed,) = changed.leave({can}, 11, 1100)
        assert (deed.state.of, deed.state.stage) == ("a/uart", "cleared")
        assert {state.of for _, state, _ in changed.untold(False)} == {"a/can", "a/uart"}
        assert not changed.look(100, 9900, False)
        assert not changed.leave({can}, 101, 9910)
        changed.link(uart, "a/uart", False, None, 102)
        assert [deed.state.number for deed in changed.look(108, 9999, False)] == [3]


def test_links_of_a_gateway_that_has_none_any_more_are_forgotten() -> None:
    watched = alarm((), link="x", missing_s=5)
    one = Book(watched, "a", str, 0)
    one.merge((token("b"), 1), State(1, "raised", "b/can", 1, "", "b"), False, 1)
    assert one.states()
    after = Book(replace(watched, owners=("a", "c")), "a", str, 2)
    after.restore(one.kept())
    assert not after.merge((token("b"), 1), State(2, "raised", "b/can", 1, "", "b"), False, 3)
    assert after.merge((token("c"), 1), State(1, "raised", "c/can", 1, "", "c"), False, 3)
    assert [state.of for state in after.states()] == ["c/can"]


@pytest.mark.parametrize("key", ["missing_s", "stale_s"])
def test_what_was_raised_before_a_restart_is_cleared_only_after_its_time(key: str) -> None:
    one = book("a", **{key: 5}, clear_for_s=60)
    one.hear(FRIDGE, None, 0)
    assert [deed.state.stage for deed in one.look(6, 600, True)] == ["raised"]
    after = book("a", **{key: 5}, clear_for_s=60)
    after.restore(one.kept())
    stages = list[str]()
    for second in range(70):
        after.hear(FRIDGE, None, second)
        stages += [f"{deed.state.stage} at {second}" for deed in after.look(second, second, True)]
    assert stages == ["cleared at 60"]


@pytest.mark.parametrize("settings", [{"above": 8}, {"missing_s": 5}], ids=["values", "silence"])
def test_what_another_pattern_in_the_file_leaves_behind_is_cleared_by_who_leads(
    settings: dict[str, Any],
) -> None:
    one = book("a", above=8, notify=("ops",))
    one.hear(FRIDGE, 9, 1)
    assert one.look(1, 100, True)
    changed = replace(alarm(**settings, notify=("ops",)), tokens=(8,))
    after, follower = (Book(changed, name, str, 2) for name in "ab")
    for each in (after, follower):
        each.restore(one.kept())
    assert not follower.look(3, 300, False)
    (deed,) = after.look(3, 300, True)
    assert (deed.key, deed.state.number, deed.state.stage) == (FRIDGE, 1, "cleared")
    assert [state.stage for _, state, _ in after.untold(True)] == ["cleared"]
    exchange(after, follower, 3)
    assert stages(follower) == [(1, "cleared")]
    assert not after.look(4, 400, True)


def test_what_others_say_of_patterns_that_the_alarm_is_not_about_is_left_out() -> None:
    one = book("a", above=8)
    assert not one.merge((9, 1), State(1, "raised", "9/1", 1, "", "b"), False, 1)
    assert one.merge(FRIDGE, State(1, "raised", "7/1", 1, "", "b"), False, 1)


def test_an_alarm_that_the_file_has_no_more_is_cleared_by_who_leads(pair: tuple[Book, Book]) -> None:
    one, other = pair
    assert not other.end(False, 2, 200)
    (deed,) = one.end(True, 2, 200)
    assert (deed.alarm, deed.state.stage) == (one.alarm, "cleared")
    links = Book(alarm((), link="x", missing_s=5), "a", str, 0)
    links.link((token("a"), 1), "a/can", False, None, 0)
    assert links.look(6, 600, False)
    links.merge((token("b"), 1), State(1, "raised", "b/can", 1, "", "b"), False, 6)
    assert [deed.state.of for deed in links.end(False, 7, 700)] == ["a/can"]


def test_names_that_a_reload_brings_are_in_what_changes_next() -> None:
    one = book("a")
    one.hear(FRIDGE, 1, 1)
    one.rename(lambda key: "fridge/left")
    one.hear(FRIDGE, 9, 2)
    assert [deed.state.of for deed in one.look(2, 100, True)] == ["fridge/left"]
