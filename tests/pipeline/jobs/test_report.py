"""The tables that a report is made of."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("cantools")

from bus.names import Names
from pipeline.engine.choice import SAIL
from pipeline.errors import PipelineError
from pipeline.input import read
from pipeline.jobs import report
from pipeline.jobs.record import OpenCapture
from pipeline.output.tables import Progress
from tests.bridges.protocols.dbc.dbc_support import CAR, written
from tests.helpers.rights import no_room
from tests.pipeline.signals.signals_support import Seen, capture_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_report_onto_a_full_disk_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "gather", lambda capture: {})
    monkeypatch.setattr(report, "judge", lambda parts: SimpleNamespace(color="green", line="well"))
    monkeypatch.setattr(report, "page", lambda *_: "<html>" * 10_000)
    (tmp_path / "report.html").write_text("before")
    capture: Any = SimpleNamespace(where="", directory="capture", names=Names())
    options = report.JOB.parsed("capture", "--output", str(tmp_path / "report.html"))
    with no_room(), pytest.raises(PipelineError, match=r"report\.html: cannot be written: File too large$"):
        report.run(options, capture)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


SENT = [
    Seen(5, "tank/level", b"7", "bus hall", "bus hall"),
    Seen(6, "tank/level", b"8", "bus hall", "bus hall"),
]


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize(
    ("seen", "frames"), [([Seen(5, 0x200, b"\7")], 0), (SENT, 2)], ids=["a wire alone", "a bus"]
)
def test_of_a_log_of_a_wire_alone_nothing_is_asked_that_only_frames_tell(
    spark: "SparkSession", tmp_path: Path, seen: list[Seen], frames: int
) -> None:
    capture_of(tmp_path, {"gw": seen}, files_each=1)
    found = report.gather(OpenCapture(spark, read.root(str(tmp_path)), Progress(quiet=True), Names()))
    assert found["totals"][0].frames == frames
    assert sum(row.rows for row in found["capture"]) == len(seen)
    assert ({"hops", "prefixes", "failovers", "last"} <= found.keys()) == (frames > 0)


@pytest.mark.engines(SAIL)
def test_of_a_database_of_no_use_a_line_says_what_to_do(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture_of(tmp_path, {"gw": [Seen(5, 0x201, b"\7")]}, files_each=1)
    out = tmp_path / "report.html"
    options = report.JOB.parsed(str(tmp_path), "--dbc", str(written(tmp_path, CAR)), "--output", str(out))
    root = read.root(str(tmp_path))
    assert report.run(options, OpenCapture(spark, root, Progress(quiet=False), Names())) == 0
    assert "no signal; `buscoupler signals` shows" in capsys.readouterr().err
