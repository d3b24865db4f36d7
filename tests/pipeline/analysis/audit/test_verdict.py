"""The verdict on a capture: a color, a sentence and an exit status from the tables of an audit."""

from typing import Any

import pytest

from pipeline.analysis.audit.verdict import Verdict, judge

BRIDGE = {"gateway": "gw", "hub": "bridge field"}


def audited(**more: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a capture of 4,001 frames without a fault, but for what is given."""
    tables: dict[str, list[dict[str, Any]]] = {
        "totals": [{"frames": 4001, "crossed": 4001}], "summary": [], "ledger": [], "agreement": [],
        "capture": [{"missed": 0, "holes": 0}],
    }  # fmt: skip
    return {**tables, **more}


def dropped(direction: int = 1, **reasons: int) -> list[dict[str, Any]]:
    words = {name.replace("_", " "): count for name, count in reasons.items()}
    return [{**BRIDGE, "dir": direction, "reason": word, "count": count} for word, count in words.items()]


def lost(stage: str, count: int, kind: str = "lost", **place: str) -> dict[str, Any]:
    return {**BRIDGE, "kind": kind, "stage": stage, "count": count, **place}


def outcome(verdict: Verdict) -> tuple[str, int]:
    return verdict.color, verdict.status


def test_all_is_well() -> None:
    verdict = judge(audited())
    assert outcome(verdict) == ("green", 0)
    assert verdict.text == "4,001 frames entered, all handed on once to every segment that their kind reaches"


def test_drops_that_a_policy_intends_are_told_and_are_no_fault() -> None:
    verdict = judge(audited(ledger=dropped(conflated=686)))
    assert outcome(verdict) == ("amber", 0)
    assert verdict.text.endswith("; 686 then dropped in queues (686 conflated), all by policy")


@pytest.mark.parametrize("reason", ["queue_full", "peer_gone", "no_device", "a_word_of_the_kernel"])
def test_drops_that_nobody_intended_are_a_fault(reason: str) -> None:
    verdict = judge(audited(ledger=dropped(conflated=686, **{reason: 4})))
    assert outcome(verdict) == ("amber", 1)
    reasons = f"686 conflated, 4 {reason.replace('_', ' ')}"
    assert f"690 then dropped in queues ({reasons}), 4 of them by no policy" in verdict.text


@pytest.mark.parametrize("reason", ["pattern", "event", "no_frame", "no_name", "heard", "fenced", "no_peer"])
def test_what_filters_keep_out_and_what_came_another_way_is_not_missing(reason: str) -> None:
    assert outcome(judge(audited(ledger=dropped(**{reason: 9})))) == ("green", 0)


@pytest.mark.parametrize("direction", [0, 1], ids=["in", "out"])
def test_frames_without_a_name_beyond_a_side_are_told_with_what_to_do(direction: int) -> None:
    verdict = judge(audited(ledger=dropped(direction, no_name=9)))
    assert outcome(verdict) == ("green", 0)
    assert (
        "9 stayed on their side because `prefix`, `strip` and `rename` have no name for them" in verdict.text
    )


def test_rejected_input_is_told_if_something_was_wrong_with_it() -> None:
    assert outcome(judge(audited(ledger=dropped(0, echo=1524, duplicate=3)))) == ("green", 0)
    verdict = judge(audited(ledger=dropped(0, framing=2)))
    assert outcome(verdict) == ("amber", 0)
    assert "2 inputs rejected (2 framing)" in verdict.text


def test_faults_in_the_traffic_are_red() -> None:
    others = [lost("in bridge", 2, "duplicate"), lost("in bridge", 1, "echo")]
    verdict = judge(audited(summary=[lost("in bridge", 40), *others], ledger=dropped(queue_full=40)))
    assert outcome(verdict) == ("red", 1)
    assert "40 missing on a segment, 2 doubled, 1 echoed" in verdict.text
    assert "40 then dropped in queues (40 queue full)" in verdict.text


@pytest.mark.parametrize(("missing", "color", "status"), [(686, "amber", 0), (687, "red", 1)])
def test_frames_that_others_miss_by_a_policy_are_no_fault(missing: int, color: str, status: int) -> None:
    faults = [lost("at the sender", missing), lost("upstream", missing, gateway="b", hub="bridge other")]
    tables = audited(
        summary=faults, ledger=dropped(conflated=686), agreement=[{**BRIDGE, "at_sender": missing}]
    )
    verdict = judge(tables)
    assert outcome(verdict) == (color, status)
    assert (f", all by policy; so {2 * missing:,} copies are missing further on" in verdict.text) == (
        color == "amber"
    )


def test_a_full_queue_that_others_notice_is_a_fault() -> None:
    tables = audited(
        summary=[lost("at the sender", 4)], ledger=dropped(queue_full=4),
        agreement=[{**BRIDGE, "at_sender": 4}],
    )  # fmt: skip
    assert outcome(judge(tables)) == ("red", 1)


def test_copies_that_had_nobody_to_go_to_are_told_and_no_fault() -> None:
    verdict = judge(audited(summary=[lost("in bridge", 79, "nobody")], ledger=dropped(**{"no peer": 80})))
    assert outcome(verdict) == ("green", 0)
    assert "79 copies had nobody to go to" in verdict.text
    assert "every segment" not in verdict.text


def test_frames_that_stay_on_their_segment_are_not_said_to_have_crossed() -> None:
    verdict = judge(audited(totals=[{"frames": 4001, "crossed": 1000}]))
    assert outcome(verdict) == ("green", 0)
    assert "4,001 frames entered; 1,000 had to cross, all handed on" in verdict.text


@pytest.mark.parametrize("frames", [0, 4001])
def test_a_capture_that_cannot_tell_does_not_say_that_all_is_well(frames: int) -> None:
    verdict = judge(audited(totals=[{"frames": frames, "crossed": 0}]))
    assert outcome(verdict) == ("amber", 1)
    assert "nothing" in verdict.text


@pytest.mark.parametrize("column", ["missed", "holes"])
def test_a_capture_with_gaps_does_not_say_that_all_is_well(column: str) -> None:
    verdict = judge(audited(capture=[{"missed": 0, "holes": 0, column: 7}]))
    assert outcome(verdict) == ("amber", 1)
    assert "the recorders missed 7 rows" in verdict.text
