"""Times as text in messages of DBP: decimal seconds since 1970. Pure."""

import re
from typing import Final

_DECIMAL: Final = re.compile(rb"[0-9]{1,12}(\.[0-9]{1,9})?")


def is_decimal(time: bytes) -> bool:
    """Return whether a frame is a time as text."""
    return _DECIMAL.fullmatch(time) is not None


def decimal(wall_s: float) -> bytes:
    """Return a time as text, with six decimals."""
    return b"%.6f" % wall_s
