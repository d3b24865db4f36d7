"""The settings of values: what fits together, and what each makes of bytes."""

from decimal import Decimal
from typing import Any

import pytest

from bridges.protocols.values import Valued


def test_settings_make_a_coding_with_the_order_of_the_device_if_they_have_none() -> None:
    one = Valued(pattern=("a",), type="u32", scale=0.1)
    assert one.coding(4, "CDAB").decode(b"\0\1\0\0") == Decimal("0.1")
    assert Valued(pattern=("a",), type="u32", order="ABCD").coding(4, "CDAB").decode(b"\0\0\0\1") == 1


@pytest.mark.parametrize("number", ["-1", "15"])
def test_a_text_of_some_bits_is_that_of_a_number_with_their_sign(number: str) -> None:
    assert Valued(pattern=("a",), type="i16", bits=(4, 7), choices={number: "off"}).texts == {-1: "off"}


@pytest.mark.parametrize(
    ("settings", "size_bytes", "why"),
    [
        ({"type": "u32"}, 2, "has 4 bytes, not 2"),
        ({"order": "ABCDEFGH"}, 2, "is for 8 bytes"),
        ({"scale": 0}, 2, "not 0"),
        ({"scale": float("nan")}, 2, "finite"),
        ({"offset": float("inf")}, 2, "finite"),
        ({"type": "ascii", "scale": 2}, 8, "no scale"),
        ({"type": "bool", "offset": 1}, 1, "no scale"),
        ({"type": "f32", "choices": {"1": "on"}}, 4, "no choices"),
        ({"type": "linear11", "choices": {"1": "on"}}, 2, "no choices"),
        ({"type": "f32", "bits": (0, 7)}, 4, "type f32 has no bits"),
        ({"type": "bits", "bits": (0, 7)}, 2, "type bits has no bits"),
        ({"type": "linear11", "bits": (0, 7)}, 2, "type linear11 has no bits"),
        ({"bits": (7, 0)}, 2, "the lowest, then the highest, from 0 to 15"),
        ({"bits": (8, 16)}, 2, "from 0 to 15"),
        ({"type": "bool", "bit": 3, "bits": (3, 4)}, 2, "one of them"),
        ({"bits": (0, 7), "no_value": (256,)}, 2, "of the 8 bits alone, so at most 255"),
        ({"bits": (0, 1), "choices": {"4": "on"}}, 2, "4 does not fit 2 bits of type u16"),
        ({"type": "i16", "bits": (0, 7), "choices": {"0xFF": "on", "-1": "off"}}, 2, "same number"),
        ({"type": "bcd8", "choices": {"100": "on"}}, 1, "100 does not fit type bcd8"),
        ({"type": "bcd8", "bits": (0, 6), "choices": {"80": "on"}}, 1, "80 does not fit 7 bits of type bcd8"),
        ({"type": "bcd16"}, 4, "has 2 bytes, not 4"),
        ({"bit": 3}, 2, "for type bool"),
        ({"type": "bool", "bit": 16}, 2, "0 to 15"),
        ({"choices": {"1": "on", "0x2": "on"}}, 2, "same text"),
        ({"choices": {"1": "on", "0x1": "off"}}, 2, "same number"),
        ({"choices": {"0x10000": "on"}}, 2, "65536 does not fit type u16"),
        ({"choices": {"-1": "on"}}, 2, "-1 does not fit"),
        ({"type": "i16", "choices": {"-32769": "on"}}, 2, "-32769 does not fit"),
        ({"type": "i16", "choices": {"0xFFFF": "on", "-1": "off"}}, 2, "same number"),
        ({"type": "bool", "choices": {"2": "on"}}, 2, "2 does not fit"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], size_bytes: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Valued(pattern=("a",), **settings).check_value(size_bytes)


def test_a_choice_of_a_signed_type_is_meant_as_it_is_sent() -> None:
    one = Valued(pattern=("a",), type="i16", choices={"0xFFFF": "none", "-2": "wait", "0x7fff": "most"})
    one.check_value(2)
    assert [one.coding(2).decode(data) for data in (b"\xff\xff", b"\xff\xfe", b"\x7f\xff")] == [
        "none",
        "wait",
        "most",
    ]
    assert one.quantity("text").choices == {-1: "none", -2: "wait", 32767: "most"}
