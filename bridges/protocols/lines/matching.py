"""Matching of lines by RE2, whose work is linear in the line. The library is imported when it is needed."""

from typing import Any

from bridges.protocols.lines.places import DATA, SIGN, Shape, places_of
from bus.extras import lacking
from bus.key_types import Names
from bus.text import decoded

_MEMORY_BYTES = 1 << 20


def compiled(expression: str, is_text: bool) -> Any:
    """Return a compiled expression, for bytes. `is_text`: they are UTF-8; else each byte is a character.

    Raises ValueError, with the reason, for an expression that RE2 does not know, and ImportError, which says
    what to do, without the library.
    """
    try:
        import re2
    except ImportError as error:
        raise ImportError(lacking("match", "google-re2", "lines")) from error

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    options.encoding = re2.Options.Encoding.UTF8 if is_text else re2.Options.Encoding.LATIN1
    try:
        return re2.compile(expression.encode(), options)
    except re2.error as error:
        why = error.args[0] if error.args else error
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise ValueError(f"{expression[:64]}: RE2 does not take it: {text}") from error


class Finder:
    """An expression that a line begins with, and the pattern of such lines."""

    def __init__(self, expression: str, names: Names, is_text: bool) -> None:
        self._expression, self._shape = compiled(expression, is_text), Shape(names)
        numbers = {_name(name): number for name, number in self._expression.groupindex.items()}
        self._data = numbers.get(DATA)
        self._sign = None if SIGN in places_of(names) else numbers.get(SIGN)

    def find(self, line: bytes) -> tuple[tuple[int, ...], bytes] | None:
        """Return the tokens and the data of a line; None if it does not match.

        A group that is empty, or that is not there, is no token, so the line does not match.
        """
        match = self._expression.match(line)
        if match is None:
            return None
        groups = {_name(name): value for name, value in match.groupdict().items()}
        try:
            tokens = self._shape.tokens({name: decoded(value) for name, value in groups.items() if value})
        except KeyError:
            return None
        minus = b"-" if self._is_apart(match) and groups.get(SIGN) == b"-" else b""
        return tokens, minus + (groups.get(DATA, line) or b"")

    def _is_apart(self, match: Any) -> bool:
        """Return whether the sign comes before the data, and is no part of them already."""
        if self._sign is None or self._data is None:
            return False
        (at, _), (start, end) = match.span(self._sign), match.span(self._data)
        return not start <= at < end


def _name(name: "str | bytes") -> str:
    return name.decode() if isinstance(name, bytes) else name
