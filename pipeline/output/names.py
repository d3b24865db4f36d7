"""Names for the tokens in rows: `name` beside `token`, `name1` beside `token1`, `names` beside `tokens`.

Pure: a row is a mapping of columns to values, and the names are by token.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

Row = Mapping[str, Any]
Names = Mapping[int, str]
_TOKENS: Final = re.compile(r"token(s|\d*)")


def tokens_in(rows: Iterable[Row]) -> set[int]:
    """Find all tokens in `rows`."""
    found: set[int] = set()
    for row in rows:
        for column, value in row.items():
            if _TOKENS.fullmatch(column) and value is not None:
                found.update(value if isinstance(value, list) else [value])
    return found


def named(row: Row, names: Names) -> dict[str, Any]:
    """Add a column of names after each column of tokens; None for a token without a name."""
    made: dict[str, Any] = {}
    for column, value in row.items():
        made[column] = value
        if _TOKENS.fullmatch(column):
            new = [names.get(t) for t in value] if isinstance(value, list) else names.get(value)
            made[column.replace("token", "name")] = new
    return made


def labelled(row: Row, names: Names) -> dict[str, Any]:
    """Put names in place of the tokens that have one; a pattern becomes a/b/c."""
    return {
        column: _label(value, names) if _TOKENS.fullmatch(column) else value for column, value in row.items()
    }


def _label(value: Any, names: Names) -> Any:
    several = isinstance(value, list)
    return "/".join(str(names.get(t, t)) for t in value) if several else names.get(value, value)
