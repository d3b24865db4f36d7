"""Codecs between the data of frames and values in MessagePack. Pure.

The data fits a frame. A `Codec` never raises because of data or of a value.
"""

import json
from collections.abc import Callable
from decimal import Decimal, DecimalException
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple, NoReturn

import msgpack

from bus.quantity.coding import Coding
from bus.quantity.raw import Type, size_of
from bus.quantity.scale import Scale
from bus.text import finite_in
from devices.syndication.bounds import Bounds
from devices.syndication.buses.rules import Coded, layout
from devices.syndication.wire.messages import pack
from devices.syndication.wire.walk import Walk

_BOUNDS: Final = Bounds()
_WRONG: Final = (ValueError, TypeError, OverflowError, RecursionError, StructError, DecimalException)
"""Errors for data and values that a codec cannot convert; those of UTF-8 and of msgpack are among them."""


class Codec(NamedTuple):
    """A codec. Its functions return None for what they cannot convert, which is then counted as `reason`."""

    decode: Callable[[bytes], bytes | None]
    """Convert the data of a frame to a value in MessagePack."""
    encode: Callable[[bytes], bytes | None]
    """Convert a value in MessagePack to the data of a frame, of any length."""
    reason: str


def codec(coded: Coded) -> Codec:
    """Return the codec of a rule."""
    decode, encode = _functions(coded)
    return Codec(_tried(decode), _tried(encode), f"no {coded.codec}")


def _functions(coded: Coded) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    if coded.format is not None:
        return _struct(layout(coded.format))
    return _CODECS[coded.codec] if coded.type is None else _value(coded, coded.type)


def _tried(convert: Callable[[bytes], bytes]) -> Callable[[bytes], bytes | None]:
    def tried(data: bytes) -> bytes | None:
        try:
            return convert(data)
        except _WRONG:
            return None

    return tried


def _unpack(value: bytes) -> Any:
    return msgpack.unpackb(value, strict_map_key=False)


def _raw_of(value: bytes) -> bytes:
    """Return the bytes of a bin or of text."""
    read = _unpack(value)
    if isinstance(read, bytes):
        return read
    return _text(read).encode()


def _from_utf8(data: bytes) -> bytes:
    return pack(data.decode())


def _utf8_of(value: bytes) -> bytes:
    """Return text unchanged, numbers and booleans as in JSON, and a bin if it is UTF-8."""
    read = _unpack(value)
    if isinstance(read, bytes):
        return _text(read.decode()).encode()
    if isinstance(read, int | float):
        return _json(read)
    return _text(read).encode()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the value is no text, but {type(value).__name__}")
    return value


def _from_json(data: bytes) -> bytes:
    return _whole(pack(json.loads(data.decode(), parse_constant=_no_constant, parse_float=finite_in)))


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _json_of(value: bytes) -> bytes:
    return _json(_unpack(value))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _whole(data: bytes) -> bytes:
    """Return `data` unchanged if it is exactly one MessagePack object within the bounds of the wire."""
    walk = Walk(_BOUNDS)
    if not walk.go(data) or walk.at != len(data):
        raise ValueError("the data is not exactly one MessagePack object")
    return data


def _same(value: bytes) -> bytes:
    return value


def _struct(fields: Struct) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    one = len(fields.unpack(bytes(fields.size))) == 1

    def decode(data: bytes) -> bytes:
        values = fields.unpack(data)
        return pack(values[0] if one else values)

    def encode(value: bytes) -> bytes:
        read = _unpack(value)
        return fields.pack(*map(_field, read if isinstance(read, list) and not one else [read]))

    return decode, encode


def _value(coded: Coded, type_: Type) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    """Return the codec of one value, as registers of devices have it; text fills the data."""
    scale, size = Scale.of(coded.scale, coded.offset), size_of(type_)

    def coding(size_bytes: int) -> Coding:
        return Coding(coded.place(size_bytes, type_), scale)

    def decode(data: bytes) -> bytes:
        if len(data) != (size or len(data)):
            raise ValueError(f"{len(data)} bytes, and a {type_} has {size}")
        return pack(_plain(coding(len(data)).decode(data)))

    def encode(value: bytes) -> bytes:
        read = _unpack(value)
        if not isinstance(read, int | float | str):
            raise TypeError(f"the value is neither a number nor text, but {type(read).__name__}")
        return coding(size or _text_bytes(type_, read)).encode(read)

    return decode, encode


def _plain(value: Any) -> Any:
    """Return a decimal as an integer of MessagePack if it is one, else as a float."""
    if not isinstance(value, Decimal):
        return value
    whole = value == value.to_integral_value() and -(1 << 63) <= value < 1 << 64
    return int(value) if whole else float(value)


def _text_bytes(type_: Type, value: Any) -> int:
    return -(-len(str(value)) // 8) if type_ == "bits" else len(str(value))


def _field(value: Any) -> int | float | bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int | float | bytes):
        return value
    raise TypeError(f"a field is text, a number or bytes, not {type(value).__name__}")


_CODECS: Final = {
    "raw": (pack, _raw_of),
    "utf-8": (_from_utf8, _utf8_of),
    "json": (_from_json, _json_of),
    "msgpack": (_whole, _same),
}
