"""Names of tokens: how a pattern is written as one word, and the table that shows tokens by name. Pure.

A pattern is one word with parts between slashes: `fridge/temp/7`. A part of digits, or of `0x` and hex
digits, is that token. A part in double quotes, and any other part, is a name. `/` is the empty pattern.
A token is shown by its name, or without one as `0x` and eight hex digits.
"""

import re
from collections.abc import Iterable
from typing import Final, get_args

from bus import events, loops
from bus.errors import TokenError
from bus.wire.pattern import Pattern, hexadecimal, token

RESERVED: Final = ("buscoupler", "event", *get_args(events.Kind), loops.NAME, "traffic", "alert")
"""Names that the product itself sends on: its events, its canaries, test traffic, and alerts of `watch`."""

_NUMBER: Final = re.compile("[0-9]+|0[xX][0-9a-fA-F]+")
_PART: Final = re.compile(r'("[^"]*"|[^/]*)(?:/|$)')
_COMMENT: Final = re.compile(r"(^|\s)#.*$")


def name_of(part: str) -> int | str:
    """Return the name or token that a part of a pattern means. Raises `TokenError` for too large a number."""
    if len(part) > 1 and part[0] == part[-1] == '"':
        return part[1:-1]
    if _NUMBER.fullmatch(part):
        return token(int(part, 16 if part[1:2] in ("x", "X") else 10))
    return part


def names_in(word: str) -> list[int | str]:
    """Split a pattern's word into names and tokens. Raises `TokenError` for an empty part."""
    parts = _PART.findall(f"{word}/")[:-1] if word not in ("", "/") else []
    if not all(parts):
        raise TokenError(f"{word!r}: a part between slashes is empty: write it like fridge/temp/7")
    return [name_of(part) for part in parts]


def pattern_of(word: str) -> Pattern:
    """Return the pattern that `word` means. Raises `TokenError`."""
    return Pattern(*names_in(word))


def written(name: int | str) -> str:
    """Return one part of a pattern that `names_in` reads as this name. A token is written in hex.

    So is the token of a name that cannot be written: an unprintable one, or one with a quote and a slash.
    """
    if isinstance(name, str) and name.isprintable():
        for word in (name, f'"{name}"'):
            if name and names_in_or_none(word) == [name]:
                return word
    return hexadecimal(token(name))


def names_in_or_none(word: str) -> list[int | str] | None:
    """Return what `names_in` does, or None instead of an error."""
    try:
        return names_in(word)
    except TokenError:
        return None


def names_from(lines: Iterable[str]) -> list[int | str]:
    """Read one name a line. A comment begins with a `#` at the start of a line or after a blank."""
    stripped = (_COMMENT.sub("", line).strip() for line in lines)
    return [name_of(line) for line in stripped if line]


class Names:
    """A table of known names, to show tokens by name. The reserved ones are always known."""

    __slots__ = ("_by_token",)

    def __init__(self, names: Iterable[int | str] = ()) -> None:
        self._by_token: dict[int, tuple[str, ...]] = {}
        for name in dict.fromkeys((*RESERVED, *names)):
            if isinstance(name, str):
                number = token(name)
                self._by_token[number] = (*self._by_token.get(number, ()), name)

    def get(self, number: int) -> str | None:
        """Return the name of a token, None if none is known. Names that share it are joined: `a | b`."""
        found = self._by_token.get(number)
        return " | ".join(sorted(found)) if found else None

    def word(self, number: int) -> str:
        """Return a token as one part of a pattern: its name, or hex; `a|b` if two share it."""
        found = self._by_token.get(number)
        return "|".join(map(written, sorted(found))) if found else hexadecimal(number)

    def show(self, tokens: Iterable[int]) -> str:
        """Return a pattern as the word that `pattern_of` reads, if no two names in it share a token."""
        return "/".join(map(self.word, tokens)) or "/"
