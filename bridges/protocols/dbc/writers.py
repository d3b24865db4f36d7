"""Writers of frames: values of signals as the data of frames. Pure."""

import json
from collections.abc import Callable, Sequence
from math import isfinite
from struct import Struct
from typing import Final

from bridges.protocols.dbc.values import Value, text
from bus.quantity.forms import Form, write
from bus.wire.frame import DATA_BYTES_MAX, PUB, pack

Writer = Callable[[Value, float], bytes]
"""A function that makes a frame of a value, which was on the wire at a time on the monotonic clock in
seconds."""

_DOUBLE: Final = Struct(">d").pack
_LENGTHS: Final = tuple(size.to_bytes(2, "big") for size in range(DATA_BYTES_MAX + 1))


def writer(form: Form, tokens: Sequence[int], unit: str, unix_s: Callable[[float], float]) -> Writer:
    """Return the writer of the values of one signal, which are published under `tokens`."""
    empty = pack(PUB, tokens)
    head, tail = empty[:2], empty[4:]
    if form == "text":

        def write_text(value: Value, now_s: float) -> bytes:
            data = text(value).encode()
            return head + _LENGTHS[len(data)] + tail + data

        return write_text
    if form == "number":
        start = head + _LENGTHS[8] + tail
        return lambda value, now_s: start + _DOUBLE(value)

    def write_json(value: Value, now_s: float) -> bytes:
        data = write(form, value, unit, unix_s(now_s))
        return head + _LENGTHS[len(data)] + tail + data

    return write_json


def write_all(
    tokens: Sequence[int], names: Sequence[str], values: Sequence[Value | None], unix_s: float
) -> bytes | None:
    """Return a frame with the values of all signals of a message; None if that is too long for a frame."""
    known = {name: _plain(value) for name, value in zip(names, values, strict=True) if value is not None}
    data = json.dumps({"v": known, "t": round(unix_s, 6)}, ensure_ascii=False, separators=(",", ":")).encode()
    return pack(PUB, tokens, data) if len(data) <= DATA_BYTES_MAX else None


def _plain(value: Value) -> Value | None:
    """Return a value for JSON, which has no infinity."""
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
