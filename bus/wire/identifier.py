"""The identifier of a CAN frame as a token: the `canid_t` of SocketCAN (linux/can.h), and how it is written.

`0x123` is a standard identifier; `x` behind it says that it is extended, `r` that the frame is a remote one:
`0x18fef100x`, `0x123r`. Pure.
"""

import re
from typing import Final

from bus.errors import TokenError
from bus.wire.pattern import hexadecimal

EXTENDED, REMOTE, ERROR = 1 << 31, 1 << 30, 1 << 29
"""The top bits of a CAN identifier."""
KINDS = EXTENDED | REMOTE | ERROR
STANDARD_MAX = (1 << 11) - 1
IDENTIFIER = (1 << 29) - 1

_WORD: Final = re.compile("0[xX]([0-9a-fA-F]{1,16})(x|r|xr|rx)")
_STANDARD: Final = re.compile("0[xX][0-7][0-9a-fA-F]{2}")


class Identifier(int):
    """A token that is written as the identifier of a CAN frame."""

    def __str__(self) -> str:
        return identifier_word(self)

    __repr__ = __str__


def is_identifier(number: int) -> bool:
    """Tell whether a token is the identifier of a frame: a standard or an extended one, of no error frame."""
    return not number & ERROR and (number & IDENTIFIER <= STANDARD_MAX or bool(number & EXTENDED))


def identifier_word(number: int) -> str:
    """Return a token as `identifier_in` or a plain number reads it: `0x123`; of no identifier all digits."""
    identifier = number & IDENTIFIER
    if not is_identifier(number):
        return hexadecimal(int(number))
    return f"{identifier:#05x}{'x' if number & EXTENDED else ''}{'r' if number & REMOTE else ''}"


def identifier_in(text: str) -> Identifier | None:
    """Return the token of an identifier with `x` or `r`, or of three hex digits; None for other text.

    So the token of a standard identifier is shown as it was written, `0x181`. Raises `TokenError` if one with
    `x` or `r` is out of range.
    """
    if _STANDARD.fullmatch(text):
        return Identifier(int(text, 16))
    found = _WORD.fullmatch(text)
    if found is None:
        return None
    number, kind = int(found[1], 16), found[2]
    if number > (IDENTIFIER if "x" in kind else STANDARD_MAX):
        most = "0x1fffffffx" if "x" in kind else "0x7ff, and extended ones end with x"
        raise TokenError(f"{text} is no CAN identifier: they go up to {most}")
    return Identifier(number | (EXTENDED if "x" in kind else 0) | (REMOTE if "r" in kind else 0))
