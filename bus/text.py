"""Text for people: what somebody else wrote, made fit for a terminal and a log, and words that were meant.

Pure.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any, Final

_LONGEST = 64  # difflib takes quadratic time for long input, which is no typing mistake anyway
_LISTED = 24
_SAID_LETTERS = 120
SAID_BYTES: Final = 256
"""The bytes that are kept of what somebody said: a fault quotes them, and noise is judged by them."""
_DIGITS = 20  # of 64 bits; Python refuses to read thousands of them
_END_OF_LINE = re.compile("\r\n|\n|\r")
_SIGN = re.compile(r"\\(?:([0abefnrtv\\])|x([0-9a-fA-F]{2}))")
_SIGNS: Final = dict(zip("0abefnrtv\\", "\0\a\b\x1b\f\n\r\t\v\\", strict=True))
# Options (RFC 854), which servers offer before they speak.
_TELNET = re.compile(rb"\xff[\xfb-\xfe].", re.DOTALL)
BLANKS: Final = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
"""All blanks but that of ASCII, category Zs of Unicode. `unicodedata` knows them too, but takes 0.2 MiB."""
MARK: Final = b"\xef\xbb\xbf"
"""The mark of the byte order that editors of Windows put in front of a text in UTF-8."""


def amount(count: int, what: str) -> str:
    """Return how many things there are, where `what` is one of them: `1 frame`, `2 frames`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def closest(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """Return the known word that is most like `word`; "" if none is at least so like it, from 0 to 1."""
    from difflib import get_close_matches  # a gateway that starts has no need of it

    return next(iter(get_close_matches(word[:_LONGEST], sorted(known), cutoff=likeness)), "")


def nearest(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """Return `; did you mean "right"?`, or the known words if none is so like it; "" if none are known."""
    words = sorted(known)
    if near := closest(word, words, likeness):
        return f'; did you mean "{near}"?'
    return f"; known here: {', '.join(words[:_LISTED])}" if words else ""


def fits(name: str, wanted: str) -> bool:
    """Return whether a name fits one in which `*` and `?` stand for any characters; brackets are letters."""
    return fnmatchcase(name, wanted.replace("[", "[[]"))


def whole_in(text: str, most: int) -> int | None:
    """Return the whole number in a text of at most 20 ASCII digits, up to `most`; None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    number = int(text)
    return number if number <= most else None


def finite_in(text: str) -> float:
    """Return the number that a text of digits is. Raises ValueError for one that is no finite double."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def signs_in(text: str) -> str:
    """Return a text with signs in place of what stands for them, as `\\r`; quotes around that are dropped."""
    found = _SIGN.sub(lambda one: _SIGNS[one[1]] if one[1] else chr(int(one[2], 16)), text)
    quoted = found != text and len(text) > 2 and text[0] == text[-1] == '"'
    return found[1:-1] if quoted else found


def hidden_in(text: str) -> str:
    """Name the first character of `text` that is no sign and no blank, such as `U+000A`; "" if none is."""
    if text.isprintable():
        return ""
    found = (one for one in text if not one.isprintable() and one not in BLANKS)
    return next((f"U+{ord(one):04X}" for one in found), "")


def plain(text: str) -> str:
    """Return `text` with `?` in place of each character that would move a cursor, or cannot be written."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def markup(text: str) -> str:
    """Return `text`, as `plain` shows it, for the content of an element of HTML or SVG."""
    return escaped(plain(text))


def escaped(text: str) -> str:
    """Return `text` with `&`, `<` and `>` as entities. `html` can do so too, but takes half a MiB."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain_values(value: Any) -> Any:
    """Return a value of JSON with all texts in it as `plain` shows them."""
    match value:
        case str():
            return plain(value)
        case dict():
            return {plain_values(key): plain_values(one) for key, one in value.items()}
        case list() | tuple():
            return [plain_values(one) for one in value]
    return value


def lines_in(text: str) -> list[str]:
    """Return the lines of a text of a user, without their ends: LF, CR LF or CR.

    `str.splitlines` takes further characters for ends, which no editor shows as such.
    """
    lines = _END_OF_LINE.split(text)
    return lines if lines[-1] else lines[:-1]


def plain_lines(text: str) -> str:
    """Return `text` as `plain` does, with its lines."""
    return "\n".join(map(plain, text.split("\n")))


def decoded(data: bytes) -> str:
    """Return bytes as text: UTF-8, or else Latin-1, as old devices and programs write it."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def said(data: bytes) -> str:
    """Return the beginning of what a peer said as one line, fit for a log; "" if it is not plain text."""
    text = _TELNET.sub(b"", data).decode(errors="replace")
    words = " ".join(text.split())
    strange = sum(not letter.isprintable() or letter == "\ufffd" for letter in words)
    return plain(words)[:_SAID_LETTERS] if 10 * strange < len(words) else ""


def quoting(fault: str, data: bytes) -> str:
    """Return why a foreign peer was refused, with what it said, if that was plain text."""
    words = said(data)
    return f"{fault}; it said: {words}" if words else fault


def after(fault: str, data: bytes) -> str:
    """Return why a connection ended, with what the peer said before, if that was plain text."""
    words = said(data)
    return f"{fault} after: {words}" if words else fault
