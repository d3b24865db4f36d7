"""Numbers and text as devices store them: types, and the order of their bytes. Pure."""

from collections.abc import Callable
from functools import partial
from struct import Struct
from struct import error as StructError
from typing import Final, Literal, NamedTuple

Type = Literal[
    "bool",
    "u8",
    "i8",
    "u16",
    "i16",
    "u24",
    "i24",
    "u32",
    "i32",
    "u48",
    "i48",
    "u64",
    "i64",
    "f32",
    "f64",
    "bits",
    "ascii",
]
"""The types of values: `u`, `i` and `f` are unsigned, signed and floating, with their bits. `bits` are one
character `0` or `1` for each bit, the highest first; `ascii` is text, without the zeros and spaces at its
end."""

Order = Literal["AB", "BA", "ABCD", "CDAB", "BADC", "DCBA", "ABCDEFGH", "GHEFCDAB", "BADCFEHG", "HGFEDCBA"]
"""The order in which a device sends the bytes of a value whose highest is A. Those of four letters are for
values of any size: what they say of words (two bytes) and of the bytes in a word holds."""

Raw = int | float | bool | str
TEXT: Final = frozenset({"bits", "ascii"})
"""The types whose values are text, of as many bytes as a setting says."""

_FLOATS: Final = {"f32": Struct(">f"), "f64": Struct(">d")}


class Layout(NamedTuple):
    """The form of a value in a device's bytes, big-endian after `arrange`."""

    type: Type
    size_bytes: int
    order: Order = "ABCD"


def size_of(type_: Type) -> int | None:
    """Return the bytes of a type; None if a setting says them."""
    return None if type_ in TEXT else 1 if type_ == "bool" else int(type_[1:]) // 8


def check_order(layout: Layout) -> None:
    """Raise ValueError if the order is none for a value of this size."""
    order, size = layout.order, layout.size_bytes
    if len(order) != 4 and len(order) != size:
        raise ValueError(f"order {order} is for {len(order)} bytes, and {layout.type} has {size}")
    if size % 2 and order in ("CDAB", "BADC") and layout.type != "bool":
        raise ValueError(f"order {order} swaps pairs of bytes, and {layout.type} has {size}: ABCD or DCBA")


def check_shared_order(layout: Layout) -> None:
    """Raise ValueError if an order that all values of a table share says nothing of one of this size."""
    order, size = layout.order, layout.size_bytes
    if len(order) == 2 < size:
        wide = "BADC or DCBA" if order == "BA" else "ABCD or CDAB"
        raise ValueError(f"order {order} is for 2 bytes, and {layout.type} has {size}: write {wide}")


def arrange(data: bytes, layout: Layout) -> bytes:
    """Return the bytes of a value with the highest first; called again, it undoes that.

    In text, words keep their places, as devices store them in reading order.
    """
    order, size = layout.order, len(data)
    last_first = order[-1] == "A" or order == "BA"
    swaps_bytes = last_first or order.startswith("BA")
    swaps_words = (last_first or order[-2:] == "AB") and len(order) > 2 and layout.type != "ascii"
    if swaps_words and swaps_bytes:
        return data[::-1]
    if size % 2:
        return data
    if swaps_bytes:
        swapped = bytearray(size)
        swapped[::2], swapped[1::2] = data[1::2], data[::2]
        return bytes(swapped)
    if swaps_words:
        return b"".join(data[at : at + 2] for at in range(size - 2, -1, -2))
    return data


def unpack(data: bytes, layout: Layout) -> Raw:
    """Return the value in `size_bytes` bytes. Raises ValueError if they are none, such as text that is not
    ASCII."""
    return _READ[layout.type](arrange(data, layout))


def pack(value: Raw, layout: Layout) -> bytes:
    """Return the bytes of a value. Raises ValueError if it does not fit the type."""
    return arrange(_WRITE[layout.type](value, layout.size_bytes), layout)


def shortest32(value: float) -> str:
    """Return the shortest decimal that, rounded to 32 bits, is `value` again; `value` has 32 bits."""
    wanted = _FLOATS["f32"].pack(value)
    for digits in range(1 if abs(value) < 2e-38 else 6, 9):
        text = f"{value:.{digits}g}"
        try:
            if _FLOATS["f32"].pack(float(text)) == wanted:
                return text
        except OverflowError:
            continue
    return f"{value:.9g}"


def _read_bool(data: bytes) -> bool:
    return any(data)


def _read_float(form: Struct, data: bytes) -> float:
    return float(form.unpack(data)[0])


def _read_bits(data: bytes) -> str:
    return f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"


def _read_ascii(data: bytes) -> str:
    try:
        text = data.decode("ascii").rstrip("\0 ")
    except UnicodeDecodeError:
        raise ValueError("not ASCII") from None
    if not text.isprintable():
        raise ValueError("not printable")
    return text


def _write_bool(value: Raw, size: int) -> bytes:
    if value not in (0, 1):
        raise ValueError(f"{value} is neither 0 nor 1")
    return int(value).to_bytes(size, "big")


def _write_int(signed: bool, value: Raw, size: int) -> bytes:
    if not isinstance(value, int):
        raise ValueError(f"{value} is no integer")
    try:
        return value.to_bytes(size, "big", signed=signed)
    except OverflowError:
        raise ValueError(f"{value} does not fit {8 * size} bits") from None


def _write_float(form: Struct, value: Raw, size: int) -> bytes:
    if isinstance(value, str):
        raise ValueError("text is no number")
    try:
        return form.pack(value)
    except (OverflowError, StructError):
        raise ValueError(f"{value} does not fit {8 * size} bits") from None


def _write_bits(value: Raw, size: int) -> bytes:
    if not isinstance(value, str) or len(value) != 8 * size or set(value) - {"0", "1"}:
        raise ValueError(f"not {8 * size} characters 0 or 1")
    return int(value, 2).to_bytes(size, "big")


def _write_ascii(value: Raw, size: int) -> bytes:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ValueError("not text of ASCII")
    if len(value) > size:
        raise ValueError(f"{len(value)} characters, and there is room for {size}")
    return value.encode().ljust(size, b"\0")


_READ: Final[dict[str, Callable[[bytes], Raw]]] = {
    "bool": _read_bool,
    "bits": _read_bits,
    "ascii": _read_ascii,
    **{f"u{bits}": partial(int.from_bytes, byteorder="big") for bits in (8, 16, 24, 32, 48, 64)},
    **{f"i{bits}": partial(int.from_bytes, byteorder="big", signed=True) for bits in (8, 16, 24, 32, 48, 64)},
    **{key: partial(_read_float, form) for key, form in _FLOATS.items()},
}
_WRITE: Final[dict[str, Callable[[Raw, int], bytes]]] = {
    "bool": _write_bool,
    "bits": _write_bits,
    "ascii": _write_ascii,
    **{f"u{bits}": partial(_write_int, False) for bits in (8, 16, 24, 32, 48, 64)},
    **{f"i{bits}": partial(_write_int, True) for bits in (8, 16, 24, 32, 48, 64)},
    **{key: partial(_write_float, form) for key, form in _FLOATS.items()},
}
