"""Identifiers of J1939, and raw numbers that are no value."""

import pytest
from cantools.j1939 import pgn_from_frame_id

from bridges.items import EXTENDED
from bridges.protocols.dbc.j1939.pgn import absent_from, destination_of, identifier_of, pgn_of


@pytest.mark.parametrize(
    "identifier", [0x18FEF100, 0x0CF00427, 0x18EA21FE, 0x1CEBFF03, 0x19F80100, 0x1DEF2102]
)
def test_a_pgn_is_as_cantools_has_it(identifier: int) -> None:
    assert pgn_of(identifier | EXTENDED) == pgn_of(identifier) == pgn_from_frame_id(identifier)  # type: ignore[no-untyped-call]


def test_a_pdu1_has_a_destination_and_a_pdu2_none() -> None:
    assert (destination_of(0x18EA21FE), destination_of(0x18FEF100)) == (0x21, 255)
    assert identifier_of(0xEA00, 0xFE, 0x21) == EXTENDED | 0x18EA21FE
    assert identifier_of(0xFEF1, 0x00, 0x21, 3) == EXTENDED | 0x0CFEF100


@pytest.mark.parametrize(
    ("bits", "error", "absent"),
    [
        (1, 2, 2),
        (2, 2, 3),
        (4, 14, 15),
        (8, 0xFE, 0xFF),
        (10, 0x3F8, 0x3FC),
        (12, 0xFE0, 0xFF0),
        (16, 0xFE00, 0xFF00),
        (32, 0xFE000000, 0xFF000000),
        (64, 1 << 64, 1 << 64),
    ],
)
def test_the_highest_numbers_are_no_values(bits: int, error: int, absent: int) -> None:
    assert absent_from(bits, {}) == (error, absent)


def test_a_database_may_have_another_text_for_an_error_of_few_bits() -> None:
    assert absent_from(4, {14: "Other", 15: "Not available"}) == (15, 15)
    assert absent_from(2, {2: "Error indicator"}) == (2, 3)
