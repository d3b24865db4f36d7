"""The rules of a syndication broker for buses, as they stand in a topology. Pure.

Frames under a pattern become publications of producers (`producers:`), and publications that match a query
become frames of a bus (`queries:`). Both rules name a codec between the data of frames and values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Annotated, Final, Literal

from bus.key_types import BusName, Names, Scalar, Seconds
from bus.quantity.raw import Layout, Type, size_of
from bus.quantity.settings import OffsetSetting, OrderSetting, ScaleSetting, check_scaled
from bus.schema import AnyText, Length, Range, Record
from bus.wire.frame import DATA_BYTES_MAX, TOKENS_MAX

KEYS_MAX: Final = 64
METADATA_BYTES_MAX: Final = 1024  # with the longest pattern, it fits what one producer may have
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 64) - 1  # of MessagePack

Value = Annotated[Scalar | tuple[Annotated[Scalar, AnyText()], ...], AnyText()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded(Record):
    """The base of rules: a codec, and its `format`. Raises ValueError if these do not fit."""

    codec: Annotated[
        Literal["raw", "utf-8", "json", "msgpack", "struct", "value"],
        "what the data of frames is: bytes, text, JSON, MessagePack, the fields of `format`, or a `type`",
    ] = "raw"
    format: Annotated[
        Annotated[str, Length(1, 64)] | None,
        'of `struct`, as in Python, with a byte order: `"<f"`, `">HhB"`; several fields are a list',
    ] = None

    type: Annotated[Type | None, "of `value`, as registers have it: `u16`, `f32`, `ascii` and others"] = None
    order: OrderSetting = None
    scale: ScaleSetting = 1
    offset: OffsetSetting = 0

    def __post_init__(self) -> None:
        if (self.codec == "struct") != (self.format is not None):
            raise ValueError('codec: struct has a format, such as "<f", and no other codec has one')
        if self.format is not None:
            layout(self.format)
        if (self.codec == "value") != (self.type is not None):
            raise ValueError("codec: value has a type, such as u16, and no other codec has one")
        if self.type is None and (self.order, self.scale, self.offset) != (None, 1, 0):
            raise ValueError("order, scale and offset are of codec: value")
        if self.type is not None:
            check_scaled(self.place(size_of(self.type) or 0, self.type), self.scale, self.offset)

    def place(self, size_bytes: int, type_: Type) -> Layout:
        """Return the form of a value of this type in the data of a frame."""
        return Layout(type_, size_bytes, self.order or "ABCD")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRule(Coded):
    """A rule for producers: each full pattern on the bus that begins with `pattern` is one."""

    bus: Annotated[BusName, "the bus on which it publishes, of the same gateway"]
    pattern: Annotated[Names, "how its frames begin; of several rules, the one with the longest holds"]
    metadata: Annotated[
        Mapping[Annotated[str, Length(1, 128)], Value],
        Length(0, KEYS_MAX),
        "what queries find it by, beside `Bus` and `Pattern`",
    ] = field(default_factory=dict)
    producers: Annotated[int, Range(1, 2048), "most producers of this rule at a time"] = 256
    idle_s: Annotated[Seconds, "it leaves all sets when it was silent for so long"] = 3600

    def __post_init__(self) -> None:
        Coded.__post_init__(self)  # `slots` makes the class anew, and `super()` would refer to the old one
        _check_metadata(self.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRule(Coded):
    """A rule that sends the publications of producers that match a query to a bus."""

    query: Annotated[str, AnyText(), "which producers (docs/query.md)"]
    bus: Annotated[BusName, "the bus that gets its publications, of the same gateway"]
    pattern: Annotated[Names, "how its frames begin; then comes the token of the producer's id"]

    def __post_init__(self) -> None:
        Coded.__post_init__(self)
        if not 1 <= len(self.pattern) < TOKENS_MAX:
            raise ValueError(f"the pattern of a query has 1 to {TOKENS_MAX - 1} names")
        _check_query(self.query)


def layout(text: str) -> Struct:
    """Return the compiled format of `struct`. Raises ValueError for a format that frames cannot have."""
    if not text.startswith(("<", ">", "!")):
        raise ValueError(
            f'the format {text!r} has no byte order: begin with "<" (little-endian) or ">" (big-endian)'
        )
    try:
        made = Struct(text)
    except (StructError, ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"the format {text!r} is refused: {error}") from None
    if not 0 < made.size <= DATA_BYTES_MAX:
        raise ValueError(f"the format {text!r} has {made.size} bytes: a frame has 1 to {DATA_BYTES_MAX}")
    if not made.unpack(bytes(made.size)):
        raise ValueError(f"the format {text!r} has no field")
    return made


def _check_metadata(metadata: Mapping[str, Value]) -> None:
    scalars = [
        one for value in metadata.values() for one in (value if isinstance(value, tuple) else (value,))
    ]
    if wrong := [one for one in scalars if isinstance(one, int) and not _INT_MIN <= one <= _INT_MAX]:
        raise ValueError(f"metadata: {wrong[0]} has more than the 64 bits of MessagePack")
    size = sum(map(_bytes_at_most, (*metadata, *scalars))) + 3 * len(metadata)
    if size > METADATA_BYTES_MAX:
        raise ValueError(f"metadata: up to {size} bytes of MessagePack; they may have {METADATA_BYTES_MAX}")


def _bytes_at_most(one: Scalar) -> int:
    return 3 + len(one.encode()) if isinstance(one, str) else 9


def _check_query(text: str) -> None:
    """Raise ValueError for a wrong query. Without the extra `syndication` it is not checked."""
    from devices.syndication.query import QueryError, parse

    try:
        parse(text)
    except ModuleNotFoundError:
        return
    except QueryError as error:
        raise ValueError(f"query: {error}") from None
