"""JSON bodies: what is read, and that no text costs more than its bounds."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.catalog.body import pack_object, read_objects
from devices.dbp.catalog.bounds import Bounds
from tests.devices.dbp.catalog.strategies import objects

WIDE = Bounds(depth=100, items=10000)


def read(text: str | bytes, **bounds: Any) -> dict[str, Any] | None:
    return read_objects(text if isinstance(text, bytes) else text.encode(), Bounds(**bounds))


@given(objects)
def test_an_object_comes_back(fields: dict[str, Any]) -> None:
    assert read_objects(pack_object(fields), WIDE) == fields


@given(st.lists(objects, min_size=1, max_size=3), st.sampled_from(["", " ", "\n\t"]))
def test_objects_back_to_back_are_one(parts: list[dict[str, Any]], blank: str) -> None:
    merged = {key: value for part in parts for key, value in part.items()}
    assert read_objects(blank.join(json.dumps(p) for p in parts).encode() + blank.encode(), WIDE) == merged


def test_of_equal_keys_the_last_holds() -> None:
    assert read('{"a": 1, "a": 2}') == {"a": 2}
    assert read('{"a": 1, "b": 1} {"a": 2}') == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    "text",
    ["", " ", "[]", "5", '"a"', "null", "{", "}", "{}x", "{},{}", "x{}", "{} []", '{"a": NaN}',
     '{"a": -Infinity}', '{"a": 1e999}', '{"a": -1e999}', "{'a': 1}", '{"a": 1,}', '{1: 1}',
     '{"a": "\x01"}', '{"a": ' + "9" * 5000 + "}", b'{"a": "\xff"}',
     '{"a": 1}'.encode("utf-16"), '{"a": 1}'.encode("utf-32-le"), '\ufeff{"a": 1}', "{}\0"],
)  # fmt: skip
def test_what_is_no_object(text: str | bytes) -> None:
    assert read(text) is None


def test_numbers_stay_as_exact_as_python_has_them() -> None:
    assert read('{"a": 9007199254740993, "b": 1.5, "c": -0.0}') == {"a": 2**53 + 1, "b": 1.5, "c": -0.0}
    found = read('{"c": -0.0}')
    assert found is not None
    assert math.copysign(1, found["c"]) == -1


def nested(depth: int) -> str:
    return '{"a": ' * (depth - 1) + "{}" + "}" * (depth - 1)


def test_depth_is_bounded() -> None:
    assert read(nested(5), depth=5) is not None
    assert read(nested(6), depth=5) is None
    assert read('{"a": ' + "[" * 5, depth=5) is None
    assert read('{"a": "[[[[[[[[", "b": "\\"[[[[[["}', depth=1) == {"a": "[[[[[[[[", "b": '"[[[[[['}


def test_items_are_bounded() -> None:
    assert read('{"a": [1, 2, 3]}', items=4) == {"a": [1, 2, 3]}
    assert read('{"a": [1, 2, 3]}', items=3) is None
    assert read('{"a": ",,,,,,"}', items=1) == {"a": ",,,,,,"}
    assert read("{}" * 4, items=3) is None


def test_bounds_beyond_python_s_own_do_not_raise() -> None:
    deep = 10**6
    assert read('{"a":' + "[" * 100000, depth=deep, items=deep) is None


def test_text_without_an_end_is_read_once() -> None:
    """Each quote begins a string that never ends: reading from each of them would take minutes."""
    assert read('"' + '\\"' * 1000000) is None


@given(st.binary(max_size=80) | st.text(alphabet='{}[]",:\\ 1eE.+-nulNaInfity', max_size=80).map(str.encode))
def test_no_bytes_raise(noise: bytes) -> None:
    found = read_objects(noise, Bounds())
    assert found is None or read_objects(pack_object(found), Bounds()) == found


@pytest.mark.parametrize(
    "text", ['{"a": [[[]]]}', '{"a": [{}, {}, [[]]]}', '{"a": {}, "b": [], "c": {"d": [0]}}']
)
def test_depth_is_that_of_the_deepest_container_whatever_ended_before(text: str) -> None:
    deepest = next(depth for depth in range(1, 9) if read(text, depth=depth) is not None)
    assert deepest == (3 if '"c"' in text else 4)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_not_packed(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack_object({"a": number})
