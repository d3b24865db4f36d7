"""The files of a capture and their order, and the errors for other files."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from capture import files
from capture.files import CaptureError
from capture.reader import read
from pipeline.input import read as pipeline
from pipeline.input import sound
from tests.helpers import ROOT
from tests.helpers.rights import LIMITED, needs_setpriv

DAYS = ("2026-01-01", "2026-01-02")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Make files of two gateways on two days, and some that are no capture files."""
    for day in DAYS:
        for gateway in ("b", "a"):
            path = files.capture_file(tmp_path, day, gateway, files.name_of(int(day[-1]), 0))
            path.parent.mkdir(parents=True)
            path.touch()
            path.with_name(f".{path.name}.tmp").touch()
            path.with_name(f"_{path.name}").touch()
    (tmp_path / "copy.parquet").touch()
    return tmp_path


def test_files_are_listed_by_gateway_and_time(capture: Path) -> None:
    found = [(files.gateway_of(path), int(files.boot_of(path))) for path in files.listed(capture)]
    assert found == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert files.listed(capture / files.CAPTURE) == files.listed(capture)


def test_a_day_is_a_directory_of_files_too(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = capture / files.CAPTURE / f"date={DAYS[0]}"
    assert [files.gateway_of(path) for path in files.listed(day)] == ["a", "b"]
    monkeypatch.chdir(day / "gateway=a")
    assert [files.gateway_of(path) for path in files.listed(Path())] == ["a"]


def test_jobs_read_the_directory_of_the_days(capture: Path) -> None:
    days = str(capture / files.CAPTURE)
    assert pipeline.root(str(capture)) == pipeline.root(days) == days


@pytest.mark.parametrize(
    ("directory", "text"),
    [
        ("nowhere", "there is no such file or directory"),
        ("empty", "no capture in it"),
        ("begun", "no finished file yet"),
    ],
)
def test_both_readers_complain_alike(tmp_path: Path, directory: str, text: str) -> None:
    (tmp_path / "empty").mkdir()
    files.journal_directory(tmp_path / "begun", "gw").mkdir(parents=True)
    said = []
    for reads in (lambda: list(read(tmp_path / directory)), lambda: pipeline.root(str(tmp_path / directory))):
        with pytest.raises(CaptureError, match=text) as complaint:
            reads()
        said.append(str(complaint.value))
    assert said[0] == said[1]


@needs_setpriv
def test_a_directory_that_cannot_be_listed_is_told(capture: Path) -> None:
    """What it holds would be missing in silence, and an audit of the rest could be green."""
    closed = capture / files.CAPTURE / "date=2026-11-22" / "gateway=closed"
    closed.mkdir(mode=0, parents=True)
    code = "from pathlib import Path; from capture.files import finished; finished(Path({!r}))"
    command = [*LIMITED, sys.executable, "-c", code.format(str(capture))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.endswith(f"{closed}: cannot be listed: Permission denied\n")


def test_files_are_checked_alike(capture: Path) -> None:
    with pytest.raises(CaptureError, match="unreadable") as complaint:
        list(read(capture))
    bad = sound.look(capture, thorough=False).bad
    assert bad[0].text == str(complaint.value)


def test_two_captures_are_not_one(capture: Path) -> None:
    other = files.capture_file(capture / "more", DAYS[0], "a", files.name_of(1, 0))
    other.parent.mkdir(parents=True)
    other.touch()
    with pytest.raises(Exception, match="several captures in it"):
        pipeline.root(str(capture))
