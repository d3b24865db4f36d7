"""Where MessagePack objects end: held against msgpack itself, and the bounds at their headers."""

from typing import Any, SupportsIndex

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.syndication.bounds import Bounds
from devices.syndication.wire.walk import ARRAY, FAMILY, LENGTH_BYTES, MAP, SIZE, STRING, Walk
from tests.devices.syndication.wire.objects import WIDE, objects, whole

LONG = [
    "x" * 31, "x" * 32, "x" * 256, "x" * 65536, b"x" * 255, b"x" * 256, b"x" * 65536,
    [1] * 15, [1] * 16, [1] * 65536, {i: i for i in range(15)}, {i: i for i in range(16)},
    {i: i for i in range(65536)}, msgpack.ExtType(1, bytes(255)), msgpack.ExtType(1, bytes(256)),
    msgpack.ExtType(1, bytes(65536)), msgpack.ExtType(5, bytes(16)), msgpack.ExtType(5, bytes(8)),
]  # fmt: skip


@settings(max_examples=200)
@given(objects, st.binary(max_size=5))
def test_an_object_ends_where_msgpack_ends_it(value: Any, trailer: bytes) -> None:
    packed = msgpack.packb(value)
    assert whole(packed + trailer).at == len(packed)


@pytest.mark.parametrize("value", LONG, ids=range(len(LONG)))
def test_lengths_of_every_width(value: Any) -> None:
    packed = msgpack.packb(value)
    assert whole(packed + b"\x01").at == len(packed)


@given(objects)
def test_byte_by_byte(value: Any) -> None:
    packed = b"\xa1?" + msgpack.packb(value)
    walk = Walk(WIDE)
    walk.begin(2)
    assert [walk.go(packed[:size]) for size in range(3, len(packed) + 1)] == [False] * (len(packed) - 3) + [
        True
    ]
    assert walk.at == len(packed)


@given(st.lists(objects, max_size=6))
def test_the_elements_of_the_outermost_array_are_marked(values: list[Any]) -> None:
    parts = [msgpack.packb(value) for value in values]
    walk = whole(msgpack.packb(values))
    assert walk.marks == [1 + sum(map(len, parts[:index])) for index in range(len(parts))]


def test_families_are_what_msgpack_makes_of_each_first_byte() -> None:
    kinds: dict[type[Any], int] = {str: STRING, bytes: STRING, list: ARRAY, dict: MAP}
    for first in range(256):
        unpacker = msgpack.Unpacker(strict_map_key=False, timestamp=3)
        unpacker.feed(bytes([first]) + bytes([0, 0, 0, 0]) + b"\x01" * 40)
        try:
            expected = kinds.get(type(unpacker.unpack()), 0)
        except (ValueError, msgpack.FormatError):
            expected = 0
        assert FAMILY[first] == expected, hex(first)


def fixed_size(first: int) -> int:
    """Return the bytes of an element that says no length, by msgpack; 0 if there is none."""
    for size in range(1, 40):
        unpacker = msgpack.Unpacker()
        unpacker.feed(bytes([first]) + bytes(size - 1))
        try:
            unpacker.unpack()
        except msgpack.OutOfData:
            continue
        except msgpack.FormatError:
            return 0
        return size
    raise AssertionError(hex(first))


def test_sizes_are_what_msgpack_reads_where_neither_a_length_nor_items_follow() -> None:
    headed = LENGTH_BYTES.keys()
    assert list(SIZE) == [0 if first in headed else fixed_size(first) for first in range(256)]
    assert headed == {first for first in range(256) if not SIZE[first]} - {0xC1}
    assert len(FAMILY) == 256


def test_a_walk_goes_on_when_what_stood_before_its_object_is_no_longer_there() -> None:
    packed = msgpack.packb(["x" * 20, [1, 2], {"a": 3}])
    walk = Walk(Bounds(object_bytes=len(packed)))
    walk.begin(100)
    data = bytes(100) + packed
    assert not walk.go(data[:122])
    marks = walk.marks
    walk.shift(0)
    assert (walk.at, walk.marks) == (122, marks)
    walk.shift(60)
    assert not walk.go(data[60:124])
    walk.shift(40)
    assert walk.go(packed)
    assert (walk.at, walk.marks) == (len(packed), [1, 22, 25])
    assert walk.fault == ""


def test_the_bound_of_an_object_holds_when_its_beginning_moves() -> None:
    walk = Walk(Bounds(object_bytes=10))
    walk.begin(5)
    assert not walk.go(bytes(5) + msgpack.packb("x" * 9)[:4])
    walk.shift(5)
    assert walk.go(msgpack.packb("x" * 9))
    walk.begin(5)
    walk.shift(5)
    assert not walk.go(msgpack.packb("x" * 10))
    assert walk.fault == "longer than 10 bytes"


def test_the_bound_of_an_object_counts_from_its_beginning() -> None:
    walk = Walk(Bounds(object_bytes=10))
    walk.begin(5)
    assert walk.go(bytes(5) + msgpack.packb("x" * 9))
    walk.begin(5)
    assert not walk.go(bytes(5) + msgpack.packb("x" * 10))
    assert walk.fault == "longer than 10 bytes"


@pytest.mark.parametrize("first", ["db", "c6", "c9", "dd", "df"])
def test_what_announces_a_gigabyte_is_refused_at_its_header(first: str) -> None:
    walk = Walk(Bounds())
    header = bytes.fromhex(first + "40000000")
    assert not walk.go(header[:-1])
    assert not walk.fault
    assert not walk.go(header)
    assert walk.fault


def test_each_bound_holds_exactly() -> None:
    bounds = Bounds(object_bytes=100, items=20, depth=4)
    assert whole(msgpack.packb("x" * 98), bounds)
    assert fault(msgpack.packb("x" * 99), bounds) == "longer than 100 bytes"
    assert whole(msgpack.packb([[1] * 9, [1] * 9]), bounds)
    assert fault(msgpack.packb([[1] * 9, [1] * 10]), bounds) == "more than 20 items"
    assert fault(msgpack.packb({1: dict.fromkeys(range(10), 1)}), bounds) == "more than 20 items"
    assert whole(msgpack.packb([[[[]]]]), bounds)
    assert fault(msgpack.packb([[[[[]]]]]), bounds) == "deeper than 4"


def fault(packed: bytes, bounds: Bounds) -> str:
    walk = Walk(bounds)
    assert not walk.go(packed)
    return walk.fault


@pytest.mark.parametrize("first", [b"\x91", b"\x81", b"\x81\x01"])
def test_deep_nesting_is_refused(first: bytes) -> None:
    assert fault(first * 100_000, Bounds()) == "deeper than 32"


def test_the_byte_that_is_never_used_is_refused() -> None:
    assert fault(b"\x93\x01\xc1", Bounds()) == "0xc1 is no MessagePack"


class Counting(bytes):
    """Counts the elements that are looked at."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        Counting.looks += isinstance(key, SupportsIndex)
        return super().__getitem__(key)


def test_byte_by_byte_each_element_is_looked_at_a_bounded_number_of_times() -> None:
    values = [[1.5] * 100, {str(i): "x" * 300 for i in range(100)}, b"x" * 5000]
    packed = msgpack.packb(values)
    walk, Counting.looks = Walk(WIDE), 0
    for size in range(1, len(packed) + 1):
        walk.go(Counting(packed[:size]))
    assert walk.at == len(packed)
    elements = 1 + 3 + 100 + 200
    assert Counting.looks <= 5 * elements
