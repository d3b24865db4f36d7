"""Clocks that step: the audit finds what it would have found, and says that one stepped."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit.findings import audit
from pipeline.analysis.audit.verdict import judge
from pipeline.analysis.shared.inventory import Run
from pipeline.analysis.shared.steps import Step, _reference, is_away, steps
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000_000
YEARS_MS = 3 * 365 * 86_400_000
FRAMES, STEPPED = 520, 100
LOST, DOUBLED = (51, 301, 302), (83, 404)


def plain_buses(by_ms: float, levels: int) -> Capture:
    """Two gateways with a bus each and a wire between them, without envelopes, at 100 frames/s of `levels`.
    In the middle the clock of gw-b steps."""
    made = Capture(goes_on=True)
    for number in range(FRAMES):
        content, at = frame("motor", str(number * 7 % levels)), 10.0 * number
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 0.1, "gw-a", "bridge a", "bus a", RX, content)
        made.seen(at + 0.2, "gw-a", "bridge a", "wire", TX, content)
        late = at + (by_ms if number >= STEPPED else 0.0)
        made.seen(late + 1, "gw-b", "bridge b", "wire", RX, content)
        for copy in range((number not in LOST) + (number in DOUBLED)):
            made.seen(late + 1.1 + copy / 10, "gw-b", "bridge b", "bus b", TX, content)
    for end_ms, gateway in ((10.0 * FRAMES, "gw-a"), (10.0 * FRAMES + by_ms, "gw-b")):
        made.missed(end_ms, gateway, 0)  # the last row
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize(
    ("by_ms", "levels"), [(-30_000, 50), (30_000, 50), (YEARS_MS, 50), (30_000, FRAMES + 1)]
)
def test_a_step_makes_no_fault_and_hides_none(spark: "SparkSession", by_ms: float, levels: int) -> None:
    found = audit(plain_buses(by_ms, levels).rows(spark))
    tables: dict[str, Any] = {
        name: table.collect() for name, table in found._asdict().items() if name != "findings"
    }
    counts = Counter[str]()
    for row in tables["summary"]:
        counts[row.kind] += row["count"]
    assert counts == {"lost": len(LOST), "duplicate": len(DOUBLED)}
    assert tables["totals"][0].frames == FRAMES
    verdict = judge(tables)
    assert verdict.color == "red"
    assert "the clock of gw-b stepped by" in verdict.text


HOUR_MS = 3_600_000.0
Moves = dict[int, float]
"""By how much a clock steps, by the number of a frame."""


def often_stepped(moves: dict[str, Moves], levels: int, frames: int) -> Capture:
    """Two gateways as in `plain_buses`, whose clocks step as often as `moves` say; three frames are lost."""
    made = Capture(goes_on=True)

    def clock(gateway: str, number: int) -> float:
        return 10.0 * number + sum(by for since, by in moves.get(gateway, {}).items() if number >= since)

    for number in range(frames):
        content = frame("motor", str(number * 7 % levels))
        here, there = clock("gw-a", number), clock("gw-b", number)
        made.seen(here, "gw-a", "bridge a", "bus a", RX, content)
        made.seen(here + 0.2, "gw-a", "bridge a", "wire", TX, content)
        made.seen(there + 1, "gw-b", "bridge b", "wire", RX, content)
        if number not in LOST:
            made.seen(there + 1.1, "gw-b", "bridge b", "bus b", TX, content)
    for gateway in ("gw-a", "gw-b"):
        made.missed(clock(gateway, frames), gateway, 0)
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("levels", [50, 3000])
@pytest.mark.parametrize(
    "moves",
    [
        {"gw-b": {500: HOUR_MS, 1000: HOUR_MS}},
        {"gw-b": {400: HOUR_MS, 800: HOUR_MS, 1200: HOUR_MS / 2}},
        {"gw-b": {500: -HOUR_MS, 1000: 2 * HOUR_MS}},
        {"gw-b": {500: HOUR_MS, 1000: -HOUR_MS}},
        {"gw-a": {500: HOUR_MS}, "gw-b": {1000: HOUR_MS}},
        {"gw-a": {1000: HOUR_MS}, "gw-b": {500: HOUR_MS}},
        {"gw-a": {750: HOUR_MS}, "gw-b": {250: HOUR_MS, 1250: HOUR_MS}},
    ],
)
def test_clocks_that_step_several_times(spark: "SparkSession", moves: dict[str, Moves], levels: int) -> None:
    found = audit(often_stepped(moves, levels, 1700).rows(spark))
    tables = {name: table.collect() for name, table in found._asdict().items() if name != "findings"}
    assert {row.kind: row["count"] for row in tables["summary"]} == {"lost": len(LOST)}
    assert judge(tables).text.count(" stepped by ") == sum(map(len, moves.values()))


@pytest.mark.engines(SAIL)
def test_a_clock_that_stepped_is_all_that_is_wrong(spark: "SparkSession") -> None:
    made = Capture(goes_on=True)
    for number in range(600):
        content, at = frame("motor", str(number % 20)), 10.0 * number
        made.seen(at, "gw-a", "bridge a", "bus a", RX, content)
        made.seen(at + 0.2, "gw-a", "bridge a", "wire", TX, content)
        late = at - (30_000 if number >= 300 else 0)
        made.seen(late + 1, "gw-b", "bridge b", "wire", RX, content)
        made.seen(late + 1.1, "gw-b", "bridge b", "bus b", TX, content)
    for end_ms, gateway in ((6_001, "gw-a"), (6_001 - 30_000, "gw-b")):
        made.missed(end_ms, gateway, 0)
    found = audit(made.rows(spark))
    verdict = judge({name: table.collect() for name, table in found._asdict().items() if name != "findings"})
    assert (verdict.color, verdict.status) == ("amber", 1)
    assert "all handed on once; the clock of gw-b stepped by -30.0 s at" in verdict.text


@pytest.mark.engines(SAIL)
def test_frames_of_can_that_waited_for_a_late_gateway_are_no_step(spark: "SparkSession") -> None:
    """They have the time at which the kernel had them. The gateway stood for 2 s, and read a bus first."""
    made, can = Capture(goes_on=True), "can 239.0.0.1:9"
    late = range(200, 400)
    reads = [number for number in range(600) if number not in late]
    reads[200:200] = [400, *late]  # when it goes on, it first hears the bus, and then CAN
    for number in reads:
        content, at = frame("motor", str(number)), 10.0 * number
        if number % 400 == 0:
            made.seen(at, "gw-a", "bridge a", "bus a", RX, content)
            made.seen(at + 0.1, "gw-a", "bridge a", can, TX, content)
            continue
        made.seen(at, "gw-a", "bridge a", can, RX, content)
        made.seen(max(at, 4000.0 if number in late else 0) + 0.1, "gw-a", "bridge a", "bus a", TX, content)
    made.missed(6001, "gw-a", 0)
    assert not steps(made.rows(spark), []).found


def passing(seconds: range, by_s: float = 0) -> dict[int, list[int]]:
    """Let fifty frames pass in each second, each unlike all others."""
    return {50 * s + n: [int((s + n / 50 - by_s) * S)] for s in seconds for n in range(50)}


def test_whose_clock_is_right_is_told_by_who_agrees_with_it() -> None:
    """What comes to a process that stood still comes at once; then all is as it was."""
    one = Step("gw-b", 1, 9, 10 * S, 40 * S)
    own = {**passing(range(2, 10)), **passing(range(41, 48))}
    assert is_away(own, own, one) is None  # it was a silence
    assert is_away(own, {**passing(range(2, 10)), **passing(range(41, 48), 30)}, one) is True
    assert is_away(own, {**passing(range(2, 10), -30), **passing(range(41, 48))}, one) is False
    assert is_away(own, {}, one) is None
    assert is_away({}, own, one) is None


@pytest.mark.parametrize(
    ("steps", "last_seq", "ahead"),
    [
        ([Step("b", 1, 10, 100 * S, 130 * S)], 100, 30 * S),  # the second piece is longer
        ([Step("b", 1, 90, 100 * S, 130 * S)], 100, 0),
        (
            [Step("b", 1, 90, 100 * S, 130 * S, is_away=False)],
            100,
            30 * S,
        ),  # others agree with it
        ([Step("b", 1, 10, 100 * S, 130 * S, is_away=True)], 100, 0),
        ([Step("b", 1, 90, -9_000 * S, 130 * S)], 100, 9_130 * S),  # there was no time server yet
    ],
)
def test_the_right_piece_is_the_longest_that_fits_the_others(
    steps: list[Step], last_seq: int, ahead: int
) -> None:
    runs = [Run("a", 1, 0, 50 * S, 200 * S, True), Run("b", 1, 0, 0, 0, True, last_seq)]
    assert _reference(steps, runs) == ahead
