"""Markers of settings: which values they allow, bound by bound, and what they say of others."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

import pytest

from bus import key_types, schema
from bus.kinds import Kinds
from bus.schema import ByGateway, Check, Key, Length, Notation, OneOf, Range, Record, Ref, Where
from bus.urls import check_listen

M = TypeVar("M")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1024, "1024"),
        (1 << 30, "1073741824 (1 GiB)"),
        ((1 << 30) + 1, "1073741825"),
        (3 << 31, "6442450944 (6 GiB)"),
        (1 << 40, "1099511627776 (1 TiB)"),
        (0.001, "0.001"),
    ],
)
def test_a_number_that_must_be_a_size_is_written_in_bytes_too(value: float, text: str) -> None:
    assert schema.number(value) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (1, "1 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1025, "1025 bytes"),
        (3 << 19, "1536 KiB"),
        (8 << 20, "8 MiB"),
        (5 << 30, "5 GiB"),
        (2 << 40, "2 TiB"),
        (1 << 50, "1024 TiB"),
    ],
)
def test_a_size_has_the_largest_unit_that_divides_it(size_bytes: int, text: str) -> None:
    assert schema.size(size_bytes) == text


@pytest.mark.parametrize(("value", "allowed"), [(1, False), (2, True), (5, True), (6, False)])
def test_the_bounds_of_ranges_and_lengths_are_included(value: int, allowed: bool) -> None:
    assert schema.problem(Range(2, 5), value) == ("" if allowed else f"{value} is out of range: 2 to 5")
    assert schema.problem(Length(2, 5), "x" * value) == ("" if allowed else f"{value} given; it takes 2 to 5")
    assert schema.problem(Length(9, 9), "x" * value) == f"{value} given; it takes 9"


def test_a_reference_may_be_an_address_where_that_is_said() -> None:
    by_name, by_both = Ref("bus", ("buses",)), Ref("bus", ("buses",), Check(check_listen, "an address"))
    assert [by_name.is_name(text) for text in ("plant", "tcp://h:5")] == [True, True]
    assert [by_both.is_name(text) for text in ("plant", "tcp://h:5")] == [True, False]
    assert schema.problem(by_name, "nonsense://") == schema.problem(by_both, "plant") == ""
    assert schema.problem(by_both, "tcp://h:5") == ""
    assert "must start with" in schema.problem(by_both, "nonsense://h")


def test_exactly_one_key_of_several_is_given() -> None:
    kinds = Kinds[Record]("buscoupler.none", {"can": "tests.bus.test_schema:Sample"})
    choice = OneOf("a link", kinds, ("url",))
    assert schema.KindOf("a link", kinds).problem(["can"]) == ""
    assert schema.KindOf("a link", kinds).problem([]) == "a link is one of can; found none"
    assert choice.problem(["url"]) == ""
    assert choice.problem([]) == "a link is one of url, can; found none"
    assert choice.problem(["url", "can"]) == "a link is one of url, can; found url, can"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Record):
    """A record with a setting of each kind."""

    level: Annotated[Literal["low", "high"], "one of two texts"] = "low"
    ports: Annotated[tuple[key_types.Port, ...], Length(0, 3), "a list"] = ()
    token: Annotated[key_types.Token | None, "nothing by default"] = None
    from_: Annotated[int, Key("from"), Range(1, 9), "reserved in Python"]
    names: Annotated[list[str], "made anew by default"] = field(default_factory=lambda: ["a"])


def test_a_record_s_settings_have_their_keys_in_the_file_and_no_place() -> None:
    found = schema.settings(Sample)
    assert list(found) == ["level", "ports", "token", "from", "names"]
    assert [one.required for one in found.values()] == [False, False, False, True, False]
    assert found["from"].annotation == Annotated[int, Range(1, 9)]
    assert found["from"].doc == "reserved in Python"
    assert (schema.default_of(found["ports"]), schema.default_of(found["names"])) == ((), ["a"])
    assert schema.alternatives(Sample) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Record):
    """A record with a field that stands for several keys."""

    link: Annotated[Sample, OneOf("a link", Kinds[Record]("buscoupler.none", {}), ("url",))]
    name: Annotated[str, "its name"] = ""


def test_a_field_that_stands_for_several_keys_is_no_key_itself() -> None:
    name, marker = schema.alternatives(Choice) or ("", None)
    assert name == "link"
    assert marker is not None
    assert marker.keys() == ("url",)
    assert list(schema.settings(Choice)) == ["name"]


@pytest.mark.parametrize(
    "told",
    [
        lambda: key_types.check_name("-" * 70),
        lambda: schema.check_fields(Sample(from_=1, token="-" * 70 + "/b")),
    ],
)
def test_a_long_text_is_said_in_part(told: Callable[[], None]) -> None:
    with pytest.raises(ValueError, match=f'"{"-" * 64}" is (no name|a pattern.*write \\[{"-" * 64}\\])'):
        told()


def test_a_record_s_place_is_no_part_of_it() -> None:
    here = Sample(from_=1, where=Where("file", 2, 3, "path"))
    assert here == Sample(from_=1)
    assert Sample(from_=1) != Sample(from_=2)
    assert "where" not in repr(here)
    assert Where() == ("", 0, 0, "")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (Sample(from_=1), ""),
        (Sample(from_=0), "from: 0 is out of range: 1 to 9"),
        (Sample(from_=1, level="mid"), "level: expected low or high, found 'mid'"),  # type: ignore[arg-type]
        (Sample(from_=1, ports=(1, 65535)), ""),
        (Sample(from_=1, ports=(1, 65536)), "ports: 65536 is out of range: 1 to 65535"),
        (Sample(from_=1, ports=(1,) * 4), "ports: 4 given; it takes 0 to 3"),
        (Sample(from_=1, token=key_types.TOKEN_MAX), ""),
        (Sample(from_=1, token=0), ""),
        (Sample(from_=1, token=-1), "token: -1 is no token: a number must be 0 to 4294967295"),
        (Sample(from_=1, token=1 << 32), "token: 4294967296 is no token: a number must be 0 to 4294967295"),
        (Sample(from_=1, token=""), "token: a token cannot be empty text; / is the pattern that matches all"),
        (
            Sample(from_=1, token="a/b"),
            'token: "a/b" is a pattern, and a name is expected here: write [a, b]',
        ),
    ],
)
def test_the_first_fault_of_a_record_is_told(record: Sample, text: str) -> None:
    assert fault(record) == text


def fault(record: Sample) -> str:
    """Return what is wrong with a record; "" if nothing is."""
    try:
        schema.check_fields(record)
    except ValueError as error:
        return str(error)
    return ""


def test_a_type_without_none_and_a_union_as_it_is() -> None:
    assert schema.present(int | None) is int
    assert schema.present(int | str) == int | str
    assert schema.present(int) is int
    assert schema.members(int) == (int,)
    assert schema.members(int | str) == (int, str)
    assert schema.unwrap(Annotated[int, "help"]) == (int, ("help",))
    assert schema.unwrap(int) == (int, ())


@pytest.mark.parametrize("name", ["a", "A1", "_", "a" * 63, "a.b-c_d"])
def test_names(name: str) -> None:
    key_types.check_name(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "a" * 64, "a b", "räum", "٣"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="is no name: up to 63 of A to Z, a to z, 0 to 9, "):
        key_types.check_name(name)


def marker(annotation: Any, kind: type[M]) -> M:
    """Return the marker of one kind that a shared annotation has."""
    return next(one for one in schema.unwrap(annotation)[1] if isinstance(one, kind))


def test_a_path_is_neither_empty_nor_holds_what_nobody_sees() -> None:
    check = marker(key_types.Path, Check)
    assert schema.problem(check, "a/b") == ""
    assert schema.problem(check, "") == "a path cannot be empty"
    assert "U+0000" in schema.problem(check, "a\0b")


def test_a_pattern_in_a_file_is_one_text_with_slashes_or_a_name() -> None:
    read = marker(key_types.Names, Notation).function
    assert (read("a/7"), read("7"), read("/")) == (("a", 7), ("7",), ())
    with pytest.raises(ValueError, match="wildcard"):
        read("#")


def test_what_may_differ_between_gateways_is_read_for_one() -> None:
    assert ByGateway({"a": 1, "b": 2}).at("b") == 2


@pytest.mark.parametrize(
    ("annotation", "low", "high"),
    [
        (key_types.Names, 0, 255),
        (key_types.Patterns, 0, 4096),
        (key_types.Port, 1, 65_535),
        (key_types.CanNode, 1, 127),
        (key_types.Milliseconds, 1, 86_400_000),
        (key_types.Delay, 0.001, 86_400_000),
        (key_types.Seconds, 1, 86_400),
        (key_types.Bytes, 1, 1 << 40),
        (key_types.QueueBytes, 3084, 1 << 40),
    ],
)
def test_the_bounds_of_shared_types(annotation: Any, low: float, high: float) -> None:
    kind = Length if annotation in (key_types.Names, key_types.Patterns) else Range
    assert marker(annotation, kind) == (low, high)


def test_the_settings_of_a_record_are_its_fields_but_its_place_in_a_file() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class One(Record):
        url: str
        keys: tuple[str, ...] = ()

    one, elsewhere = One(url="a"), One(url="a", where=Where("f", 3, 4))
    assert schema.settings_of(one) == schema.settings_of(elsewhere) == {"url": "a", "keys": ()}


def test_a_mapping_that_was_read_tells_true_from_one() -> None:
    one, true = schema.Table({"a": 1, "b": 2.0}), schema.Table({"a": True, "b": 2})
    assert one != true
    assert [one, true].index(true) == 1  # by ==, which a dict has beside !=
    assert one == schema.Table({"a": 1.0, "b": 2}) == {"a": 1, "b": 2}
    assert true == schema.Table({"a": True, "b": 2})
    assert schema.Table({"a": False}) != schema.Table({"a": 0})


def test_a_mapping_that_was_read_has_an_order() -> None:
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert schema.Table(one) != schema.Table(other)
    assert hash(schema.Table(one)) != hash(schema.Table(other))
    assert schema.Table(one) == schema.Table(one) == one
