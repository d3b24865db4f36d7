"""Identifiers of J1939, and raw numbers that are no value."""

import pytest
from cantools.j1939 import pgn_from_frame_id

from bridges.items import EXTENDED
from bridges.protocols.dbc.j1939.pgn import (
    absent_from,
    absent_in_nmea,
    destination_of,
    identifier_of,
    is_of_nmea,
    pgn_of,
)


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


@pytest.mark.parametrize(
    ("pgn", "is_nmea"),
    [(0x1F000, True), (0x1FFFF, True), (0x1ED00, True), (0x1EF00, True), (0xFECA, False), (0x1E000, False)],
)
def test_messages_of_nmea_are_on_the_second_page(pgn: int, is_nmea: bool) -> None:
    assert is_of_nmea(pgn) == is_nmea


@pytest.mark.parametrize(
    ("bits", "is_signed", "choices", "absent"),
    [
        (8, False, {}, (254, 255, 256)),
        (16, True, {}, (32766, 32767, 32768)),
        (16, True, {32766: "Error"}, (32766, 32767, 32768)),
        (8, False, {254: "Other"}, (255, 255, 256)),
        (4, False, {}, (14, 15, 16)),
        (1, False, {}, (2, 2, 2)),
    ],
)
def test_the_two_greatest_numbers_are_no_values_in_nmea(
    bits: int, is_signed: bool, choices: dict[int, str], absent: tuple[int, int, int]
) -> None:
    assert absent_in_nmea(bits, is_signed, choices) == absent
