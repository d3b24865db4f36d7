"""Lines of one cause: the first at once, then at most one in ten seconds, with how many were held back."""

import logging
from typing import Any

from appliance.log.repeats import REPEAT_S, Repeats


def record(text: str, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("buscoupler.bus", logging.WARNING, "", 0, text, None, None)
    made.__dict__.update(extra)
    return made


def test_the_first_of_a_cause_passes_and_the_others_are_counted() -> None:
    repeats = Repeats()
    assert [repeats.passes(record("no device"), now) for now in (0, 1, 2)] == [True, False, False]
    assert repeats.passes(record("no disk"), 2)
    assert repeats.due(REPEAT_S - 0.1) == []
    [held] = repeats.due(REPEAT_S)
    assert (held.last.getMessage(), held.more, held.seconds) == ("no device", 2, REPEAT_S)


def test_a_cause_that_goes_on_is_told_once_in_each_time() -> None:
    repeats, told = Repeats(), 0
    for second in range(100):
        told += repeats.passes(record("no device"), second)
        told += len(repeats.due(second))
    assert told == 100 / REPEAT_S
    assert repeats.passes(record("no device"), 200) is False
    repeats.due(200)
    repeats.due(300)
    assert repeats.passes(record("no device"), 301)


def test_peers_of_one_link_with_one_fault_are_one_cause() -> None:
    repeats = Repeats()
    passed = [
        repeats.passes(record(f"tcp://*:1 from 10.0.0.1:{n}: closed: reset", cause="tcp://*:1: reset"), 0)
        for n in range(100)
    ]
    assert passed.count(True) == 1
    [held] = repeats.rest(3)
    assert held.last.getMessage().endswith(":99: closed: reset")
    assert (held.more, held.seconds) == (99, 3)


def test_so_many_causes_take_no_more_memory() -> None:
    repeats = Repeats()
    assert all(repeats.passes(record(str(number)), 0) for number in range(1500))
    assert [repeats.passes(record(str(number)), 0) for number in (0, 1023, 1024)] == [False, False, True]
