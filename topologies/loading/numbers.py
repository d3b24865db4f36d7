"""Numbers in YAML that may be read as other numbers than they are meant. Pure.

By the rules of YAML 1.1, which PyYAML has, `010` is 8, `12:30` is 750, and `1e3` and `0o17` are text; YAML
1.2 says otherwise. So a number is written plainly: in decimal digits, or in hexadecimal digits after `0x`.
"""

import math
import re

_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*([eE][+-][0-9]+)?)?|0x[0-9a-fA-F]+")
_NUMBER = re.compile(
    r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|\.[0-9][0-9_]*(e[-+]?[0-9]+)?"
    r"|[0-9][0-9_]*(:[0-9_]+)*(\.[0-9_]*)?(e[-+]?[0-9]+)?)",
    re.IGNORECASE,
)
_CHARACTERS = 40
_EXACT = 1 << 53
_BASES = {"0b": 2, "0o": 8, "0x": 16}


def unclear(text: str) -> str:
    """Return why a number may not be the one that is meant, and what to write instead.

    Return "" for a plain number, and for text that no version of YAML takes for a number.
    """
    if _PLAIN.fullmatch(text) or not _NUMBER.fullmatch(text):
        return ""
    return f'"{text[:_CHARACTERS]}" {_why(text)}: write {_plainly(text) or "the plain number"}'


def _why(text: str) -> str:
    if ":" in text:
        return "is read as a number to the base 60"
    if re.fullmatch("[-+]?0[0-9_]+", text):
        return "begins with 0, which YAML reads to the base 8"
    return "is not a plain number"


def _plainly(text: str) -> str:
    """Return the plain number that is meant; "" if that is not certain."""
    text = text.replace("_", "").lower()
    if len(text) > _CHARACTERS:
        return ""
    try:
        based = re.fullmatch("([-+]?)(0[box])(.+)", text)
        number: float = int(based[1] + based[3], _BASES[based[2]]) if based else float(text)
    except ValueError:  # to the base 60, or without a digit
        return ""
    whole = int(number) if abs(number) < _EXACT else 0
    return f"{whole}" if whole == number else f"{number!r}" if math.isfinite(number) else ""
