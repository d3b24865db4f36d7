"""The time as text in messages of DBP: seconds since 1970, decimal. Pure."""

import re
from typing import Final

_DECIMAL: Final = re.compile(rb"[0-9]{1,12}(\.[0-9]{1,9})?")


def is_decimal(time: bytes) -> bool:
    """Return whether a frame has a time as text."""
    return _DECIMAL.fullmatch(time) is not None


def decimal(wall_s: float) -> bytes:
    """Return a time as text, in microseconds."""
    return b"%.6f" % wall_s
