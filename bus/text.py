"""Text for people: what somebody else wrote, made fit for a terminal and a log, and words that were meant.

Pure.
"""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 64  # difflib takes quadratic time for long input, which is no typing mistake anyway
_LISTED = 24


def closest(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """Return the known word that is most like `word`; "" if none is at least so like it, from 0 to 1."""
    return next(iter(get_close_matches(word[:_LONGEST], sorted(known), cutoff=likeness)), "")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "right"?`, or the known words if none is similar; "" if none are known."""
    words = sorted(known)
    if near := closest(word, words):
        return f'; did you mean "{near}"?'
    return f"; known here: {', '.join(words[:_LISTED])}" if words else ""


def hidden_in(text: str) -> str:
    """Name the first character of `text` that is no sign and no blank, such as `U+000A`; "" if none is."""
    if text.isprintable():
        return ""
    found = (one for one in text if not one.isprintable() and unicodedata.category(one) != "Zs")
    return next((f"U+{ord(one):04X}" for one in found), "")


def plain(text: str) -> str:
    """Return `text` with `?` in place of each character that would move a cursor, or cannot be written."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def plain_lines(text: str) -> str:
    """Return `text` as `plain` does, with its lines."""
    return "\n".join(map(plain, text.split("\n")))
