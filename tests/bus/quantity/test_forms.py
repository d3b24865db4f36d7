"""The forms of values: what is written is read back, and strictly."""

import json
import struct
from contextlib import suppress
from decimal import Decimal
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.quantity.forms import Form, read, text_of, write

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_text_of_a_double_reads_back_exactly_and_is_not_longer_than_pythons(value: float) -> None:
    text = text_of(value)
    assert struct.pack(">d", float(text)) == struct.pack(">d", value)
    assert len(text) <= len(repr(value)) + 20  # 20 zeros, instead of an exponent
    assert "e+" not in text


@given(st.integers(-(1 << 63), (1 << 64) - 1), st.sampled_from(["text", "json"]))
def test_an_integer_of_64_bits_is_exact(value: int, form: Form) -> None:
    assert read(form, write(form, value)) == value


@given(FINITE, st.sampled_from(["text", "number", "json"]))
def test_each_form_reads_what_it_writes(value: float, form: Form) -> None:
    back = read(form, write(form, value, "V", 1.5))
    assert struct.pack(">d", float(back)) == struct.pack(">d", value) or value == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "1"),
        (False, "0"),
        (nan, "nan"),
        (inf, "inf"),
        (-inf, "-inf"),
        (Decimal("21.40"), "21.4"),
        (1e21, "1e21"),
        (1e20, "100000000000000000000"),
        (-1.25e-8, "-1.25e-8"),
        ("off", "off"),
    ],
)
def test_text_of_a_value(value: Decimal | float | str, text: str) -> None:
    assert write("text", value) == text.encode()


def test_json_has_value_unit_and_time_and_is_json_whatever_the_value() -> None:
    assert write("json", "süß", "°C") == '{"v":"süß","unit":"°C","t":0.0}'.encode()
    assert json.loads(write("json", Decimal("21.4"), "°C", 1700000000.25)) == {
        "v": 21.4,
        "unit": "°C",
        "t": 1700000000.25,
    }
    for value in (nan, inf, -inf):
        assert json.loads(write("json", value))["v"] is None
    assert json.loads(write("json", True))["v"] is True
    assert json.loads(write("json", 'a"b'))["v"] == 'a"b'
    assert b"18446744073709551615" in write("json", (1 << 64) - 1)


def test_a_number_has_eight_bytes_in_network_order() -> None:
    assert write("number", Decimal("21.4")) == struct.pack(">d", 21.4)
    assert write("number", True) == struct.pack(">d", 1)
    assert isnan(struct.unpack(">d", write("number", nan))[0])


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("text", b"nan"),
        ("text", b"-inf"),
        ("text", b"+Infinity"),
        ("text", b"\xff"),
        ("number", b"1"),
        ("number", struct.pack(">d", nan)),
        ("number", struct.pack(">d", inf)),
        ("json", b"{}"),
        ("json", b'{"v": null}'),
        ("json", b'{"v": [1]}'),
        ("json", b"NaN"),
        ("json", b"[" * 2000),
        ("json", b'{"v": 1'),
        ("json", b"1" * 2000),
        ("json", b"1e9999999"),
        ("json", b"\xff"),
        ("json", b""),
    ],
)
def test_what_is_no_finite_value_is_refused_with_a_reason(form: Form, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"finite|UTF-8|bytes|JSON|long"):
        read(form, data)


@given(st.sampled_from(["text", "number", "json"]), st.binary(max_size=64))
def test_nothing_but_a_value_error_comes_of_any_data(form: Form, data: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(read(form, data), int | Decimal | str)


def test_text_that_is_no_number_stays_text() -> None:
    assert read("text", b"heat") == "heat"
    assert read("text", b"1_000") == "1_000"
    assert read("text", b"21.40") == Decimal("21.4")
    assert read("json", b'{"v": 7, "unit": "V", "t": 1}') == 7
    assert read("json", b"7") == 7
