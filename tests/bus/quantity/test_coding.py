"""The coding of a value: choices, no value, bits, and writes that are strict."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.quantity.coding import Coding
from bus.quantity.forms import Form, Value, read, write
from bus.quantity.raw import Layout
from bus.quantity.scale import Scale

TENTHS = Coding(Layout("i16", 2), Scale.of(0.1), frozenset({0x8000}))
MODE = Coding(Layout("u16", 2), choices={0: "off", 1: "heat"})


def test_a_value_is_scaled_and_no_value_is_none() -> None:
    assert TENTHS.decode(b"\x00\xd6") == Decimal("21.4")
    assert TENTHS.decode(b"\x80\x00") is None
    assert Coding(Layout("u32", 4, "CDAB"), no_value=frozenset({1})).decode(b"\0\1\0\0") is None


def test_choices_stand_for_their_numbers_both_ways() -> None:
    assert MODE.decode(b"\0\1") == "heat"
    assert MODE.decode(b"\0\5") == 5
    assert MODE.encode("heat") == MODE.encode(1) == b"\0\1"
    switch = Coding(Layout("bool", 1), choices={0: "open", 1: "closed"})
    assert (switch.decode(b"\1"), switch.encode("closed"), switch.encode(1)) == ("closed", b"\1", b"\1")


@pytest.mark.parametrize("kind", ["ascii", "bits"])
@pytest.mark.parametrize(
    "text", ["0000000000000012", "1" + "0" * 15, "1e5", "+5", "-0", "007.50", "nan", "inf", ""]
)
def test_text_goes_into_a_device_as_it_was_written(kind: str, text: str) -> None:
    one = Coding(Layout("ascii" if kind == "ascii" else "bits", 16 if kind == "ascii" else 2))
    if kind == "bits" and (set(text) - {"0", "1"} or len(text) != 16):
        with pytest.raises(ValueError, match="16 characters"):
            one.encode(one.read("text", text.encode()))
    else:
        assert one.decode(one.encode(one.read("text", text.encode()))) == text


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_choice_that_looks_like_a_number_is_written_as_it_is_read(form: Form) -> None:
    speed = Coding(Layout("u16", 2), choices={0: "9600", 1: "19200", 2: "1", 3: "nan", 4: "1e3"})
    for raw in range(5):
        value = speed.decode(bytes((0, raw)))
        assert value is not None
        assert speed.encode(speed.read(form, write(form, value))) == bytes((0, raw))


def test_a_number_is_one_of_the_choices_where_no_bounds_say_what_may_be_written() -> None:
    with pytest.raises(ValueError, match="none of the choices"):
        MODE.encode(5)
    assert MODE.encode(5, 0, 9) == b"\0\5"


def test_a_choice_as_a_number_is_its_number() -> None:
    tenths = Coding(Layout("u16", 2), Scale.of(0.1), choices={99: "broken"})
    assert (tenths.decode(b"\0\x63"), tenths.decode(b"\0\x63", as_number=True)) == ("broken", Decimal("9.9"))


def test_one_bit_of_a_register() -> None:
    third = Coding(Layout("bool", 2), bit=3)
    assert third.decode(b"\0\x08") is True
    assert third.decode(b"\xff\xf7") is False


def test_a_float_of_32_bits_has_its_own_digits() -> None:
    assert Coding(Layout("f32", 4)).decode(bytes.fromhex("41ab3333")) == Decimal("21.4")
    assert Coding(Layout("f32", 4)).encode(Decimal("21.4")) == bytes.fromhex("41ab3333")


@given(
    st.binary(min_size=4, max_size=4), st.sampled_from([1, 0.1, 0.5, 1e-3]), st.sampled_from([0, -40, 0.5])
)
def test_a_float_that_was_scaled_and_written_as_text_is_the_same_again(
    data: bytes, scale: float, offset: float
) -> None:
    one = Coding(Layout("f32", 4), Scale.of(scale, offset))
    value = one.decode(data)
    assert value is not None
    text = write("text", value)
    if text.lstrip(b"-") not in (b"nan", b"inf"):
        back = one.encode(read("text", text))
        assert back == data or data == b"\x80\0\0\0"


@pytest.mark.parametrize(
    ("coding", "value", "why"),
    [
        (TENTHS, Decimal("21.45"), "in steps of 0.1"),
        (TENTHS, 30, "above 25"),
        (TENTHS, Decimal("4.9"), "below 5"),
        (TENTHS, True, "no numbers"),
        (TENTHS, "warm", "no number"),
        (MODE, "cool", "no number"),
        (Coding(Layout("u16", 2)), Decimal("7.5"), "not an integer"),
        (Coding(Layout("u16", 2)), Decimal("1e350"), "above"),
        (Coding(Layout("bool", 1)), 2, "neither"),
        (Coding(Layout("bool", 1)), "on", "no number"),
    ],
)
def test_a_write_is_not_rounded_and_stays_within_bounds(coding: Coding, value: Value, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        coding.encode(value, 5, 25)


@pytest.mark.parametrize("value", [Decimal("1e350"), Decimal("1e999"), Decimal("3.5e38")])
def test_a_float_too_large_is_refused(value: Decimal) -> None:
    with pytest.raises(ValueError, match=r"fit|range"):
        Coding(Layout("f32", 4)).encode(value)
