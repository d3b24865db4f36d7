"""The shape of a status document: what its readers rely on. Pure.

Processes of other versions answer too, and any user's process may answer root.
"""

from typing import Any

_MOST = 1 << 62  # also as nanoseconds since 1970: the year 2116
_NUMBER, _TEXT, _YES = int, str, bool
_COUNTS = {_TEXT: _NUMBER}
_LINK = {"name": _TEXT, "live": _NUMBER, "received": _NUMBER, "sent": _NUMBER, "queued": _NUMBER} | {
    "dropped": _COUNTS, "rejected": _COUNTS, "balance": _NUMBER,
}  # fmt: skip
_STANDING = {"name": _TEXT, "order": _NUMBER, "ready": _YES, "holding": _YES, "silent_ms": _NUMBER}
_LEASE = {"bridge": _TEXT, "holder": _TEXT, "epoch": _NUMBER, "candidates": [_STANDING]}
_ROLE = {"bridge": _TEXT, "role": _TEXT, "ready": _YES, "cause": _TEXT} | {
    "epoch": _NUMBER, "holder": _TEXT, "takeovers": _NUMBER,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "time_ns": _NUMBER,
    "started_ns": _NUMBER,
    "pid": _NUMBER,
    "program": _TEXT,
    "topology": _TEXT,
    "gateway": _TEXT,
    "gateways": {_TEXT: _TEXT},
    "links": [{"name": _TEXT}],
    "hubs": [{"name": _TEXT, "cuts": [_TEXT], "links": [_LINK]}],
    "brokers": [{"name": _TEXT, "urls": [_TEXT], "counts": _COUNTS, "rejected": _COUNTS, "leases": [_LEASE]}],
    "candidates": [_ROLE],
    "events": [{"time_ns": _NUMBER, "kind": _TEXT, "source": _TEXT, "cause": _TEXT, "counts": _COUNTS}],
}


def fits(value: object, shape: Any = STATUS) -> bool:
    """Return whether a value has at least what `shape` has.

    A shape is a type; a list with the shape of its items; a record with a shape for each key that must be
    there; or `{str: shape}`, for a table of any keys.
    """
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape) and (not isinstance(value, int) or abs(value) <= _MOST)
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(fits(item, shape[str]) for item in value.values())
    return all(name in value and fits(value[name], inner) for name, inner in shape.items())
