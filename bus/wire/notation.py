"""The notation of patterns as one word, in files and on the command line.

A pattern is one word with parts between slashes: `fridge/temp/7`. A part of digits, or of `0x` and hex
digits, is that token; with `x` or `r` behind, it is the identifier of a CAN frame. A part in double
quotes, and any other part, is a name. `/` is the empty pattern.
"""

import re
from collections.abc import Iterable
from typing import Final

from bus.errors import TokenError
from bus.wire.identifier import Identifier, identifier_in, identifier_word
from bus.wire.pattern import Pattern, hexadecimal, token

_NUMBER: Final = re.compile("[0-9]+|0[xX][0-9a-fA-F]+")
_NUMBER_CHARACTERS: Final = 64  # Python itself refuses to read a very long one, in other words
_PART: Final = re.compile(r'("[^"]*"|[^/]*)(?:/|$)')
_HALF: Final = re.compile("[\ud800-\udfff]")
_WILDCARDS: Final = ("#", "+", "*", "**")  # of MQTT and of key expressions


def name_of(part: str) -> int | str:
    """Return the name or token that a part of a pattern means. Raises `TokenError` for too large a number."""
    if len(part) > 1 and part[0] == part[-1] == '"':
        return part[1:-1]
    if (identifier := identifier_in(part)) is not None:
        return identifier
    if _NUMBER.fullmatch(part):
        if len(part) > _NUMBER_CHARACTERS:
            raise TokenError(f"{part[:_NUMBER_CHARACTERS]}... is not a token: it is above 4294967295")
        return token(int(part, 16 if part[1:2] in ("x", "X") else 10))
    return part


def token_in(text: str) -> int:
    """Return the token of any text: a number if it is written like one in a pattern, else that of a name."""
    try:
        return token(text if text.startswith('"') else name_of(text))
    except TokenError:
        return token(text)


def names_in(word: str) -> list[int | str]:
    """Split a pattern's word into names and tokens. Raises `TokenError` for an empty part, a wildcard, or
    what is no Unicode text."""
    if _HALF.search(word):  # a byte of the command line
        raise TokenError(f"{word!r}: not UTF-8 text")
    parts = _PART.findall(f"{word}/")[:-1] if word not in ("", "/") else []
    if not all(parts):
        raise TokenError(f"{word!r}: a part between slashes is empty: write it like fridge/temp/7")
    check_wildcards(parts)
    return [name_of(part) for part in parts]


def check_wildcards(parts: Iterable[str]) -> None:
    """Raise `TokenError` if a part of a pattern is a wildcard of another system."""
    if found := next((part for part in parts if part in _WILDCARDS), None):
        why = "a pattern matches every frame that starts with it"
        raise TokenError(f"{found} is no wildcard here: {why}, so end it before {found} (/ matches all)")


def pattern_of(word: str) -> Pattern:
    """Return the pattern that `word` means. Raises `TokenError`."""
    return Pattern(*names_in(word))


def written(name: int | str) -> str:
    """Return one part of a pattern that `names_in` reads as this name. A token is written in hex.

    A name that cannot be written is given by its token: an unprintable one, or one with a quote and a slash.
    """
    if isinstance(name, str) and name.isprintable():
        for word in (name, f'"{name}"'):
            if name and names_in_or_none(word) == [name]:
                return word
    return identifier_word(name) if isinstance(name, Identifier) else hexadecimal(token(name))


def text_of(names: Iterable[int | str]) -> str:
    """Return a pattern as the word that `names_in` reads."""
    return "/".join(map(written, names)) or "/"


def names_in_or_none(word: str) -> list[int | str] | None:
    """Return the names that `names_in` returns, or None instead of an error."""
    try:
        return names_in(word)
    except TokenError:
        return None
