"""How fast a backlog gets less, and how long it takes."""

from bridges.durable.decline import SPAN_S, Decline


def test_a_backlog_goes_as_fast_as_in_the_last_seconds() -> None:
    decline = Decline()
    assert (decline.per_s, decline.to_go_s) == (0.0, 0.0)
    for second in range(100):
        decline.note(second, 100_000)
    assert decline.to_go_s is None
    for second in range(100, 120):
        decline.note(second, 100_000 - 1000 * (second - 99))
    assert decline.per_s == 1000
    assert decline.to_go_s == 80
    decline.note(119 + SPAN_S, 100_000)
    assert decline.per_s == -2000
    assert decline.to_go_s is None
    decline.note(119 + 2 * SPAN_S, 0)
    assert decline.to_go_s == 0


def test_of_two_looks_at_one_time_nothing_is_said() -> None:
    decline = Decline()
    for messages in (5, 3):
        decline.note(1.0, messages)
    assert (decline.per_s, decline.to_go_s) == (0.0, None)


def test_a_backlog_that_comes_back_takes_no_known_time() -> None:
    decline = Decline()
    decline.note(1.0, 0)
    assert decline.to_go_s == 0
    decline.note(2.0, 4)
    assert decline.to_go_s is None
