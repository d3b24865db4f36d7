"""Rows as lines of JSON (RFC 8259), which has no numbers that are not finite. Pure."""

import json
from collections.abc import Callable
from math import isfinite
from typing import Any


def line(value: Any, default: Callable[[Any], str]) -> str:
    """Return a value as a line of JSON, null for NaN and for infinity; `default` shows what JSON lacks."""
    return json.dumps(_finite(value), default=default, allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {key: _finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
    return value
