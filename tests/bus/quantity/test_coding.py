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
    third = Coding(Layout("bool", 2), bits=(3, 3))
    assert third.decode(b"\0\x08") is True
    assert third.decode(b"\xff\xf7") is False


@pytest.mark.parametrize(
    ("coding", "data", "value"),
    [
        (Coding(Layout("u16", 2), bits=(8, 15)), b"\x12\x34", 0x12),
        (Coding(Layout("u16", 2), bits=(0, 7)), b"\x12\x34", 0x34),
        (Coding(Layout("u16", 2, "BA"), bits=(0, 7)), b"\x12\x34", 0x12),
        (Coding(Layout("i16", 2), Scale.of(0.0625), bits=(0, 12)), b"\xdf\xf8", Decimal("-0.5")),
        (Coding(Layout("i16", 2), bits=(8, 15)), b"\xfb\0", -5),
        (Coding(Layout("u32", 4, "CDAB"), bits=(12, 19)), b"\xa0\0\0\x0b", 0xBA),
        (Coding(Layout("u64", 8), bits=(63, 63)), b"\x80" + bytes(7), 1),
        (Coding(Layout("bool", 2), bits=(4, 7)), b"\xff\x0f", False),
        (Coding(Layout("bool", 2), bits=(4, 7)), b"\0\x20", True),
        (Coding(Layout("bcd8", 1), bits=(0, 6)), b"\xd9", 59),
        (Coding(Layout("u16", 2), choices={2: "boost"}, bits=(2, 3)), b"\0\x0b", "boost"),
    ],
)
def test_a_value_may_stand_in_some_bits(coding: Coding, data: bytes, value: Value) -> None:
    assert coding.decode(data) == value
    with pytest.raises(ValueError, match="others could change"):
        coding.encode(value)


@given(st.integers(0, 0xFFFF), st.integers(0, 15), st.integers(0, 15))
def test_bits_beside_a_value_are_not_in_it(whole: int, one: int, other: int) -> None:
    bits = min(one, other), max(one, other)
    width = bits[1] - bits[0] + 1
    data = whole.to_bytes(2, "big")
    alone = (whole >> bits[0]) % (1 << width)
    assert Coding(Layout("u16", 2), bits=bits).decode(data) == alone
    signed = Coding(Layout("i16", 2), bits=bits).decode(data)
    assert isinstance(signed, int)
    assert signed % (1 << width) == alone
    assert -(1 << width) <= 2 * signed < 1 << width


def test_no_value_of_some_bits_is_one_of_these_and_that_of_a_bool_one_of_its_register() -> None:
    low = Coding(Layout("i16", 2), no_value=frozenset({0xFF}), bits=(0, 7))
    assert (low.decode(b"\x12\xff"), low.decode(b"\xff\xfe")) == (None, -2)
    flag = Coding(Layout("bool", 2), no_value=frozenset({0xFFFF}), bits=(3, 3))
    assert (flag.decode(b"\xff\xff"), flag.decode(b"\0\xff")) == (None, True)


def test_digits_that_are_none_are_no_value_of_bcd_unless_that_is_said() -> None:
    digits = Coding(Layout("bcd16", 2), Scale.of(0.01), frozenset({0xFFFF}))
    assert (digits.decode(b"\x23\x04"), digits.decode(b"\xff\xff")) == (Decimal("23.04"), None)
    assert digits.encode(Decimal("23.04"), 0, 99) == b"\x23\x04"
    with pytest.raises(ValueError, match="not decimal digits"):
        digits.decode(b"\x23\x0a")
    with pytest.raises(ValueError, match="does not fit 4 digits"):
        digits.encode(100, 0, 1000)
    with pytest.raises(ValueError, match="does not fit 4 digits"):
        digits.encode(-1, -1, 1000)


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (b"\xd3\x30", "12.75"),
        (b"\xf8\x01", "0.5"),
        (b"\xe7\xff", "-0.0625"),
        (b"\x13\xe8", "4000"),
        (b"\0\0", "0"),
    ],
)
def test_a_number_of_pmbus_is_exact_both_ways(sent: bytes, value: str) -> None:
    power = Coding(Layout("linear11", 2))
    assert power.decode(sent) == Decimal(value)
    assert power.decode(power.encode(Decimal(value))) == Decimal(value)


@pytest.mark.parametrize(
    "value", [Decimal("12.3"), Decimal("0.50000000000000000001"), 1025, 1 << 26, Decimal("1e-9")]
)
def test_a_number_that_pmbus_does_not_have_is_refused(value: Decimal | int) -> None:
    with pytest.raises(ValueError, match="no number of linear11"):
        Coding(Layout("linear11", 2)).encode(value)


def test_a_float_of_16_bits_has_its_own_digits() -> None:
    half = Coding(Layout("f16", 2))
    assert half.decode(bytes.fromhex("4d5a")) == Decimal("21.4")
    assert half.encode(Decimal("21.4")) == bytes.fromhex("4d5a")
    assert half.decode(bytes.fromhex("fc00")) == float("-inf")
    with pytest.raises(ValueError, match="fit 16 bits"):
        half.encode(70_000)


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
