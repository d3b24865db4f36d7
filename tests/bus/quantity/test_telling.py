"""The words for values of a quantity, and for the quantity."""

from dataclasses import replace
from struct import pack

import pytest

from bus.quantity.forms import Form
from bus.quantity.quantity import Quantity
from bus.quantity.telling import line, told

SPEED = Quantity(("car", "Speed"), unit="rpm", low=0, high=8000.5)
MODE = Quantity(("car", "Mode"), choices={0: "Off", 1: "On"}, writable=True)


@pytest.mark.parametrize(
    ("form", "data", "text", "number"),
    [
        ("text", b"12.50", "12.5", 12.5),
        ("text", b"Drive", "Drive", None),
        ("text", b"nan", "", None),
        ("text", b"1e999", "1e999", None),
        ("number", pack(">d", 3), "3", 3.0),
        ("number", b"123", "", None),
        ("json", b'{"v": 4, "unit": "V", "t": 5}', "4", 4.0),
        ("json", b'{"v": true}', "1", 1.0),
        ("json", b'{"v": null}', "", None),
    ],
)
def test_a_value_is_told_as_text_and_number(form: Form, data: bytes, text: str, number: float | None) -> None:
    assert told(Quantity(("a",), form), data) == (text, number)


def test_text_that_looks_like_a_number_is_told_as_it_is() -> None:
    assert told(Quantity(("a",), is_text=True), b"0012345") == ("0012345", None)
    assert told(Quantity(("a",), choices={1: "9600"}), b"9600") == ("9600", None)


@pytest.mark.parametrize("data", [rb'"\ud800 "', rb'{"v": "a\udfff"}', b"\xff", b'"\xff"'])
def test_half_a_character_is_no_value_in_any_form(data: bytes) -> None:
    """It once ended the status of a gateway, and the reading of a command."""
    for form in ("text", "number", "json"):
        text, number = told(Quantity(("a",), form), data)
        assert text.encode() in (b"", data)
        assert number is None


def test_a_quantity_is_a_line() -> None:
    assert line(SPEED) == "car/Speed  rpm  0 to 8000.5"
    assert line(MODE) == "car/Mode  (0 Off, 1 On)  command"
    assert line(Quantity(("a",), high=3)) == "a  to 3"
    assert line(Quantity(("a",), unit="\x1bV")) == "a  ?V"
    assert line(Quantity(("a",), low=3, choices=dict(enumerate("abcdefghi")))).endswith("7 h, ...)")


def test_a_place_where_any_token_may_stand_is_a_word_in_capitals() -> None:
    """It was the token that a database has there: 0x000000fe for the source of J1939."""
    one = Quantity(("truck", "EEC1", 254, "Rpm"), unit="rpm", any_at=2, any_word="SOURCE")
    assert line(one) == "truck/EEC1/SOURCE/Rpm  rpm"
    assert line(replace(one, any_at=None)) == "truck/EEC1/0x000000fe/Rpm  rpm"
