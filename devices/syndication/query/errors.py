"""The error of a wrong query: what is wrong, in words, and at which character. Pure."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from bus.errors import BusError

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput

_END: Final = "$END"
_FOUND_LETTERS: Final = 24
_PHRASES: Final = (  # the meaning of each set of terminals; the first set that fits takes its terminals away
    ({"KEY", "STRING", "_HAS", "_NOT"}, "a condition"),
    ({"STRING", "NUMBER", "BOOLEAN"}, "a value (text in quotes, a number, true or false)"),
    ({"KEY", "STRING"}, "a key"),
    ({"STRING"}, "a pattern in quotes"),
    ({"EQUALS"}, '"="'),
    ({"DIFFERS"}, '"!="'),
    ({"_LIKE"}, '"like"'),
    ({"_COMMA"}, '","'),
    ({"_CLOSE_LIST"}, '"]"'),
    ({"_IN"}, '"in"'),
    ({"_AND"}, '"and"'),
    ({"_OR"}, '"or"'),
    ({"_CLOSE"}, '")"'),
    ({"_SELECT"}, '"select"'),
    ({"_DISTINCT"}, '"distinct"'),
    ({"_WHERE"}, '"where"'),
)


class QueryError(BusError, ValueError):
    """A text that is no query. The message says what is wrong, and at which character, counted from 1."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"character {position}: {what}")
        self.position = position


def syntax_error(text: str, error: "UnexpectedInput") -> QueryError:
    """Return the error that says what the parser found in `text`, and what it expected there."""
    from lark.exceptions import UnexpectedToken

    at_end = isinstance(error, UnexpectedToken) and error.token.type == _END
    start = len(text) if at_end else error.pos_in_stream or 0
    if text[start : start + 1] in ('"', "'") and not _closes(text[start:]):
        return QueryError(start + 1, "this quote is not closed")
    wanted = expected(error.interactive_parser.accepts())
    return QueryError(start + 1, f"expected {wanted}, but found {_found(text[start:])}")


def expected(terminals: Iterable[str]) -> str:
    """Return the names of terminals in words."""
    left = set(terminals)
    words = []
    for which, phrase in _PHRASES:
        if which <= left:
            words.append(phrase)
            left -= which
    words += ["the end"] * (_END in left and words != ["a condition"])
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _found(rest: str) -> str:
    if not rest.strip():
        return "the end"
    word = rest.split()[0]
    return repr(word if len(word) <= _FOUND_LETTERS else word[:_FOUND_LETTERS] + "...")


def _closes(rest: str) -> bool:
    """Return whether the quote at the start of the text is closed."""
    return rest[0] in re.sub(r"\\.", "", rest[1:], flags=re.DOTALL)
