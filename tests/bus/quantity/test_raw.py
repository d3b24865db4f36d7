"""Types and orders of bytes: what a device sends is the value, and back, for every type and order."""

import struct
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.quantity.raw import Layout, Order, Type, arrange, check_order, pack, shortest, size_of, unpack

NUMBERS: list[Type] = [
    kind for kind in get_args(Type) if size_of(kind) and not kind.startswith(("bcd", "lin"))
]
DIGITS: list[Type] = [kind for kind in get_args(Type) if kind.startswith("bcd")]
FOUR: list[Order] = ["ABCD", "CDAB", "BADC", "DCBA"]


@pytest.mark.parametrize(
    ("order", "sent"),
    [
        ("AB", "AB"),
        ("BA", "BA"),
        ("CDAB", "AB"),
        ("BADC", "BA"),
        ("ABCD", "ABCD"),
        ("CDAB", "CDAB"),
        ("BADC", "BADC"),
        ("DCBA", "DCBA"),
        ("ABCDEFGH", "ABCDEFGH"),
        ("GHEFCDAB", "GHEFCDAB"),
        ("BADCFEHG", "BADCFEHG"),
        ("HGFEDCBA", "HGFEDCBA"),
        ("CDAB", "GHEFCDAB"),
        ("BADC", "BADCFEHG"),
        ("DCBA", "HGFEDCBA"),
        ("DCBA", "CBA"),
    ],
)
def test_an_order_names_the_letters_as_they_are_sent(order: Order, sent: str) -> None:
    layout = Layout("bits", len(sent), order)
    check_order(layout)
    assert arrange(sent.encode(), layout).decode() == "ABCDEFGH"[: len(sent)]


@given(st.sampled_from(NUMBERS), st.sampled_from(FOUR), st.binary(min_size=8, max_size=8))
def test_what_is_read_is_written_as_it_came(kind: Type, order: Order, data: bytes) -> None:
    size = size_of(kind)
    assert size
    layout = Layout(kind, size, "DCBA" if size % 2 and order != "ABCD" else order)
    value = unpack(data[:size], layout)
    if kind == "bool":
        assert value == any(data[:size])
    elif value == value:  # not NaN, which has many forms
        assert pack(value, layout) == data[:size]


@given(st.sampled_from(DIGITS), st.sampled_from(FOUR), st.text("0123456789", min_size=16, max_size=16))
def test_decimal_digits_are_read_and_written_as_they_came(kind: Type, order: Order, digits: str) -> None:
    size = size_of(kind)
    assert size
    layout = Layout(kind, size, "DCBA" if size % 2 and order != "ABCD" else order)
    sent = arrange(bytes.fromhex(digits[: 2 * size]), layout)
    assert unpack(sent, layout) == int(digits[: 2 * size])
    assert pack(int(digits[: 2 * size]), layout) == sent


@given(st.binary(min_size=2, max_size=2))
def test_a_number_of_pmbus_is_written_with_the_same_value(data: bytes) -> None:
    layout = Layout("linear11", 2)
    value = unpack(data, layout)
    assert unpack(pack(value, layout), layout) == value
    assert pack(value, layout) == pack(unpack(pack(value, layout), layout), layout)


@pytest.mark.parametrize(
    ("kind", "order"), [("u16", "ABCDEFGH"), ("u32", "AB"), ("u24", "CDAB"), ("u8", "BADC")]
)
def test_an_order_of_another_size_is_refused(kind: Type, order: Order) -> None:
    with pytest.raises(ValueError, match=order):
        check_order(Layout(kind, size_of(kind) or 0, order))


def test_text_keeps_its_words_in_place_and_loses_what_fills_it() -> None:
    assert unpack(b"ABCD  \0\0", Layout("ascii", 8, "CDAB")) == "ABCD"
    assert unpack(b"BADC", Layout("ascii", 4, "DCBA")) == "ABCD"
    assert pack("AB", Layout("ascii", 4)) == b"AB\0\0"
    assert unpack(b"\x80\x01", Layout("bits", 2)) == "1000000000000001"


@pytest.mark.parametrize("data", [b"\xff\xfe", b"A\x07", b"\0A"])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"ASCII|printable"):
        unpack(data, Layout("ascii", 2))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_shortest_decimal_of_32_bits_reads_back_and_none_is_shorter(value: float) -> None:
    text = shortest(value, "f32")
    as_bytes = struct.pack(">f", value)
    assert struct.pack(">f", float(text)) == as_bytes
    digits = len(text.partition("e")[0].replace(".", "").replace("-", "").strip("0"))
    if digits > 1:
        assert struct.pack(">f", float(f"{value:.{digits - 1}g}")) != as_bytes


def half(text: str) -> bytes:
    """Return a decimal as a float of 16 bits; nothing if it is too large for one."""
    try:
        return struct.pack(">e", float(text))
    except OverflowError:
        return b""


@pytest.mark.parametrize("negative", [0, 0x8000])
def test_the_shortest_decimal_of_16_bits_reads_back_and_none_is_shorter(negative: int) -> None:
    for whole in range(negative, negative + 0x7C00):
        as_bytes = struct.pack(">H", whole)
        text = shortest(struct.unpack(">e", as_bytes)[0], "f16")
        assert half(text) == as_bytes
        digits = len(text.partition("e")[0].replace(".", "").replace("-", "").strip("0"))
        if digits > 1:
            assert half(f"{float(text):.{digits - 1}g}") != as_bytes


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("u16", -1),
        ("u16", 1 << 16),
        ("i8", 128),
        ("f32", 1e39),
        ("u16", 1.5),
        ("bool", 2),
        ("bits", "10"),
        ("bcd8", 100),
        ("bcd16", -1),
        ("bcd16", 1.5),
        ("f16", 65_520),
    ],
)
def test_a_value_that_does_not_fit_is_refused(kind: Type, value: float | str) -> None:
    with pytest.raises(ValueError, match=r"fit|integer|neither|characters"):
        pack(value, Layout(kind, size_of(kind) or 2))


def test_a_single_bit_is_written_as_0_or_1_and_what_does_not_fit_is_told_with_the_bits() -> None:
    assert [pack(value, Layout("bool", 2)) for value in (0, 1)] == [b"\0\0", b"\0\1"]
    with pytest.raises(ValueError, match="65536 does not fit 16 bits"):
        pack(1 << 16, Layout("u16", 2))
    with pytest.raises(ValueError, match="does not fit 32 bits"):
        pack(1e39, Layout("f32", 4))
