"""The vocabulary of records in a configuration file: annotations that say more about a value than its type.

The topology loader reads YAML by these annotations, and the reference page is generated from them.
"""

import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from bus.kinds import Kinds

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


class Where(NamedTuple):
    """A place in a file: line and column from 1 (0 if not from a text), and path from the root."""

    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""


def number(value: float) -> str:
    """Return a number in full, and in bytes too if it is so large and even that it must be a size."""
    if not isinstance(value, int):
        return f"{value:.12g}"
    return f"{value} ({size(value)})" if value % (1 << 30) == 0 and value else f"{value}"


def size(number_bytes: int) -> str:
    """Return a number of bytes in the largest unit that divides it: `8 MiB`."""
    units = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
    return next(
        (f"{number_bytes >> bits} {unit}" for bits, unit in units if not number_bytes % (1 << bits)),
        f"{number_bytes} bytes",
    )


class Range(NamedTuple):
    """The bounds of a number, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.low)} to {number(self.high)}"


class Length(NamedTuple):
    """The bounds of a list in items, or of a text in characters; both included."""

    low: int
    high: int


class Check(NamedTuple):
    """A function that raises ValueError, with the reason, if a value is not valid."""

    function: Callable[[Any], None]
    words: str


class Means(NamedTuple):
    """The meaning of a key of a mapping that can be written in several ways: it may be there once.

    `function` raises ValueError for a key that means nothing.
    """

    function: Callable[[str], Hashable]


class Ref(NamedTuple):
    """A reference by name to an entry in one of `sections` of the same file; `what` is the kind of entry.

    With `address`, a text with `://` is not a name but the address of such an entry, in any file or none.
    """

    what: str
    sections: tuple[str, ...]
    address: Check | None = None

    def is_name(self, value: str) -> bool:
        """Return whether a value refers to an entry by name."""
        return self.address is None or "://" not in value


class Key(NamedTuple):
    """The key of a field in a file, if Python reserves that word."""

    name: str


class Single:
    """A list that may be written without brackets if it has one item."""


class AnyText:
    """A text that may hold line breaks and other characters that are no signs."""


class Signs:
    """A text of signs that no keyboard has, which a word of the command line writes as `\\r`."""


class Table(dict[str, T]):
    """A mapping that was read, which nobody changes, so that a record with one can be hashed.

    It is equal to a mapping with the same items in the same order, where `true` is no `1`: of expressions,
    the first that fits counts.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict) or not dict.__eq__(self, other):
            return False
        return list(self) == list(other) and _flags(self) == _flags(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def _flags(values: Mapping[str, Any]) -> set[str]:
    """Return the keys whose values are true or false, which Python takes for numbers."""
    return {key for key, value in values.items() if isinstance(value, bool)}


class Notation(NamedTuple):
    """A list that may be written as one text. `function` reads that, and raises ValueError if it is wrong."""

    function: Callable[[str], tuple[Any, ...]]
    words: str


class OneOf(NamedTuple):
    """A field that stands for several keys: those of `kinds`. Exactly one of these, or of `beside`, is given.

    The value of such a key is a record of that kind. `what` names the mapping in findings.
    """

    what: str
    kinds: Kinds[Any]
    beside: tuple[str, ...] = ()

    def keys(self) -> tuple[str, ...]:
        return *self.beside, *self.kinds.all()

    def problem(self, given: list[str]) -> str:
        """Return what is wrong with the keys `given`; "" if nothing is."""
        return _unlike_one(self.what, self.keys, given)


class KindOf(NamedTuple):
    """A record of one of several classes, derived from the annotated one: that of `kinds` whose key it has.

    Exactly one of these keys is given; it is a setting of its class. `what` names the record in findings.
    """

    what: str
    kinds: Kinds[Any]

    def problem(self, given: list[str]) -> str:
        """Return what is wrong with the keys `given`; "" if nothing is."""
        return _unlike_one(self.what, self.kinds.all, given)


class Called(NamedTuple):
    """A record of one of several classes, derived from the annotated one: that of `kinds` by its name.

    The name stands alone, or as the only key of a mapping to its settings. `what` names it in findings.
    """

    what: str
    kinds: Kinds[Any]


def _unlike_one(what: str, keys: Callable[[], tuple[str, ...]], given: list[str]) -> str:
    if len(given) == 1:
        return ""
    return f"{what} is one of {', '.join(keys())}; found {', '.join(given) or 'none'}"


@dataclass(frozen=True, slots=True)
class ByGateway(Generic[T]):
    """A value that may differ between the gateways of its record, as may any value in it.

    In a file, a mapping from gateways to values stands for such a value.
    """

    values: Mapping[str, T]

    def at(self, gateway: str) -> T:
        """Return the value on a gateway that runs the record."""
        return self.values[gateway]


@dataclass(frozen=True, slots=True)
class Owned(Generic[T]):
    """A value that each gateway may have of its own, whichever use its record: `every` has that of all.

    In a file, a mapping from gateways to values stands for such a value.
    """

    every: T | None = None
    own: Mapping[str, T] = field(default_factory=dict)

    def of(self, gateway: str) -> T | None:
        """Return the value of a gateway, None if it has none."""
        return self.own.get(gateway, self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record in a file. `where` is its place there. Fields that comparisons ignore are no keys of the file.

    `SHORT` names the field that is meant if a value is written instead of a mapping; "" if none is.
    `GATEWAYS` names the field that lists the gateways of its `ByGateway` values; "" if it has none.
    """

    SHORT: ClassVar[str] = ""
    GATEWAYS: ClassVar[str] = ""
    where: Where = field(default=Where(), compare=False, repr=False)


def settings_of(record: "DataclassInstance") -> dict[str, Any]:
    """Return the values of a record by the names of its fields, without its place in a file."""
    return {one.name: getattr(record, one.name) for one in fields(record) if one.compare}


class Setting(NamedTuple):
    """A key of a record: its field, its type with all markers except the text, and its help text."""

    field: Field[Any]
    annotation: Any
    doc: str

    @property
    def required(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING


def default_of(one: Setting) -> Any:
    """Return the default value of a setting that is not required."""
    f = one.field
    return f.default if f.default_factory is MISSING else f.default_factory()


def _settings(cls: type) -> dict[str, Setting]:
    """Return the settings of a record by their keys in a file. A text among the markers explains a field."""
    found = dict[str, Setting]()
    hints = typing.get_type_hints(cls, include_extras=True)
    for f in fields(cls):
        bare, markers = unwrap(hints[f.name])
        key = next((marker.name for marker in markers if isinstance(marker, Key)), f.name)
        texts = [marker for marker in markers if isinstance(marker, str)]
        rest = tuple(marker for marker in markers if not isinstance(marker, Key | str))
        if f.compare and not one_of(hints[f.name]):
            found[key] = Setting(f, Annotated[bare, *rest] if rest else bare, *texts)
    return found


# Typed here, because mypy believes that the type of a record has no hash.
settings: Callable[[type], dict[str, Setting]] = cache(_settings)


def _alternatives(cls: type) -> tuple[str, OneOf] | None:
    """Return the field of a record that stands for several keys; None if it has no such field."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return next(((name, marker) for name, hint in hints.items() if (marker := one_of(hint))), None)


alternatives: Callable[[type], tuple[str, OneOf] | None] = cache(_alternatives)


def one_of(annotation: Any) -> OneOf | None:
    """Return the marker of an annotation that says which keys exclude each other, or None."""
    return next((marker for marker in unwrap(annotation)[1] if isinstance(marker, OneOf)), None)


def unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the bare type of an annotation and its markers, the outermost last."""
    if get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    return annotation, ()


def members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union. Anything else is its only member."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def present(annotation: Any) -> Any:
    """Return an annotation without `None`. A union of several other types is returned unchanged."""
    wanted = [member for member in members(annotation) if member is not type(None)]
    return wanted[0] if len(wanted) == 1 else annotation


def problem(marker: Any, value: Any) -> str:
    """Return why a marker forbids `value`; "" if it allows it."""
    if isinstance(marker, Range) and not marker.low <= value <= marker.high:
        return f"{value} is out of range: {marker}"
    if isinstance(marker, Length) and not marker.low <= len(value) <= marker.high:
        most = f" to {marker.high}" if marker.high > marker.low else ""
        return f"{len(value)} given; it takes {marker.low}{most}"
    if isinstance(marker, Ref):
        return "" if marker.is_name(value) else problem(marker.address, value)
    if isinstance(marker, Check):
        try:
            marker.function(value)
        except ValueError as e:
            return str(e)
    return ""


def check_fields(record: Record) -> None:
    """Raise ValueError for the first field whose value its annotation forbids. Types are not checked."""
    for key, name, demands in _demands_of(type(record)):
        if text := _fault(demands, getattr(record, name)):
            raise ValueError(f"{key}: {text}")


class _Demands(NamedTuple):
    """The demands of an annotation on a value: one of `words`, all `markers`, and those on its items."""

    words: tuple[Any, ...]
    markers: tuple[Any, ...]
    items: "_Demands | None"


def _demands(annotation: Any) -> _Demands:
    bare, markers = unwrap(present(annotation))
    kind, parts = get_origin(bare), get_args(bare)
    return _Demands(parts if kind is Literal else (), markers, _demands(parts[0]) if kind is tuple else None)


def _demanded(cls: type) -> list[tuple[str, str, _Demands]]:
    """Return the keys of a record, its fields, and the demands on them."""
    return [(key, one.field.name, _demands(one.annotation)) for key, one in settings(cls).items()]


_demands_of: Callable[[type], list[tuple[str, str, _Demands]]] = cache(_demanded)


def _fault(demands: _Demands, value: Any) -> str:
    if value is None:
        return ""
    if demands.words and value not in demands.words:
        return f"expected {' or '.join(map(str, demands.words))}, found {value!r}"
    faults = [problem(marker, value) for marker in demands.markers]
    if demands.items is not None:
        faults += [_fault(demands.items, item) for item in value]
    return next(filter(None, faults), "")
