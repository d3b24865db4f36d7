"""The job `signals` on both engines: what pieces of a capture gave is put together."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("cantools")

from bus import extras
from bus.names import Names
from bus.quantity.quantity import Quantity
from capture.names import beside
from pipeline.analysis.watch import tables
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.input import read
from pipeline.jobs import find
from pipeline.jobs.record import Files, OpenCapture
from pipeline.jobs.signals import followed
from pipeline.output.tables import Progress
from tests.bridges.protocols.dbc.dbc_support import CAR, written
from tests.pipeline.signals.signals_support import MS, START_NS, Seen, capture_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = find("signals")
AT_MS = [0, 10, 20, 30, 2030, 2040, 2050, 2060]  # files of four: the longest pause is between them


def seen() -> list[Seen]:
    """Return eight frames of a gearbox, with oil of 10 to 80 degC, and a number that a bus heard twice."""
    rows = [Seen(ms, "car/0x200", bytes((n % 4, 10 * n + 10))) for n, ms in enumerate(AT_MS)]
    twice = [("bus hall", 0), ("bridge joint", 0), ("bridge joint", 1)]
    rows += [
        Seen(ms + 1, "tank/level", b"%d" % ms, hub, "bus hall", way) for ms in AT_MS for hub, way in twice
    ]
    return sorted(rows)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("signals")
    capture_of(made, {"gw-a": seen(), "gw-b": [Seen(5, "car/0x200", bytes((2, 7)))]}, files_each=1)
    written(made, CAR)
    return made


def rows(spark: "SparkSession", root: Path, *words: str) -> list[dict[str, Any]]:
    return answers(spark, root, *words)[-1]


def answers(spark: "SparkSession", root: Path, *words: str) -> list[list[dict[str, Any]]]:
    return of(spark, root, JOB.parsed(str(root), "--dbc", str(root / "car.dbc"), *words))


def of(spark: "SparkSession", root: Path, options: argparse.Namespace) -> list[list[dict[str, Any]]]:
    assert JOB.prepare is not None
    assert JOB.tables is not None
    JOB.prepare(options)
    days = read.root(str(root))
    capture = OpenCapture(spark, days, Progress(quiet=True), Names(beside(Path(days))))
    found = JOB.tables(options, capture)
    return [[row.asDict() for row in table.frame.collect()] for table in found]


@pytest.mark.engines(SPARK, SAIL)
def test_each_signal_has_its_sums(spark: "SparkSession", root: Path) -> None:
    out = root.parent / f"table-{type(spark).__module__}"
    found = rows(spark, root, "--stats", "--output", str(out))
    by_name = {(row["gateway"], row["bus"], row["pattern"], row["signal"]): row for row in found}
    assert by_name.keys() == {
        ("gw-a", "can can0", "car/Gearbox", "Gear"), ("gw-a", "can can0", "car/Gearbox", "Oil"),
        ("gw-a", "bus hall", "tank", "level"),
        ("gw-b", "can can0", "car/Gearbox", "Gear"), ("gw-b", "can can0", "car/Gearbox", "Oil"),
    }  # fmt: skip
    oil = by_name["gw-a", "can can0", "car/Gearbox", "Oil"]
    assert (oil["rows"], oil["min"], oil["mean"], oil["max"], oil["last"]) == (8, 10.0, 45.0, 80.0, 80.0)
    assert oil["stddev"] == pytest.approx(24.494897)
    assert (oil["gaps"], oil["longest_ms"], oil["longest_from_ns"]) == (1, 2000.0, START_NS + 30 * MS)
    assert oil["period_ms"] == pytest.approx(2060 / 7)
    gear = by_name["gw-a", "can can0", "car/Gearbox", "Gear"]
    assert (gear["last"], gear["last_text"], gear["outside"]) == (3.0, "Drive", 0)
    assert by_name["gw-a", "bus hall", "tank", "level"]["rows"] == 8
    assert len(list(out.glob("date=*/gateway=*/*.parquet"))) == 2


@pytest.mark.engines(SAIL)
def test_where_nothing_is_found_the_identifiers_of_frames_are_shown(
    spark: "SparkSession", tmp_path: Path
) -> None:
    capture_of(tmp_path, {"gw-a": [Seen(ms, "car/0x201", b"abc") for ms in range(3)]})
    (found,) = of(spark, tmp_path, JOB.parsed(str(tmp_path), "--dbc", str(written(tmp_path, CAR))))
    assert [(row["pattern"], row["signal"], row["unit"], row["rows"], row["last"]) for row in found] == [
        ("car", "0x201", "B", 3, 3.0)
    ]


@pytest.mark.engines(SPARK, SAIL)
@pytest.mark.parametrize("has_database", [False, True])
def test_of_a_wire_without_a_database_of_its_own_the_identifiers_are_shown(
    spark: "SparkSession", tmp_path: Path, has_database: bool
) -> None:
    capture_of(tmp_path, {"gw-a": [Seen(ms, 0x200, b"abc") for ms in range(3)]})
    words = ["--dbc", f"can9={written(tmp_path, CAR)}"] if has_database else []
    (found,) = of(spark, tmp_path, JOB.parsed(str(tmp_path), *words))
    assert [(row["bus"], row["signal"], row["rows"]) for row in found] == [("can can0", "0x200", 3)]


def test_a_watch_writes_the_values_of_each_batch(spark: "SparkSession", root: Path, tmp_path: Path) -> None:
    options = find("watch").parsed(str(root), "--output", "x", "--signals", "--dbc", str(root / "car.dbc"))
    days = str(root / "capture")
    capture = OpenCapture(spark, days, Progress(quiet=True), Names(beside(Path(days))))
    write = tables(tmp_path, 10.0, followed(options, capture))
    write(read.read(spark, days).where("gateway = 'gw-b'"), 1)
    found = spark.read.parquet(str(tmp_path / "signals" / "batch=1")).collect()
    assert sorted((row.pattern, row.signal, row.value, row.text) for row in found) == [
        ("car/Gearbox", "Gear", 2.0, "Neutral"), ("car/Gearbox", "Oil", 7.0, None),
    ]  # fmt: skip


@pytest.mark.engines(SPARK, SAIL)
def test_windows_have_the_values_of_their_time(spark: "SparkSession", root: Path) -> None:
    out = root.parent / "windows"
    found = rows(spark, root, "--resample-ms", "1000", "--signal", "oil", "--output", str(out), "--delta")
    shown = ("gateway", "start_ns", "rows", "mean", "last")
    assert [tuple(row[name] for name in shown) for row in found] == [
        ("gw-a", START_NS, 4, 25.0, 40.0),
        ("gw-b", START_NS, 1, 7.0, 7.0),
        ("gw-a", START_NS + 2000 * MS, 4, 65.0, 80.0),
    ]
    deltalake = pytest.importorskip("deltalake")
    rows(spark, root, "--resample-ms", "1000", "--signal", "oil", "--output", str(out), "--delta")
    assert deltalake.DeltaTable(str(out)).to_pyarrow_table().num_rows == 3  # and not twice as many


@pytest.mark.engines(SAIL)
def test_values_while_a_condition_holds(spark: "SparkSession", root: Path) -> None:
    """Oil is above 15 degC from the second frame on, and the gear is Drive in the fourth and the eighth."""
    words = (
        "--gateway",
        "gw-a",
        "--where",
        "oil > 15 and Gearbox/gear <> 'Drive'",
        "--signal",
        "level",
        "--stats",
    )
    held, (level,) = answers(spark, root, *words)
    at = [START_NS + ms * MS for ms in AT_MS]
    assert [(row["start_ns"], row["end_ns"]) for row in held] == [(at[1], at[3]), (at[4], at[7])]
    assert (level["rows"], level["min"], level["max"]) == (5, 10.0, 2050.0)
    held = answers(spark, root, "--where", "upper(Gearbox/gear) = 'DRIVE'", "--gateway", "gw-a")[0]
    assert [row["start_ns"] for row in held] == [at[3], at[7]]
    for condition, text in {"oil > hail": "hail is no signal", "1 = 1": "no signal is in it"}.items():
        with pytest.raises(PipelineError, match=text):
            answers(spark, root, "--where", condition)


@pytest.mark.engines(SPARK, SAIL)
def test_of_two_values_at_one_time_the_greater_counts_in_a_condition(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Number and text are of one value: what the text was before does not stay beside another number."""
    levels = [(0, b"5"), (1, b"50"), (1, b"7"), (2, b"7"), (2, b"50"), (3, b"5"), (4, b"99"), (5, b"5")]
    capture_of(tmp_path, {"gw-a": [Seen(ms, "tank/level", one) for ms, one in levels]})
    parser = argparse.ArgumentParser()
    tank = Quantity(("tank", "level"), choices={99: "broken"})
    JOB.add_arguments(parser, Files(quantities=lambda _: (tank,)))
    words = [str(tmp_path), "--topology", "plant.yaml", "--where"]
    for condition, spans in {
        "level > 40": [(1, 3), (4, 5)], "level = 7": [], "level < 10": [(0, 1), (3, 4), (5, 5)],
        "level = 'broken'": [(4, 5)],
    }.items():  # fmt: skip
        found = of(spark, tmp_path, parser.parse_args([*words, condition]))[0]
        at = [tuple((row[name] - START_NS) // MS for name in ("start_ns", "end_ns")) for row in found]
        assert at == spans, condition


@pytest.mark.engines(SAIL)
def test_a_condition_is_over_a_signal_at_one_place_and_in_one_unit(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other gateways hear it with clocks of their own, other segments may have another, and units differ."""
    levels = [Seen(n, "tank/level", b'{"v":%d,"unit":"l"}' % (n // 4 % 2 * 50)) for n in range(12)]
    others = [Seen(n + 0.5, "tank/level", b'{"v":9,"unit":"gal"}') for n in range(0, 12, 2)]
    elsewhere = [
        one._replace(ms=one.ms + 0.3, bus="bus yard", data=b'{"v":9,"unit":"l"}') for one in levels[1:]
    ]
    late = [one._replace(ms=one.ms + 3) for one in levels[:-1]]
    capture_of(tmp_path, {"gw-a": levels + others + elsewhere, "gw-b": late})
    held = of(spark, tmp_path, JOB.parsed(str(tmp_path), "--where", "level > 20"))[0]
    assert [((row["start_ns"] - START_NS) / MS, (row["end_ns"] - START_NS) / MS) for row in held] == [(4, 8)]
    assert "tank/level is that of can can0 of gw-a in l; it is on " in capsys.readouterr().err


@pytest.mark.engines(SAIL)
def test_nan_is_above_and_below_no_number(spark: "SparkSession", tmp_path: Path) -> None:
    """It is a value all the same: it ends the one before."""
    levels = (b"5", b"50", b"nan", b"5", b"nan", b"60")
    capture_of(tmp_path, {"gw-a": [Seen(n, "tank/level", one) for n, one in enumerate(levels)]})
    for condition, at in {"level > 9": [1, 5], "level < 9": [0, 3], "isnan(level)": [2, 4]}.items():
        found = of(spark, tmp_path, JOB.parsed(str(tmp_path), "--where", condition))[0]
        assert [(row["start_ns"] - START_NS) // MS for row in found] == at, condition
        assert all(row["end_ns"] - row["start_ns"] <= MS for row in found)


@pytest.mark.engines(SPARK, SAIL)
def test_each_gap_and_each_time_out_of_range(spark: "SparkSession", tmp_path: Path) -> None:
    """A run goes on over the borders of files, and ends where a file begins within the range."""
    levels = [5, 50, 60, 70, 5, 6, 90, 7, 8, 1, 2, 99]  # in files of three
    at_ms = [100 * n + 5000 * (n > 8) for n in range(len(levels))]
    seen = [Seen(ms, "tank/level", b"%d" % one) for ms, one in zip(at_ms, levels, strict=True)]
    capture_of(tmp_path, {"gw-a": seen}, files_each=4)
    tank = Quantity(("tank", "level"), unit="l", low=2, high=40, choices={99: "broken"})
    parser = argparse.ArgumentParser()
    JOB.add_arguments(parser, Files(quantities=lambda _: (tank,)))
    words = [str(tmp_path), "--topology", "plant.yaml"]
    found = of(spark, tmp_path, parser.parse_args([*words, "--episodes"]))[-1]
    shown = [
        (row["kind"], *((row[n] - START_NS) // MS for n in ("start_ns", "end_ns")), row["rows"])
        for row in found
    ]
    assert shown == [
        ("outside", 100, 300, 3), ("outside", 600, 600, 1), ("gap", 800, 5900, 0), ("outside", 5900, 5900, 1),
        ("outside", 6100, 6100, 1),
    ]  # fmt: skip
    assert [(row["min"], row["max"]) for row in found] == [(50, 70), (90, 90), (None, None), (1, 1), (99, 99)]
    assert {(row["pattern"], row["signal"], row["unit"]) for row in found} == {("tank", "level", "l")}
    (level,) = of(spark, tmp_path, parser.parse_args([*words, "--stats"]))[-1]
    assert (level["outside"], level["unit"], level["last_text"]) == (6, "l", "broken")


@pytest.mark.engines(SAIL)
def test_of_two_values_at_one_time_one_is_the_last_whole(spark: "SparkSession", tmp_path: Path) -> None:
    capture_of(tmp_path, {"gw-a": [Seen(5, "tank/level", one) for one in (b"7", b"low")]})
    (level,) = of(spark, tmp_path, JOB.parsed(str(tmp_path)))[-1]
    assert (level["last"], level["last_text"]) == (7.0, None)
    (level,) = of(spark, tmp_path, JOB.parsed(str(tmp_path), "--resample-ms", "1000"))[-1]
    assert (level["last"], level["last_text"]) == (7.0, None)


def test_what_is_left_out_of_a_database_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert JOB.prepare is not None
    path = written(tmp_path, CAR.replace("Gear : 0|3", "Gear 0|3") + "\x1b[2J")
    JOB.prepare(JOB.parsed("capture", "--dbc", f"can0={path}"))
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(".dbc: ")[2][:22] for line in said] == [
        "line 17: SG_ Gear 0|3@",
        "line 46: ?[2J: the fil",
    ]
    assert all(line.isprintable() for line in said)


def test_a_delta_log_that_cannot_be_written_is_told_before_the_table_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert JOB.prepare is not None
    with pytest.raises(
        PipelineError, match=r"--delta needs deltalake: run .*install 'buscoupler\[tables\]'$"
    ):
        JOB.prepare(JOB.parsed("capture", "--output", str(tmp_path / "table"), "--delta"))


def test_options_that_do_not_go_together_are_one_line(tmp_path: Path) -> None:
    assert JOB.prepare is not None
    for words, text in {
        ("--wide",): "--output TABLE",
        ("--delta",): "--output TABLE",
        ("--output", "x", "--wide", "--resample-ms", "5"): "--wide",
        ("--output", "capture/table"): "the table would be in the capture",
        ("--output", "."): "the capture is in it",
        ("--episodes", "--stats"): "a table of its own",
        ("--form", "temp"): "PATTERN=FORM",
        ("--form", "temp=hex"): "hex: a form is one of",
        ("--form", "temp=struct:Z"): "struct:Z",
        ("--dbc", str(tmp_path / "none.dbc")): "No such file",
    }.items():
        with pytest.raises(PipelineError, match=text):
            JOB.prepare(JOB.parsed("capture", *words))
