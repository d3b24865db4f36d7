"""Cells of a block: where they are, and the numbers and bytes in them."""

import base64
from random import Random

import numpy as np
import pytest

from capture.formats.cells import DECIMAL, HEX, Cells, Column, matrix, numbers


def texts(cells: Cells, place: int) -> list[str]:
    column = cells.column(place)
    return [cells.text(column, at) for at in range(len(cells))]


def test_cells_are_found_in_lines_of_any_length() -> None:
    cells = Cells(b'a,b,c\r\n\r\n\nd\n,e,,\n"x, y", z ,""\n', b",")
    assert [cells.line(at) for at in range(len(cells))] == [b"a,b,c", b"d", b",e,,", b'"x, y", z ,""']
    assert texts(cells, 0) == ["a", "d", "", "x, y"]
    assert texts(cells, 1) == ["b", "", "e", "z"]
    assert texts(cells, 2) == ["c", "", "", ""]
    assert texts(cells, 9) == ["", "", "", ""]


def test_a_quote_without_another_ends_with_its_line() -> None:
    cells = Cells(b'1,"2,3\n4,5,6\n', b",")
    assert texts(cells, 1) == ["2,3", "5"]


@pytest.mark.parametrize(
    ("table", "base", "text", "value"),
    [
        (DECIMAL, 10, b"1", 1), (DECIMAL, 10, b"0012", 12), (DECIMAL, 10, b"12345", None),
        (DECIMAL, 10, b"1A", None), (DECIMAL, 10, b"", None), (HEX, 16, b"fFe", 0xFFE),
        (HEX, 16, b"0x1", None),
    ],
)  # fmt: skip
def test_a_number_has_so_many_digits_and_nothing_else(
    table: np.typing.NDArray[np.uint8], base: int, text: bytes, value: int | None
) -> None:
    octets = np.frombuffer(b"7," + text + b",9", np.uint8)
    starts, ends = np.array([0, 2, len(octets) - 1]), np.array([1, 2 + len(text), len(octets)])
    found, good = numbers(octets, Column(starts, ends), 4, table, base)
    assert good.tolist() == [True, value is not None, True]
    assert [*found[[0, 2]]] == [7, 9]
    assert value is None or found[1] == value


HEXES = {
    "": b"", "AB": b"\xab", "ABcd": b"\xab\xcd", "AB CD": b"\xab\xcd", "0xAB 0XCD": b"\xab\xcd",
    "1 2": b"\1\2", "0x1": b"\1", "AB-CD:EF": b"\xab\xcd\xef", "[AB, CD]": b"\xab\xcd", "0xABCD": b"\xab\xcd",
    "5": b"\5", "ABC": None, "AB CDE": None, "GG": None, "xAB": None, "1x2": None, "AB?CD": None,
}  # fmt: skip
DECIMALS = {"": b"", "1 23 255": b"\1\x17\xff", "[0 1]": b"\0\1", "256": None, "1000": None, "1 A": None}


@pytest.mark.parametrize("before", ["7", "10"])
@pytest.mark.parametrize(("base", "cases"), [(16, HEXES), (10, DECIMALS)])
def test_bytes_in_digits(base: int, cases: dict[str, bytes | None], before: str) -> None:
    """Alone, and in a block with all others."""
    for some in (list(cases), *([word] for word in cases)):
        cells = Cells("".join(f"{before};{word};\n" for word in some).encode(), b";")
        found = cells.in_text(cells.column(1), base)
        assert found.good.tolist() == [cases[word] is not None for word in some]
        rows = matrix(found, found.counts)
        for row, count, word in zip(rows, found.counts.tolist(), some, strict=True):
            assert cases[word] in (None, row[:count].tobytes())


@pytest.mark.parametrize("base", [10, 16])
def test_a_block_without_lines_has_no_bytes(base: int) -> None:
    cells = Cells(b"\n", b";")
    assert len(cells.in_text(cells.column(1), base).good) == 0


def test_bytes_in_base64() -> None:
    random = Random(1)
    data = [random.randbytes(size) for size in range(20)]
    words = [base64.b64encode(one).decode() for one in data]
    bad = ["A", "AB=", "A?==", "====", "AB=C"]
    mixed = [word for pair in zip(words, bad * 4, strict=True) for word in pair]
    for some in (words, mixed):
        cells = Cells("".join(f"{word},7\n" for word in some).encode(), b",")
        found = cells.in_base64(cells.column(0))
        assert found.good.tolist() == [word not in bad for word in some]
        rows = matrix(found, found.counts)
        good = [
            row[:size].tobytes()
            for row, size, is_one in zip(rows, found.counts, found.good, strict=True)
            if is_one
        ]
        assert good == data
