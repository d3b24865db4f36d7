"""Tables as text: they fit the width, and every cell stays whole."""

import pytest

from pipeline.output.tables import cell, text

COLUMNS = ["kind", "from_gateway", "from", "to_gateway", "to", "n", "p50", "p99"]
LINE = "uart /dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A9"
ROWS = [
    ["bridge", "here", "bus office", "here", LINE, 25, 34.11, 3181.285],
    ["end to end", "here", LINE, "here", "bus office", 1234567, 10006.232, 10006.232],
]


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    shown = text(COLUMNS, ROWS, 240)
    assert shown == text(COLUMNS, ROWS)
    assert len(shown.splitlines()) == 3


@pytest.mark.parametrize("width", [80, 120])
def test_a_wide_table_fits_with_all_of_its_cells(width: int) -> None:
    shown = text(COLUMNS, ROWS, width)
    assert max(map(len, shown.splitlines())) <= width
    for word in ("bus office", LINE, "25", "34.110", "3181.285", "1234567", "end to end", "10006.232"):
        assert word in shown


def test_columns_with_one_value_are_named_once() -> None:
    shown = text(COLUMNS, ROWS, 120)
    assert shown.splitlines()[0] == "  in every row: from_gateway here, to_gateway here"
    assert shown.count("here") == 2


def test_a_column_that_is_empty_in_every_row_is_not_named() -> None:
    shown = text([*COLUMNS, "unit"], [[*row, ""] for row in ROWS], 120)
    assert shown.splitlines()[0] == "  in every row: from_gateway here, to_gateway here"
    only = text(["unit", *COLUMNS[:1]], [["", "a" * 70], ["", "b" * 70]], 60)
    assert "in every row" not in only


def test_a_single_wide_row_keeps_its_headings() -> None:
    shown = text(COLUMNS, ROWS[:1], 80)
    assert "in every row" not in shown
    assert all(name in shown for name in COLUMNS)


def test_the_cells_of_a_row_stand_below_their_headings() -> None:
    _, head, more, *lines = text(COLUMNS, ROWS, 120).splitlines()
    assert head.index("from") == lines[0].index("bus office") == lines[2].index(LINE)
    assert more.endswith("p99")
    assert [len(line) for line in lines[1::2]] == [len(more)] * 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"), (0.1, "0.100"), (-21.5, "-21.500"), (123456789.25, "123456789.250"),
        (0.0123, "0.0123"), (-0.000012, "-1.2e-05"), (5e-324, "4.94066e-324"), (1e9, "1e+09"),
        (-1.7e308, "-1.7e+308"), (float("inf"), "inf"), (float("nan"), "nan"),
    ],
)  # fmt: skip
def test_a_small_or_large_number_keeps_its_digits_and_its_place_to_the_right(
    value: float, shown: str
) -> None:
    assert cell("mean", value) == shown
    assert text(["mean", "x"], [[value, "a"], [1e300, "b"]]).splitlines()[1].startswith(f"  {shown:>6}")


@pytest.mark.parametrize("name", ["value", "last", "min", "max"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [(52.1234567, "52.1234567"), (3 * 0.1, "0.3"), (101.0, "101"), (1e300, "1e+300"), (float("nan"), "nan")],
)
def test_what_a_device_said_has_all_of_its_digits(name: str, value: float, shown: str) -> None:
    assert cell(name, value) == shown


def test_the_last_value_and_the_time_of_it_have_headings_of_their_own() -> None:
    assert text(["last_ns", "last"], [[0, 1.5]]).splitlines()[0].split() == ["last", "last", "value"]


@pytest.mark.parametrize("value", ["x", 1.5, 1 << 63, None, [1]])
def test_what_is_no_time_is_shown_as_it_is(value: object) -> None:
    """A query may call anything by the name of a time."""
    assert cell("ts_ns", value) == ("-" if value is None else cell("x", value))
