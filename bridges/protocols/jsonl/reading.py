"""Reading of one JSON text within bounds, with its numbers as they were written. Pure (RFC 8259)."""

import json
import re
from typing import Any

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_OPEN = "[{"


class Unreadable(ValueError):
    """A text that is not taken; `args[0]` is the reason in a word or two."""


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def read(line: bytes, depth: int) -> Any:
    """Return the value of a JSON text; its numbers are of the class `Number`.

    Raises `Unreadable`: `encoding` (no UTF-8), `depth`, `member twice`, `not finite` (NaN, Infinity), or
    `no json`.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise Unreadable("encoding") from None
    if _is_deeper(text, depth):
        raise Unreadable("depth")
    try:
        return json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except Unreadable:
        raise
    except ValueError:
        raise Unreadable("no json") from None


def written(value: Any) -> str:
    """Return a value as text: of a text its characters, of a number what was written, else compact JSON."""
    return value if isinstance(value, str) else compact(value)


def compact(value: Any) -> str:
    """Return a value that `read` returned as compact JSON. Its depth is bounded by that of the reading."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{compact(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return _quoted(value)


def _quoted(value: "str | bool | None") -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_deeper(text: str, depth: int) -> bool:
    """Return whether more than `depth` objects and lists are within each other."""
    if text.count("[") + text.count("{") <= depth:
        return False
    now = 0
    for sign in re.findall(r"[\[\]{}]", _TEXT.sub("", text)):
        now += 1 if sign in _OPEN else -1
        if now > depth:
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Unreadable("member twice")
    return made


def _refuse(constant: str) -> Any:
    raise Unreadable("not finite")
