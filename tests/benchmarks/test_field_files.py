"""Imports of files of the field are measured by format and number of frames."""

import re

import pytest

pytest.importorskip("pyarrow")

from benchmarks.field_files import numbers, table


def test_each_format_has_a_line_for_each_number_of_frames() -> None:
    lines = [*table(["candump", "trc"], numbers("100,200"))][2:]
    assert [line.split(" | ")[:2] for line in lines] == [
        ["| candump", "100"], ["| candump", "200"], ["| trc", "100"], ["| trc", "200"],
    ]  # fmt: skip
    assert all(re.fullmatch(r"\| .*?(\| [\d,]+ ){5}\|", line) for line in lines)
