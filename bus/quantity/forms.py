"""Values as the data of frames: as text, as a number of 8 bytes, or as JSON. Pure."""

import json
import re
from collections.abc import Callable, Collection
from decimal import Decimal
from math import isfinite
from struct import Struct
from typing import Any, Final, Literal, NoReturn

from bus.quantity.scale import Number, decimal_of

Form = Literal["text", "number", "json"]
"""The forms of the data of a frame. `text`: the shortest decimal that reads back exactly, `nan`, `inf`, or
text itself. `number`: an IEEE 754 double, big-endian. `json`: an object with `v`, `unit` and `t`."""

Value = Number | bool | str

_DOUBLE: Final = Struct(">d")
_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_FIXED: Final = range(-7, 21)  # the powers of ten of numbers that are written without an exponent


def text_of(value: Value) -> str:
    """Return a value as text: numbers as their shortest decimal, truth as `1` and `0`."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return _decimal(decimal_of(value))


def _decimal(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # it is finite
    figures = "".join(map(str, digits))
    shown = figures.rstrip("0")
    if not shown:
        return "-0" if sign else "0"
    exponent += len(figures) - len(shown)
    power = exponent + len(shown) - 1
    minus = "-" if sign else ""
    if power not in _FIXED:
        return f"{minus}{shown[0]}{'.' if shown[1:] else ''}{shown[1:]}e{power}"
    if exponent >= 0:
        return f"{minus}{shown}{'0' * exponent}"
    whole, part = shown[: power + 1] if power >= 0 else "0", shown[max(0, power + 1) :]
    return f"{minus}{whole}.{'0' * max(0, -power - 1)}{part}"


def write(form: Form, value: Value, unit: str = "", unix_s: float = 0.0) -> bytes:
    """Return the data of a frame for a value that was measured at `unix_s`, in seconds since 1970.

    Raises ValueError for text as a `number`, which `check` refuses before.
    """
    if form == "text":
        return text_of(value).encode()
    if form == "number":
        if isinstance(value, str):
            raise ValueError("text is no number of 8 bytes")
        return _DOUBLE.pack(_double(value))
    text = f'{{"v":{_json(value)},"unit":{json.dumps(unit, ensure_ascii=False)},"t":{round(unix_s, 6)!r}}}'
    return text.encode()


def _double(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _json(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "null" if isinstance(value, float) and not isfinite(value) else text_of(value)


def read(form: Form, data: bytes, texts: Collection[str] = ()) -> int | Decimal | bool | str:
    """Return the value in the data of a frame. Raises ValueError, with the reason, for anything else, also
    for what is not finite.

    `text` that is a number is an integer or a decimal; other text is returned unchanged, and so is what is
    one of `texts`, such as the name "9600" of the number 1.
    """
    if texts and form == "text" and (text := text_in(data)) in texts:
        return text
    return _READ[form](data)


def _read_text(data: bytes) -> int | Decimal | str:
    text = text_in(data)
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise ValueError(f"{text} is not finite")
    return _number(text) if _NUMBER.fullmatch(text) else text


def _number(text: str) -> int | Decimal:
    if text.lstrip("+-").isdigit():
        return Decimal("-0") if text.startswith("-") and not int(text) else int(text)
    return Decimal(text)


def _read_number(data: bytes) -> Decimal:
    if len(data) != 8:
        raise ValueError(f"{len(data)} bytes, and a number has 8")
    value = float(_DOUBLE.unpack(data)[0])
    if not isfinite(value):
        raise ValueError(f"{value} is not finite")
    return decimal_of(value)


def _read_json(data: bytes) -> int | Decimal | bool | str:
    try:
        read: Any = json.loads(
            text_in(data), parse_float=_json_number, parse_int=_json_number, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("no JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    value = read.get("v") if isinstance(read, dict) else read
    if isinstance(value, str):
        return text_in(value.encode(errors="surrogatepass"))  # half of a pair is no character
    if isinstance(value, int | Decimal):
        return value
    raise ValueError('no JSON value: a number, text, true or false, or an object that has one as "v"')


def _json_number(text: str) -> int | Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError("a number too long")
    return _number(text)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not finite")


def text_in(data: bytes) -> str:
    """Return data as text. Raises ValueError if they are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("no UTF-8") from None


_READ: Final[dict[str, Callable[[bytes], int | Decimal | bool | str]]] = {
    "text": _read_text,
    "number": _read_number,
    "json": _read_json,
}
