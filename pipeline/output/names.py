"""Names for the tokens in rows: `name` beside `token`, `name1` beside `token1`, `names` beside `tokens`.

A row is a mapping of columns to values.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bus.names import Names
from pipeline.output.tables import text, width

Row = Mapping[str, Any]
NO_TOKEN: Final = -1  # the first token of a frame that has none
NO_FRAME: Final = -2  # that of a message that is no frame
_TOKENS: Final = re.compile(r"token(s|\d*)")
_NO_NAMES: Final = Names()


def named(row: Row, names: Names) -> dict[str, Any]:
    """Add a column of names after each column of tokens; None for a token without a name.

    Rows that have `names` stay as they are.
    """
    made: dict[str, Any] = {}
    if "names" in row:
        return {**row}
    for column, value in row.items():
        made[column] = value
        if _TOKENS.fullmatch(column):
            new = [names.get(t) for t in value] if isinstance(value, list) else names.get(value)
            made[column.replace("token", "name")] = new
    return made


def labelled(row: Row, names: Names) -> dict[str, Any]:
    """Show tokens by name, or else in hex; a pattern becomes a/b/c. In rows that have `names`, all in hex."""
    known = _NO_NAMES if "names" in row else names
    return {
        column: _label(value, known) if _TOKENS.fullmatch(column) else value for column, value in row.items()
    }


def titled(title: str, rows: "Sequence[Row]", names: Names) -> str:
    """Print rows with names, as wide as the terminal, under a title."""
    lines = [labelled(row, names) for row in rows]
    columns = list(lines[0]) if lines else []
    return f"{title}:\n{text(columns, [list(line.values()) for line in lines], width())}\n"


def _label(value: Any, names: Names) -> Any:
    if not all(isinstance(one, int) for one in (value if isinstance(value, list) else [value])):
        return value  # None, or what a query has called so
    if value == NO_TOKEN:
        return names.show(())
    if value == NO_FRAME:
        return "no frame"
    return names.show(value if isinstance(value, list) else [value])
