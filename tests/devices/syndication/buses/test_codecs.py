"""The codecs: what each makes of data and of values, and that nothing from outside makes them raise."""

import json
import math
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.syndication.bounds import Bounds
from devices.syndication.buses.codecs import Codec, codec
from devices.syndication.buses.rules import Coded
from devices.syndication.wire.walk import Walk
from tests.devices.syndication.wire.objects import objects


def made(name: str) -> Codec:
    """Return a codec by its name, or by the format of a struct."""
    return codec(Coded(codec="struct", format=name) if name[0] in "<>!" else Coded(codec=name))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "data", "value"),
    [
        ({"type": "u16"}, b"\1\2", 258),
        ({"type": "i16", "scale": 0.1}, b"\xff\x85", -12.3),
        ({"type": "u16", "scale": 0.1}, b"\0\x64", 10),
        ({"type": "f32", "order": "CDAB"}, b"\x33\x33\x41\xab", 21.4),
        ({"type": "u64"}, b"\xff" * 8, 2**64 - 1),
        ({"type": "f16"}, b"\x4d\x5a", 21.4),
        ({"type": "bcd32", "scale": 0.01, "order": "CDAB"}, b"\x45\x67\x01\x23", 12345.67),
        ({"type": "linear11"}, b"\xd3\x30", 12.75),
        ({"type": "bool"}, b"\1", True),
        ({"type": "ascii"}, b"abc", "abc"),
        ({"type": "bits"}, b"\x81", "10000001"),
    ],
)
def test_a_value_is_coded_as_in_a_register(settings: dict[str, Any], data: bytes, value: Any) -> None:
    one = codec(Coded(codec="value", **settings))
    decoded = one.decode(data)
    assert decoded is not None
    assert msgpack.unpackb(decoded) == value
    assert one.encode(decoded) == data
    assert one.reason == "no value"
    for wrong in (b"\xc0", b"\x90", msgpack.packb(b"x"), b"\xff\xff"):
        assert one.encode(wrong) is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"codec": "value"}, "has a type"),
        ({"codec": "json", "type": "u16"}, "has a type"),
        ({"codec": "raw", "scale": 2}, "are of codec: value"),
        ({"codec": "value", "type": "u16", "scale": 0}, "not 0"),
        ({"codec": "value", "type": "ascii", "scale": 2}, "no scale"),
        ({"codec": "value", "type": "u16", "order": "ABCDEFGH"}, "is for 8 bytes"),
    ],
)
def test_words_of_a_value_that_do_not_fit_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Coded(**settings)


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("raw", b"", b""),
        ("raw", b"\xff\x00", b"\xff\x00"),
        ("utf-8", b"", ""),
        ("utf-8", "21.5 °C".encode(), "21.5 °C"),
        ("json", b'{"t":21.5,"on":[true,null]}', {"t": 21.5, "on": [True, None]}),
        ("json", b"18446744073709551615", 2**64 - 1),
        ("json", b'"\xc3\xa9"', "é"),
        ("msgpack", b"\x93\x01\xa1a\xc0", [1, "a", None]),
        ("<f", b"\x00\x00\xac\x41", 21.5),
        (">HhB", b"\x01\x02\xff\xff\x07", [258, -1, 7]),
        ("!3s?", b"abc\x01", [b"abc", True]),
        ("<2xB", b"\x00\x00\x05", 5),
    ],
)
def test_data_is_a_value_and_the_value_is_that_data(name: str, data: bytes, value: Any) -> None:
    decoded = made(name).decode(data)
    assert decoded is not None
    assert msgpack.unpackb(decoded) == value
    assert made(name).encode(decoded) == data


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("utf-8", b"\xff"),
        ("utf-8", b"\xed\xa0\x80"),
        ("json", b""),
        ("json", b"21.5 C"),
        ("json", b"NaN"),
        ("json", b"[1e999]"),
        ("json", b"18446744073709551616"),
        ("json", b'"\\ud800"'),
        ("json", b"[" * 33 + b"]" * 33),
        ("json", b"[" * 2048),
        ("json", b"\xef\xbb\xbf1"),
        ("msgpack", b""),
        ("msgpack", b"\xc1"),
        ("msgpack", b"\x01\x01"),
        ("msgpack", b"\xc6\x40\x00\x00\x00"),
        ("msgpack", b"\x91" * 40 + b"\x01"),
        ("<f", b"\x00\x00\xac"),
        ("<f", b"\x00\x00\xac\x41\x00"),
    ],
)
def test_what_is_not_of_the_codec_is_none(name: str, data: bytes) -> None:
    assert made(name).decode(data) is None
    assert made(name).reason == ("no struct" if name == "<f" else f"no {name}")


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("raw", "é", "é".encode()),
        ("raw", 21.5, None),
        ("utf-8", b"ok", b"ok"),
        ("utf-8", b"\xff", None),
        ("utf-8", 21.5, b"21.5"),
        ("utf-8", -4, b"-4"),
        ("utf-8", True, b"true"),
        ("utf-8", None, None),
        ("utf-8", [1], None),
        ("utf-8", math.nan, None),
        ("json", b"bytes", None),
        ("json", math.inf, None),
        ("json", {1: "a"}, b'{"1":"a"}'),
        ("json", {b"a": 1}, None),
        ("json", msgpack.ExtType(4, b"x"), None),
        ("json", msgpack.Timestamp(1), None),
        ("<f", 3, b"\x00\x00\x40\x40"),
        ("<f", 1e300, None),
        ("<f", "3", None),
        ("<f", [3], None),
        ("<?", {}, None),
        ("<B", 256, None),
        ("<B", 1.0, None),
        ("<BB", [1, 2], b"\x01\x02"),
        ("<BB", [1], None),
        ("<BB", 1, None),
        ("<2s", "ab", b"ab"),
    ],
)
def test_a_value_has_a_form_or_none(name: str, value: Any, data: bytes | None) -> None:
    assert made(name).encode(msgpack.packb(value)) == data


CODECS = st.sampled_from(["raw", "utf-8", "json", "msgpack", "<f", ">HhB", "<4s", "!e?c"])


@given(CODECS, st.binary(max_size=64) | st.text(max_size=20).map(str.encode))
def test_any_data_is_one_object_within_the_bounds_or_none(name: str, data: bytes) -> None:
    decoded = made(name).decode(data)
    if decoded is not None:
        walk = Walk(Bounds())
        assert walk.go(decoded)
        assert walk.at == len(decoded)


@given(CODECS, objects.map(msgpack.packb) | st.binary(max_size=64))
def test_any_value_has_a_form_or_none(name: str, value: bytes) -> None:
    data = made(name).encode(value)
    assert data is None or isinstance(data, bytes)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(), st.lists))
def test_json_is_that_of_the_standard_library(value: Any) -> None:
    decoded = made("json").decode(json.dumps(value).encode())
    assert decoded is None or msgpack.unpackb(decoded) == value
