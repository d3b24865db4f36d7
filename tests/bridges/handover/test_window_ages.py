"""Sides to which a takeover sends young frames only, and none behind a newer one of its pattern."""

import pytest

from bridges.handover.replay import Due
from bridges.handover.sides import SideRules
from bridges.handover.window import Window
from bridges.rules import Seen
from bus.wire.frame import pack
from tests.bridges.handover.windows import OTHER, READING, every, placeless


def aged(replay_s: float = 0.1, sides: int = 2) -> Window:
    """Return a window of plain sides, the last of which takes only what is young."""
    rules = [SideRules(every, every)] * (sides - 1) + [SideRules(every, every, replay_s=replay_s)]
    return Window(rules, 1, Seen())


def number(n: int, topic: int = 1) -> bytes:
    return pack(1, (7, topic), b"%d" % n)


def sent(heard: Window, now: float, side: int = 1) -> list[bytes]:
    """Return what a takeover sends to a side."""
    found = [due.message for due in heard.replay(now) if due.sides >> side & 1]
    assert heard.stats.balance() == heard.stats.queued == 0
    return found


def test_a_side_of_a_protocol_gets_only_what_is_young() -> None:
    heard = aged()
    for n, at_s in enumerate((1.0, 1.2, 1.25, 1.3)):
        heard.hear(0, number(n, topic=n), at_s)
    assert sent(heard, 1.3) == [number(2, 2), number(3, 3)]
    assert heard.stats.dropped == {"stale": 2}


def test_what_is_too_old_for_one_side_still_goes_to_others_and_is_told() -> None:
    heard = aged(sides=3)
    heard.hear(0, READING, 1.0)
    assert placeless(heard.replay(1.2)) == [Due(0b010, READING, 8, 0b100)]
    assert heard.stats.dropped == {}


@pytest.mark.parametrize("age_s", [0.0, 1e-9])
def test_a_side_without_replay_gets_nothing_at_all(age_s: float) -> None:
    heard = aged(0.0)
    heard.hear(0, READING, 1.0)
    heard.owe(1, [OTHER], 1.0 + age_s, fresh=True)
    assert sent(heard, 1.0 + age_s) == []
    assert heard.stats.dropped == {"stale": 2}


@pytest.mark.parametrize("early", [False, True], ids=["original first", "copy first"])
def test_no_older_frame_of_a_pattern_follows_a_newer_one(early: bool) -> None:
    heard, new = aged(), number(3)
    if early:
        heard.hear(1, new, 1.0)
    for frame in (number(1), number(2, topic=2), new, number(4)):
        heard.hear(0, frame, 1.0)
    if not early:
        heard.hear(1, new, 1.0)
    assert sent(heard, 1.05) == [number(2, topic=2), number(4)]
    assert heard.stats.dropped == {"heard": 1, "stale": 1}


def test_a_device_that_says_the_pattern_itself_overtakes_nothing() -> None:
    heard = aged()
    heard.hear(0, number(1), 1.0)
    heard.hear(1, number(2), 1.0)
    assert sent(heard, 1.05) == [number(1)]


def test_what_waited_for_nobody_knows_how_long_is_given_up_there_and_what_just_came_is_not() -> None:
    heard = aged()
    heard.owe(1, [number(1), number(2)], 1.0)
    heard.owe(1, [number(3)], 1.0, fresh=True)
    heard.owe(0, [number(4)], 1.0)
    assert heard.stats.dropped == {"stale": 2}
    assert sent(heard, 1.05) == [number(3)]
