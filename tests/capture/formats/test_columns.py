"""Frames one at a time, made to columns."""

import pytest

from capture.formats.columns import Builder, classic


@pytest.mark.parametrize(
    ("code", "size", "mark"), [(0, 0, 0), (8, 8, 0), (9, 8, 9), (15, 8, 15), (16, 16, 0), (255, 255, 0)]
)
def test_a_length_code_above_15_is_none_and_gives_no_frame(code: int, size: int, mark: int) -> None:
    assert classic(code) == (size, mark)
    assert Builder().add(1, "can0", False, 0x123, *classic(code), False, b"") == (code <= 15)
