"""What people and programs read of a trace: each hop, each way out with its sign, and the times."""

from pathlib import Path

import pytest

from appliance.explain.client import Running, Start, Trace
from appliance.explain.hop import Exit, Hop
from appliance.explain.printer import plan_lines, plan_record, trace_lines, trace_record
from appliance.explain.words import Answer

BEGAN_NS = 5_000_000
START = Start(Running(Path("/s"), Answer("t", "gw", (), "/t.yaml")), "bus p: uart")


def trace(*hops: Hop, more: bool = False, failed: tuple[str, ...] = ()) -> Trace:
    first = Hop("bus p", "gw", "uart", BEGAN_NS)
    return Trace("mark", START, 20, ("t on gw",), (), (first, *hops), more, failed)


def hop(at_ns: int = 0, *ways: Exit, stopped: tuple[str, ...] = (), remarks: tuple[str, ...] = ()) -> Hop:
    return Hop("bridge x", "gw", "bus p", BEGAN_NS + at_ns, "", stopped, ways, remarks)


def shown(one: Trace) -> list[str]:
    return list(trace_lines(one, "a/b", 1.5))


def test_a_trace_begins_with_what_was_sent_and_ends_with_who_watched() -> None:
    assert shown(trace()) == [
        'a/b from bus p: uart on gw: 20 bytes with "mark"',
        "  bus p on gw, by uart, after 0 us",
        "watched for 1.5 s: t on gw",
    ]


def test_what_is_missing_is_said() -> None:
    assert shown(trace(more=True, failed=("t on other",)))[2:4] == [
        "  and it came more often: only the first arrivals are kept",
        "  not asked: t on other",
    ]


@pytest.mark.parametrize(
    ("after_ns", "time"),
    [
        (0, "0 us"),
        (1_999, "1 us"),
        (999_000, "999 us"),
        (999_999, "999 us"),
        (1_000_000, "1.0 ms"),
        (2_345_678, "2.3 ms"),
    ],
)
def test_times_are_since_the_frame_came_in(after_ns: int, time: str) -> None:
    said = shown(trace(hop(after_ns, Exit("can", BEGAN_NS + after_ns, 1))))
    assert said[2:4] == [f"  bridge x on gw, by bus p, after {time}", f"    > can (sent after {time})"]


def test_a_hop_that_was_stopped_has_its_reasons_and_remarks() -> None:
    said = shown(trace(hop(0, stopped=("loop", "pattern"), remarks=("late",))))
    assert said[2:4] == ["  bridge x on gw, by bus p, after 0 us: stopped: loop, pattern", "     . late"]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (Exit("can"), "? can"),
        (Exit("can", BEGAN_NS, 1), "> can (sent after 0 us)"),
        (Exit("can", BEGAN_NS, 2), "> can (sent after 0 us; 2 peers)"),
        (Exit("bus q", BEGAN_NS, 1, True), "> bus q"),
        (Exit("bus q", BEGAN_NS, 3, True), "> bus q (3 peers)"),
        (Exit("can", stopped=("pattern", "hops")), "x can (stopped: pattern, hops)"),
        (Exit("can", BEGAN_NS, 1, stopped=("full",)), "x can (stopped: full; sent after 0 us)"),
        (Exit("can", remarks=("still waits",)), "? can (still waits)"),
    ],
)
def test_a_way_out_has_a_sign_and_what_is_known_of_it(way: Exit, said: str) -> None:
    assert shown(trace(hop(0, way)))[3] == f"    {said}"


def test_programs_get_microseconds_since_the_frame_came_in_and_none_where_nothing_was_sent() -> None:
    made = trace_record(trace(hop(2_345_678, Exit("can", BEGAN_NS + 9_000, 1), Exit("uart"))), "a/b", 1.5)
    assert [one["at_us"] for one in made["hops"]] == [0, 2345]
    assert [way["at_us"] for way in made["hops"][1]["ways"]] == [9, None]
    assert "at_ns" not in made["hops"][1]
    assert (made["bytes"], made["seconds"], made["more"], made["from"]) == (20, 1.5, False, "bus p: uart")


def test_a_hop_that_is_foreseen_is_told_in_the_same_words_without_times() -> None:
    exits = Exit("can", 0), Exit("i2c", stopped=("pattern",))
    hop = Hop("bus p", "gw", "uart", exits=exits, remarks=("late",))
    assert list(plan_lines([hop], "bus p: uart", "a/b")) == [
        "a/b from bus p: uart",
        "  bus p on gw, by uart",
        "    > can",
        "    x i2c (stopped: pattern)",
        "     . late",
    ]
    (made,) = plan_record([hop], "bus p: uart", "a/b")["hops"]
    assert list(made) == ["part", "gateway", "by", "stopped", "ways", "remarks"]
    assert made["ways"][1] == {"to": "i2c", "stopped": ("pattern",), "remarks": ()}
