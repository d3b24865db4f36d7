"""JSON bodies of DBP commands: objects, checked against bounds before they are built. Pure."""

import json
import re
from itertools import accumulate
from typing import Any, Final

from bus.text import finite_in
from devices.dbp.catalog.bounds import Bounds

# Also an unterminated one: linear for any text.
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_STEPS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}


def read_objects(raw: bytes, bounds: Bounds) -> dict[str, Any] | None:
    """Return the merged fields of one or more JSON objects back to back; the last of equal keys holds.

    Return None if they are not UTF-8, not objects, beyond the bounds, or have a number that is not finite.
    """
    try:
        text = raw.decode()
        return _merged(text) if _within(text, bounds) else None
    except (ValueError, RecursionError):  # bounds can be set beyond Python's own
        return None


def pack_object(fields: dict[str, Any]) -> bytes:
    """Return an object as JSON in ASCII, with blanks where the original implementation has them."""
    return json.dumps(fields, allow_nan=False).encode()


def _within(text: str, bounds: Bounds) -> bool:
    """Return whether depth and number of items are within the bounds, by the text alone."""
    bare = _STRING.sub("", text)
    depth = max(accumulate(_STEPS[letter] for letter in bare if letter in _STEPS), default=0)
    return depth <= bounds.depth and sum(map(bare.count, ",{[")) <= bounds.items


def _merged(text: str) -> dict[str, Any] | None:
    merged: dict[str, Any] | None = None
    at = _skip(text, 0)
    while at < len(text):
        fields, end = _DECODER.raw_decode(text, at)
        if not isinstance(fields, dict):
            return None
        merged = {**(merged or {}), **fields}
        at = _skip(text, end)
    return merged


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _refuse(constant: str) -> float:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(parse_float=finite_in, parse_constant=_refuse)  # no NaN, no Infinity
