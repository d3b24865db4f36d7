"""The verdict on a gateway: the worst reason first, and bounded."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from appliance.health.concerns import (
    RECENT_S,
    RecentCounts,
    of_certificates,
    of_claims,
    of_drops,
    of_links,
    of_loops,
    of_parts,
    of_rejects,
)
from appliance.health.watch import LOOK_S, HealthWatch
from appliance.status.health import REASONS, Concern, Health, verdict
from appliance.status.rows import LinkRow
from bus.hub import Hub, State
from bus.reasons import AMISS, DROPPED
from bus.wire.x509 import Span
from tests.appliance.health.fakes import FakeLink

if TYPE_CHECKING:
    from appliance.status.view import ShownPart

DOWN = Concern("trouble", "bus plant/dial", "Connection refused")
WIRE = "look at cable, termination and bit rate"
DROPS = Concern("degraded", "bus plant/ear", "messages were dropped: queue full 3")


def test_the_worst_reason_is_first_and_gives_the_word() -> None:
    health = verdict([DROPS, DOWN])
    assert health == Health("trouble", (DOWN, DROPS))
    assert health.line() == "trouble: bus plant/dial: Connection refused (and 1 more)"
    assert verdict([DROPS]).line() == "degraded: bus plant/ear: messages were dropped: queue full 3"
    assert verdict([]).line() == "ok"


def test_many_reasons_are_counted_and_the_worst_are_listed() -> None:
    health = verdict([*[DROPS] * 100, DOWN])
    assert (len(health.reasons), health.more) == (REASONS, 101 - REASONS)
    assert health.reasons[0] == DOWN
    assert health.line().endswith("(and 100 more)")


def test_links_that_are_down_or_have_a_condition_that_is_not_well() -> None:
    states: dict[str, tuple[State, str, str]] = {
        "refused": ("waiting", "", "Connection refused"),
        "silent": ("waiting", "", ""),
        "noise": ("up", "noise: another baud rate?", ""),
        "off": ("up", "bus-off", ""),
        "passive": ("up", "error-passive", ""),
        "counted": ("up", "error-warning: error counters 97 sending, 9 receiving", ""),
        "asked": ("up", "pump does not answer", ""),
        "well": ("up", "error-active", ""),
        "new": ("opening", "", ""),
    }
    hub = Hub("m")
    rows = [LinkRow(hub, name, FakeLink(*state)) for name, state in states.items()]
    found = list(of_links([*rows, *rows], {rows[0].link, rows[1].link}))  # a link may have two rows
    assert found == [
        Concern("trouble", "m/refused", "Connection refused"),
        Concern("trouble", "m/silent", "nothing answers"),
        Concern("trouble", "m/noise", "noise: another baud rate?"),
        Concern("trouble", "m/off", f"bus-off: after too many errors nothing goes in or out: {WIRE}"),
        Concern("degraded", "m/passive", f"error-passive: frames fail on the wire: {WIRE}"),
        Concern("degraded", "m/counted", f"error-warning: some frames fail on the wire: {WIRE}"),
        Concern("degraded", "m/asked", "pump does not answer"),
    ]


@pytest.mark.parametrize("reason", sorted(AMISS | {one.word for one in DROPPED if one.kind == "trouble"}))
def test_each_reason_by_which_somebody_should_look_is_told_with_its_cause(reason: str) -> None:
    noted = {"plant/ear": RecentCounts(100.0, {reason: 2})}
    (one,) = of_rejects(noted, 100.0) if reason in AMISS else of_drops(noted, 100.0)
    said, cause = one.text.split(f": {reason} 2: ")
    assert said
    assert len(cause) > 15
    assert "{" not in cause


def test_the_slow_one_of_several_peers_is_named() -> None:
    (one,) = of_drops({"plant/ear": RecentCounts(100.0, {"hops": 1, "queue full": 2}, "h:1 from h:2")}, 100.0)
    assert one.text.endswith("hops 1, queue full 2: h:1 from h:2 takes less than is sent")


def test_drops_count_for_a_minute_and_claims_once_they_are_old() -> None:
    drops = {"plant/ear": RecentCounts(100.0, {"queue full": 2, "hops": 1})}
    assert list(of_drops(drops, 100.0 + RECENT_S)) == []
    (one,) = of_drops(drops, 99.9 + RECENT_S)
    assert one.text == "messages were dropped: queue full 2, hops 1: who is there takes less than is sent"
    assert [str(one) for one in of_claims({"a": 60_000, "b": 20_000, "c": 900}, gateway="a")] == [
        "gateway b: silent: it could not take over"
    ]
    assert list(of_loops([Hub("plain")])) == []


def test_a_recorder_that_loses_messages_is_told_and_one_that_waits_is_a_link_that_is_down() -> None:
    recorder = SimpleNamespace(name="rec", state="up", is_losing=True, lost=7, fault="")
    part = SimpleNamespace(candidacy=None, beside=None, recorders=[recorder])
    (one,) = of_parts([cast("ShownPart", part)])
    words = "7 messages were not recorded: the disk or this machine is too slow"
    assert one == Concern("degraded", "tap rec", words)
    recorder.state = "waiting"
    assert list(of_parts([cast("ShownPart", part)])) == []


def test_a_certificate_is_told_30_days_before_its_end_and_is_trouble_after_it() -> None:
    day_s, now_s = 86400.0, 1_800_000_000.0
    ends_s = {"long": now_s + 30 * day_s, "soon": now_s + 29.5 * day_s, "last": now_s + 60, "gone": now_s}
    spans = {name: Span(now_s - day_s, end_s) for name, end_s in ends_s.items()}
    found = [(one.word, one.text.split(", on")[0]) for one in of_certificates(spans, now_s)]
    assert found[:2] == [
        ("degraded", "soon: the certificate ends in 29 days"),
        ("degraded", "last: the certificate ends in less than a day"),
    ]
    assert found[2][0] == "trouble"
    assert "peers refuse it" in found[2][1]


def test_a_certificate_that_begins_later_is_trouble_until_then() -> None:
    now_s = 1_800_000_000.0
    (one,) = of_certificates({"new": Span(now_s + 1, now_s + 9e8)}, now_s)
    assert (one.word, one.text.split(" on ")[0]) == ("trouble", "new: the certificate begins")
    assert list(of_certificates({"new": Span(now_s, now_s + 9e8)}, now_s)) == []


def test_a_change_is_an_event_once_it_is_seen_twice() -> None:
    events = list[tuple[str, ...]]()
    watch = HealthWatch(lambda kind, source, cause, _: events.append((kind, source, cause)))
    said = [[], [DOWN], [], [DOWN], [DOWN, DROPS], [DOWN, DROPS], []]
    words = []
    for number, concerns in enumerate(said):
        watch.look(number * LOOK_S, lambda concerns=concerns: concerns)  # type: ignore[misc]
        watch.look((number + 0.5) * LOOK_S, lambda: [DOWN])  # too early
        words.append(watch.now.word)
    assert words == ["ok", "ok", "ok", "ok", "trouble", "trouble", "ok"]
    assert events == [
        ("health", "gateway", "trouble: bus plant/dial: Connection refused"),
        ("health", "gateway", "ok"),
    ]
