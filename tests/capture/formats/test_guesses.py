"""Guesses at what no heading tells of a table."""

import pytest

from capture.formats.guesses import guessed
from capture.formats.heading import heading_of
from capture.formats.source import LeftOut

CANOPEN = ["181", "182", "183", "201", "281", "381", "481", "581", "601", "701"]
CASES: dict[str, tuple[str, list[str], int, bool]] = {
    "letters": ("id", ["123", "18FEF100"], 16, True),
    "zeros": ("id", ["0123", "124"], 16, True),
    "cross": ("id", ["0x123", "0x124"], 16, True),
    "cross and bare": ("id", ["0x123", "291"], 16, False),
    "few": ("id", ["100", "200"], 16, False),
    "CANopen": ("id", CANOPEN, 16, False),
    "four digits": ("id", ["291", "2047"], 10, False),
    "ten digits": ("id", ["291", "2147483647"], 10, False),
    "many without a letter": ("id", [str(number) for number in range(256, 276)], 10, False),
    "told hex": ("id_hex", ["291", "2047"], 16, True),
    "told decimal": ("id_dec", ["18FE"], 10, True),
    "nothing": ("id", [], 16, True),
    "no number": ("id", ["?", "", "x"], 16, True),
}


@pytest.mark.parametrize("case", CASES)
def test_the_base_of_identifiers(case: str) -> None:
    name, cells, base, is_sure = CASES[case]
    heading, told = heading_of(f"time_s,{name},data".encode()), LeftOut()
    assert heading is not None
    found = guessed(heading, [f"1.0,{cell},AB".encode() for cell in cells], told)
    assert found.id_base == base
    assert bool(told.notes) != is_sure


def test_a_standard_identifier_that_is_too_large_in_hex_is_decimal() -> None:
    heading = heading_of(b"time_s,id,extended,data")
    assert heading is not None
    for mark, base in (("0", 10), ("false", 10), ("std", 10), ("1", 16), ("", 16)):
        assert guessed(heading, [f"1.0,900,{mark},AB".encode(), b"1.0", b"1.0,1"], LeftOut()).id_base == base


@pytest.mark.parametrize(
    "cell",
    ["e5", ".", "1e99", "-1", "nan", "0" * 70, "1,5.5", "9" * 19 + "." + "9" * 40, "1E-99", '"', "\xff"],
)
def test_odd_first_rows_break_nothing(cell: str) -> None:
    heading = heading_of(b"time,id,extended,data")
    assert heading is not None
    line = f"{cell},{cell},{cell},{cell}".encode("latin-1")
    for lines in ([line], [line, line], [b"", line, b",,,"]):
        found = guessed(heading, lines, LeftOut())
        assert found.unit_ns > 0
        assert found.id_base in (10, 16)
