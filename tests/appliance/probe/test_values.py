"""Values of MessagePack as lines of text, and as JSON."""

import json
from math import inf, nan
from typing import Any

import msgpack
import pytest
from hypothesis import given

from appliance.probe.values import jsonable, words_of_value
from devices.syndication.answers import read
from tests.devices.syndication.wire.objects import objects


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Soda Hall", "Soda Hall"),
        ("Größe", "Größe"),
        ("", '""'),
        ("a\nb", '"a\\nb"'),
        ("\x9b2J", '"\\u009b2J"'),
        ("\udcff", '"\\udcff"'),
        (True, "true"),
        (None, "null"),
        (21.5, "21.5"),
        (["ä", "\x1b"], '["ä", "\\u001b"]'),
        (["ä", "\x9b"], '["\\u00e4", "\\u009b"]'),
        (["ä"], '["ä"]'),
        (b"\0\xff", '{"bytes": "00ff"}'),
        (nan, '{"float": "nan"}'),
        ([-inf], '[{"float": "-inf"}]'),
        (msgpack.ExtType(5, b"x"), '{"ext": 5, "bytes": "78"}'),
        (msgpack.Timestamp(1, 5), '{"time_ns": 1000000005}'),
        ({"a": {1: b""}}, '{"a": {"map": [[1, {"bytes": ""}]]}}'),
        ([([1], 2)], "[[[1], 2]]"),
    ],
)
def test_a_value_in_words(value: Any, text: str) -> None:
    assert words_of_value(value) == text


@given(objects)
def test_any_value_is_one_printable_line_and_strict_json(value: Any) -> None:
    heard = read(msgpack.packb(value))
    assert words_of_value(heard).isprintable()
    json.dumps(jsonable(heard), allow_nan=False)
