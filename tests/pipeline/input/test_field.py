"""A file of the field as a capture, which is there while a job works on it."""

import argparse
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from capture.files import CaptureError, listed
from pipeline.errors import PipelineError
from pipeline.input import field, read

LOG = "(1700000000.000000) can0 123#1122\n(1700000000.010000) can0 321#\nno frame\n"


def asked(place: Path, **more: object) -> argparse.Namespace:
    return argparse.Namespace(**{"directory": str(place), "remote": "", "since_last": False} | more)


def test_a_file_is_a_directory_for_the_block_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    log, said, warned = tmp_path / "drive.log", list[str](), list[str]()
    log.write_text(LOG)
    with field.imported(asked(log), False, said.append, warned.append) as where:
        assert len(listed(Path(read.root(where)))) == 1
    assert not Path(where).exists()
    assert said == [f"{log}: candump, 2 rows"]
    assert warned == [f"{log}: left out: 1 lines that are none of candump -L, such as 'no frame'"]


def test_a_directory_and_a_url_are_taken_as_they_are(tmp_path: Path) -> None:
    for place in (str(tmp_path), "s3://plant/capture", str(tmp_path / "missing")):
        with field.imported(argparse.Namespace(directory=place), True, print, print) as where:
            assert where == place


def test_what_needs_a_directory_that_stays_says_how_to_get_one(tmp_path: Path) -> None:
    log = tmp_path / "drive.log"
    log.write_text(LOG)
    for options, follows in (
        (asked(log), True),
        (asked(log, remote="sc://a"), False),
        (asked(log, since_last=True), False),
    ):
        with pytest.raises(PipelineError, match="need a directory: capture import makes one"):
            with field.imported(options, follows, print, print):
                pass


def test_a_file_of_no_format_is_one_line_before_an_engine_starts(tmp_path: Path) -> None:
    for name, text, told in (
        ("x", "nothing", "not a file of a format that is read"),
        ("x", "", "empty"),
        ("x.blf", "", "empty"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(CaptureError, match=f"{name}: {told}"):
            with field.imported(asked(tmp_path / name), False, print, print):
                pass
