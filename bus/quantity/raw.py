"""Numbers and text as devices store them: types, the order of their bytes, and bits in them. Pure."""

from collections.abc import Callable
from functools import partial
from math import ldexp
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
    "f16",
    "f32",
    "f64",
    "bcd8",
    "bcd16",
    "bcd24",
    "bcd32",
    "bcd48",
    "bcd64",
    "linear11",
    "bits",
    "ascii",
]
"""The types of values: `u`, `i` and `f` are unsigned, signed and floating, with their bits. `bcd` has a
decimal digit in every four bits, `linear11` is that of PMBus: a signed power of two in the upper five bits,
and a signed integer in the other eleven. `bits` are one character `0` or `1` for each bit, the highest first;
`ascii` is text, without the zeros and spaces at its end."""

Order = Literal["AB", "BA", "ABCD", "CDAB", "BADC", "DCBA", "ABCDEFGH", "GHEFCDAB", "BADCFEHG", "HGFEDCBA"]
"""The order in which a device sends the bytes of a value whose highest is A. Those of four letters are for
values of any size: what they say of words (two bytes) and of the bytes in a word holds."""

Raw = int | float | bool | str
TEXT: Final = frozenset({"bits", "ascii"})
"""The types whose values are text, of as many bytes as a setting says."""

FLOATS: Final = frozenset({"f16", "f32", "f64", "linear11"})
"""The types whose numbers have a power of two of their own."""

_WIDTHS: Final = (8, 16, 24, 32, 48, 64)
_FLOATS: Final = {"f16": Struct(">e"), "f32": Struct(">f"), "f64": Struct(">d")}
_DIGITS: Final = {"f16": (3, 5, 6.2e-5), "f32": (6, 9, 2e-38)}
"""The digits of a float: how many it surely keeps, how many tell it from others, and below what it has fewer.
"""


class Layout(NamedTuple):
    """The form of a value in a device's bytes, big-endian after `arrange`."""

    type: Type
    size_bytes: int
    order: Order = "ABCD"


def size_of(type_: Type) -> int | None:
    """Return the bytes of a type; None if a setting says them."""
    if type_ in TEXT:
        return None
    return {"bool": 1, "linear11": 2}.get(type_) or int(type_.lstrip("bcdfiu")) // 8


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
    has_swapped = swaps_bytes(order)
    swaps_words = (last_first or order[-2:] == "AB") and len(order) > 2 and layout.type != "ascii"
    if swaps_words and has_swapped:
        return data[::-1]
    if size % 2:
        return data
    if has_swapped:
        swapped = bytearray(size)
        swapped[::2], swapped[1::2] = data[1::2], data[::2]
        return bytes(swapped)
    if swaps_words:
        return b"".join(data[at : at + 2] for at in range(size - 2, -1, -2))
    return data


def swaps_bytes(order: Order) -> bool:
    """Tell whether the low byte of each word comes first."""
    return order.index("A") % 2 == 1


def unpack(data: bytes, layout: Layout) -> Raw:
    """Return the value in `size_bytes` bytes. Raises ValueError if they are none, such as text that is not
    ASCII."""
    return _READ[layout.type](arrange(data, layout))


def pack(value: Raw, layout: Layout) -> bytes:
    """Return the bytes of a value. Raises ValueError if it does not fit the type."""
    return arrange(_WRITE[layout.type](value, layout.size_bytes), layout)


def part(whole: int, bits: tuple[int, int], type_: Type) -> Raw:
    """Return the value that stands in some bits of a number, from the lowest to the highest, 0 the lowest.

    Of a `bool` it is true if any is set. Raises ValueError if they are no value of the type.
    """
    width = bits[1] - bits[0] + 1
    found = whole >> bits[0] & (1 << width) - 1
    if type_ == "bool":
        return found != 0
    if type_.startswith("bcd"):
        return _digits(f"{found:x}")
    return found - (1 << width) if type_[0] == "i" and found >> width - 1 else found


def shortest(value: float, type_: Type) -> str:
    """Return the shortest decimal that is `value` again when it is rounded to its type, `f16` or `f32`."""
    form, (sure, most, small) = _FLOATS[type_], _DIGITS[type_]
    wanted = form.pack(value)
    for digits in range(1 if abs(value) < small else sure, most):
        text = f"{value:.{digits}g}"
        try:
            if form.pack(float(text)) == wanted:
                return text
        except OverflowError:
            continue
    return f"{value:.{most}g}"


def _read_bool(data: bytes) -> bool:
    return any(data)


def _read_float(form: Struct, data: bytes) -> float:
    return float(form.unpack(data)[0])


def _read_bcd(data: bytes) -> int:
    return _digits(data.hex())


def _digits(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("not decimal digits")
    return int(text)


def _read_linear11(data: bytes) -> float:
    whole = int.from_bytes(data, "big")
    return ldexp(int(part(whole, (0, 10), "i16")), int(part(whole, (11, 15), "i16")))


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


def _write_bcd(value: Raw, size: int) -> bytes:
    if not isinstance(value, int):
        raise ValueError(f"{value} is no integer")
    if not 0 <= value < 100**size:
        raise ValueError(f"{value} does not fit {2 * size} digits")
    return bytes.fromhex(f"{int(value):0{2 * size}d}")


def _write_linear11(value: Raw, size: int) -> bytes:
    """Return the form with the largest integer, as drivers of PMBus write it."""
    if isinstance(value, str):
        raise ValueError("text is no number")
    if not value:
        return bytes(size)
    for power in range(-16, 16) if abs(value) <= 1 << 25 else ():
        if (scaled := ldexp(value, -power)).is_integer() and -1024 <= scaled <= 1023:
            return ((power & 31) << 11 | int(scaled) & 0x7FF).to_bytes(size, "big")
    raise ValueError(f"{value} is no number of linear11, which has 11 bits")


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
    "linear11": _read_linear11,
    "ascii": _read_ascii,
    **{f"u{bits}": partial(int.from_bytes, byteorder="big") for bits in _WIDTHS},
    **{f"i{bits}": partial(int.from_bytes, byteorder="big", signed=True) for bits in _WIDTHS},
    **{f"bcd{bits}": _read_bcd for bits in _WIDTHS},
    **{key: partial(_read_float, form) for key, form in _FLOATS.items()},
}
_WRITE: Final[dict[str, Callable[[Raw, int], bytes]]] = {
    "bool": _write_bool,
    "bits": _write_bits,
    "linear11": _write_linear11,
    "ascii": _write_ascii,
    **{f"u{bits}": partial(_write_int, False) for bits in _WIDTHS},
    **{f"i{bits}": partial(_write_int, True) for bits in _WIDTHS},
    **{f"bcd{bits}": _write_bcd for bits in _WIDTHS},
    **{key: partial(_write_float, form) for key, form in _FLOATS.items()},
}
