"""SQL on a capture: its views, as-of joins as the page has them, and a shell that survives wrong queries."""

import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from socket import CAN_EFF_FLAG, CAN_ERR_FLAG, CAN_RTR_FLAG
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("cantools")

from bus.names import Names
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.jobs import find
from pipeline.jobs.record import OpenCapture
from pipeline.jobs.sql import VIEWS
from pipeline.output.tables import Progress
from tests.bridges.protocols.dbc.dbc_support import CAR, written
from tests.helpers import ROOT
from tests.pipeline.signals.signals_support import MS, NAMES, START_NS, Seen, capture_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines(SAIL)
JOB = find("sql")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sql")
    frames = [Seen(10 * n, "car/0x200", bytes((n % 4, 10 * n))) for n in range(4)]
    values = [Seen(10 * n + 5, "tank/level", b"%d" % n, bus="bus hall") for n in range(4)]
    capture_of(made, {"gw-a": sorted([*frames, *values])})
    written(made, CAR)
    return made


def run(spark: "SparkSession", root: Path, *words: str) -> int:
    options = JOB.parsed(str(root), "--dbc", str(root / "car.dbc"), "--json", *words)
    capture = OpenCapture(spark, str(root / "capture"), Progress(quiet=True), Names(NAMES))
    assert JOB.run is not None
    return JOB.run(options, capture)


def answers(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_view_can_be_asked(
    spark: "SparkSession", root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = [
        word for view in VIEWS for word in ("-e", f"SELECT '{view}' AS view, count(*) AS n FROM {view}")
    ]
    more = "-e", "SELECT pattern, text FROM frames WHERE text IS NOT NULL ORDER BY ts_ns LIMIT 1"
    assert run(spark, root, *queries, *more) == 0
    *counts, one = answers(capsys.readouterr().out)
    assert {row["view"]: row["n"] for row in counts} == {
        "frames": 8, "signals": 12, "wires": 0, "events": 0, "ledgers": 0, "findings": 0,
    }  # fmt: skip
    assert one["pattern"] in ("car/0x00000200", "tank/level")


def test_frames_on_a_wire_have_their_identifier_and_data(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    identifiers = 0x123, 0x18FEF100 | CAN_EFF_FLAG, 0x7FF | CAN_RTR_FLAG, 4 | CAN_ERR_FLAG, 0x200, 0
    data = b"\x11\x22", bytes(range(8)), b"", bytes(8), bytes(range(64)), b""
    capture_of(tmp_path, {"gw-a": list(map(Seen, range(6), identifiers, data))}, 1)
    written(tmp_path, CAR)
    query = "SELECT can_id, is_extended, hex(data) AS data, items FROM wires ORDER BY ts_ns"
    assert run(spark, tmp_path, "-e", query) == 0
    assert [tuple(row.values()) for row in answers(capsys.readouterr().out)] == [
        (0x123, False, "1122", "frames"),
        (0x18FEF100, True, "0001020304050607", "frames"),
        (0x7FF, False, None, "frames"),
        (None, False, bytes(8).hex(), "frames"),
        (0x200, False, bytes(range(64)).hex().upper(), "frames"),
        (0, False, "", "frames"),
    ]


def test_each_column_is_there_and_times_are_utc(
    spark: "SparkSession", root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        join = (
            "SELECT f.bus, g.bus, f.time, f.hub AS `a``.b` FROM frames f JOIN frames g ON f.ts_ns < g.ts_ns"
        )
        assert run(spark, root, "-e", f"{join} ORDER BY f.ts_ns, g.ts_ns LIMIT 1") == 0
    finally:
        monkeypatch.undo()
        time.tzset()
    at = str(datetime.fromtimestamp(START_NS // 10**9, UTC).replace(tzinfo=None))
    assert answers(capsys.readouterr().out) == [
        {"bus": "can can0", "bus_2": "bus hall", "time": at, "a`.b": "bridge joint"}
    ]


def recipe() -> str:
    """Return the query of the page for an as-of join."""
    page = (ROOT / "docs/pipeline.md").read_text()
    return page.partition("```sql\n")[2].partition("```")[0]


def test_signals_are_joined_as_of_a_time_as_the_page_says(
    spark: "SparkSession", root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = recipe().replace("engine/Rpm", "tank/level").replace("car/Gearbox/Gear", "car/Gearbox/Oil")
    assert run(spark, root, "-e", query.rstrip(";\n")) == 0
    found = [tuple(row.values())[:3] for row in answers(capsys.readouterr().out)]
    assert found == [(START_NS + (10 * n + 5) * MS, float(n), 10.0 * n) for n in range(4)]


@pytest.mark.engines(SPARK, SAIL)
def test_a_shell_goes_on_after_a_wrong_query(
    spark: "SparkSession", root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT nothing\n FROM frames;\n;\nSELECT 1 AS one"))
    assert run(spark, root) == 1
    out, error = capsys.readouterr()
    assert answers(out) == [{"one": 1}]
    assert "nothing" in error
    assert len(error.splitlines()) == 1


QUOTED = {
    "'it''s'": "it's",
    '''"it""s"''': 'it"s',
    r"""'a\''''""": "a''",
    """'say ""'""": 'say ""',
    "'' || ''''": "'",
    r"""'\\'''""": r"\'",
    """1 AS `it''s`, "it's" -- ''
    /* '' ' */""": "it's",
    """r"it''s\\d" """: r"it''s\d",
}


@pytest.mark.engines(SPARK, SAIL)
def test_a_text_may_have_quotes_in_it(
    spark: "SparkSession", root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(spark, root, *(word for text in QUOTED for word in ("-e", f"SELECT {text}"))) == 0
    assert [[*row.values()][-1] for row in answers(capsys.readouterr().out)] == [*QUOTED.values()]


@pytest.mark.engines(SPARK, SAIL)
def test_a_view_that_is_not_there_is_named_with_those_that_are(spark: "SparkSession", root: Path) -> None:
    for query, text in {
        "SELECT * FROM frame": 'frame: no such view; did you mean "frames"?',
        "SELECT 1 FROM frames JOIN `x y`": f"x y: no such view; known here: {', '.join(sorted(VIEWS))}",
    }.items():
        with pytest.raises(PipelineError) as told:
            run(spark, root, "-e", query)
        assert str(told.value) == text


@pytest.mark.engines(SPARK, SAIL)
def test_a_query_writes_to_the_directory_that_it_names(
    spark: "SparkSession", root: Path, tmp_path: Path
) -> None:
    query = f"INSERT OVERWRITE /*x*/ DIRECTORY '{tmp_path}/out' USING parquet SELECT bus FROM frames"
    assert run(spark, root, "-e", query) == 0
    assert spark.read.parquet(str(tmp_path / "out")).count() == 8


def test_a_query_that_would_store_a_table_is_refused(spark: "SparkSession", root: Path) -> None:
    with pytest.raises(PipelineError, match="sql stores no tables"):
        run(spark, root, "-e", "CREATE/**/TABLE t AS SELECT bus FROM frames")
