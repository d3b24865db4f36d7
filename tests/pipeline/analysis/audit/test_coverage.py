"""An audit says what it did not look at, and nobody is blamed for that."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import Row

from pipeline.analysis.audit.coverage import CUT_OFF, LEFT_OUT, NO_ROWS, NOT_ASKED, RECORDING, UNREAD, said
from pipeline.analysis.audit.dark import CRASH_NS, OPEN_NS, darkness
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.audit.uncovered import coverage
from pipeline.analysis.audit.verdict import judge
from pipeline.analysis.shared.inventory import Run
from pipeline.engine.choice import SAIL
from pipeline.input.span import WHOLE, Span
from pipeline.input.unread import Unread
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000_000
COLUMNS = ("what", "name", "first_ns", "last_ns", "n")
FIELD = {
    "bridge field": {"gateways": ["gw-a", "gw-b"], "sides": [{"segment": "bus hall"}, {"segment": "can"}]}
}


def run(gateway: str, first_s: float, last_s: float, is_ended: bool, first_seq: int = 0) -> Run:
    return Run(gateway, int(first_s * S), first_seq, int(first_s * S), int(last_s * S), is_ended)


@pytest.mark.parametrize(
    ("runs", "dark"),
    [
        ([run("a", 0, 9, True)], []),
        ([run("a", 0, 5, False), run("b", 0, 99, True)], [("a", 5 * S, 5 * S + CRASH_NS)]),
        ([run("a", 0, 5, False), run("a", 5.5, 99, True)], [("a", 5 * S, int(5.5 * S))]),
        ([run("a", 0, 90, False), run("b", 0, 99, False)], [("a", 90 * S, None), ("b", 99 * S, None)]),
        ([run("a", 0, 5, False), run("b", 0, 300, False)], [("a", 5 * S, 6 * S), ("b", 300 * S, None)]),
        ([run("a", 10, 20, True, first_seq=7)], [("a", None, 10 * S)]),
        ([run("a", 0, 5, False), run("a", 3, 9, True)], []),  # two recorders of one gateway
    ],
    ids=["ended", "killed", "killed, and back", "goes on", "killed long ago", "its beginning is gone", "two"],
)
def test_nothing_is_known_where_rows_may_be_missing(runs: list[Run], dark: list[Any]) -> None:
    assert OPEN_NS < 300 * S
    found = [(one.gateway, one.from_ns, one.to_ns) for one in darkness(runs, (), {})]
    ever = 1 << 62
    assert found == [(name, -ever if a is None else a, ever if b is None else b) for name, a, b in dark]


def test_what_is_known_is_by_one_clock_and_without_journals() -> None:
    """gw-b's clock is an hour ahead: its rows are not newer than those of gw-a for that."""
    hour_ns, ever = 3600 * S, 1 << 62
    runs = [run("a", 0, 90, False), run("b", 3600, 3699, False)]
    found = {one.gateway: one for one in darkness(runs, (), {"b": hour_ns})}
    assert found == {"a": ("a", 90 * S, ever), "b": ("b", 99 * S, ever - hour_ns)}
    ended = [run("a", 0, 90, True), run("b", 3600, 3640, True)]
    journals = [Unread("b", hour_ns + 41 * S, hour_ns + 95 * S)]
    dark = list(darkness(ended, (), {"b": hour_ns}, journals))
    assert dark == [("b", 41 * S, 95 * S + CRASH_NS)]


def row(gateway: str, hub: str, kind: int = 0, last: int = 5, topologies: Any = None) -> Row:
    return Row(
        gateway=gateway, boot=1, hub=hub, bus=hub, dir=0, kind=kind, verdict=0, reason=None, peer=None,
        rows=6, enveloped=0, count=6, first=0, last=last, first_ns=S, last_ns=last * S, topologies=topologies,
        began_ns=topologies and [S],
    )  # fmt: skip


def test_what_topologies_name_and_no_row_is_of_is_told() -> None:
    hubs = {
        "bus hall-a": {"gateways": ["gw-a"], "trunks": ["bus hall-c"]},
        "bridge x": {"gateways": ["gw-b"]},
    }
    topologies = [json.dumps(hubs)]
    taken = [row("gw-a", "bus hall-a"), row("gw-a", "", kind=2, last=6), row("gw-a", "", 5, 0, topologies)]
    found = coverage(taken, WHOLE, 2)
    assert [one[:2] for one in found] == [(LEFT_OUT, ""), (NO_ROWS, "gw-b"), (NO_ROWS, "bus hall-c")]
    assert [one[0] for one in coverage(taken, Span(gateways=("gw-a",)), 0)] == [NOT_ASKED, NOT_ASKED]
    assert list(said(dict(zip(COLUMNS, one, strict=True)) for one in found)) == [
        "2 files were left out", "nothing of gw-b, bus hall-c is in this capture",
    ]  # fmt: skip
    assert [one[:2] for one in coverage(taken[:1], WHOLE, 0)] == [(RECORDING, "gw-a")]
    stopped = row("gw-b", "", kind=2, last=6)
    assert [one[:2] for one in coverage([taken[0], stopped], WHOLE, 0)] == [(CUT_OFF, "gw-a")]
    assert [one[0] for one in coverage([taken[0], stopped], WHOLE, 0, ahead={"gw-b": 2 * S})] == [RECORDING]
    journals = [Unread("gw-a", 6 * S, 7 * S)]
    found = coverage([taken[0], stopped], WHOLE, 0, journals=journals)
    assert found == [(UNREAD, "gw-a", 6 * S, 7 * S, None)]
    assert list(said(dict(zip(COLUMNS, one, strict=True)) for one in found)) == [
        "the last rows of gw-a are in no file yet"
    ]


def carried(made: Capture, numbers: range, gateway: str, is_recorded: bool = True) -> None:
    """Carry frames from the hall to CAN, of which the bus and another bridge of gw-c record both ends."""
    for number in numbers:
        content, at = frame("motor", str(number)), 10 * number
        made.seen(at, "gw-c", "bus hall", "bus hall", RX, content, number)
        if is_recorded:
            made.seen(at + 1, gateway, "bridge field", "bus hall", RX, content, number)
            made.seen(at + 2, gateway, "bridge field", "can", TX, content, number)


def judged(made: Capture, spark: "SparkSession", **how: Any) -> tuple[Counter[Any], Any]:
    found = audit(made.rows(spark), **how)
    tables = {name: frame.collect() for name, frame in found._asdict().items() if name != "findings"}
    counts = Counter[Any]()
    for one in tables["summary"]:
        counts[one.kind, one.stage, one.gateway, one.hub] += one["count"]
    return counts, judge(tables)


@pytest.mark.engines(SAIL)
def test_what_a_killed_gateway_moved_last_is_not_lost(spark: "SparkSession") -> None:
    """Its last second of rows went with it; what comes later, nobody carried."""
    made = Capture(killed=("gw-a",))
    made.topology("gw-c", FIELD)
    carried(made, range(100), "gw-a")
    carried(made, range(100, 160), "gw-a", is_recorded=False)  # 600 ms, of which CAN heard all
    carried(made, range(250, 300), "gw-a", is_recorded=False)
    carried(made, range(300, 400), "gw-b")
    counts, verdict = judged(made, spark)
    assert counts == {
        ("not captured", "not recorded", "gw-a", None): 60,
        ("lost", "no bridge", "gw-a", "bridge field"): 50,
    }
    assert verdict.color == "red"
    assert "nothing is known of gw-a while 60 copies were due" in verdict.text


@pytest.mark.engines(SAIL)
def test_a_plant_that_still_records_has_lost_nothing(spark: "SparkSession") -> None:
    made = Capture(goes_on=True)
    carried(made, range(100), "gw-a")
    carried(made, range(100, 200), "gw-a", is_recorded=False)  # the file of gw-a is finished later
    counts, verdict = judged(made, spark)
    assert set(counts) == {("not captured", "not recorded", "gw-a", None)}
    assert "still record" in verdict.text
    assert "missing" not in verdict.text


@pytest.mark.engines(SAIL)
def test_a_bridge_whose_own_rows_passed_the_frame_is_not_to_blame(spark: "SparkSession") -> None:
    """Behind it nobody took the frames, and it was silent itself soon after."""
    made = Capture()
    for number in range(60):
        content, at = frame("motor", str(number)), 10 * number
        at += 400 if number >= 30 else 0
        made.seen(at, "gw-c", "bus hall", "bus hall", RX, content, number)
        made.seen(at + 1, "gw-c", "bridge link", "bus hall", RX, content, number)
        made.seen(at + 2, "gw-c", "bridge link", "wire", TX, content, number)
        if not 25 <= number < 30:
            made.seen(at + 3, "gw-a", "bridge field", "wire", RX, content, number)
            made.seen(at + 4, "gw-a", "bridge field", "can", TX, content, number)
    counts, _ = judged(made, spark)
    assert {hub for _, _, _, hub in counts} <= {"bridge field", None}
    assert counts.total() == 5
