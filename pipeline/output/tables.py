"""Small tables as text, and the progress of a job on standard error."""

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from textwrap import fill
from typing import Any

from bus.text import plain
from capture.schema import TIME_MAX_NS


def width() -> int:
    """Return how wide the terminal is, or COLUMNS; 120 in a pipe."""
    return shutil.get_terminal_size((120, 0)).columns


def text(columns: Sequence[str], rows: Iterable[Sequence[Any]], most: int | None = None) -> str:
    """Print columns under their names, numbers to the right. An empty table says so.

    If that is wider than `most`, columns with one value are named once, and each row takes several lines.
    """
    cells = [[cell(name, value) for name, value in zip(columns, row, strict=True)] for row in rows]
    if not cells:
        return "  none"
    made = [_column(head(name), [line[n] for line in cells]) for n, name in enumerate(columns)]
    if most is None or _wide(made) <= most:
        return _lines([made])
    same = [column for column in made if len(cells) > 1 and len(set(column[1:])) == 1]
    words = ", ".join(f"{column[0].strip()} {column[1].strip()}" for column in same if column[1].strip())
    in_all = [fill(f"in every row: {words}", most, initial_indent="  ", subsequent_indent="    ",
                   break_long_words=False, break_on_hyphens=False)] if words else []  # fmt: skip
    rest = [column for column in made if column not in same] or made
    return "\n".join([*in_all, _lines(list(_groups(rest, most)))])


def _column(name: str, cells: Sequence[str]) -> list[str]:
    """Pad a heading and the cells below it to one width."""
    size = max(len(name), *map(len, cells))
    pad = str.rjust if all(map(_is_number, cells)) else str.ljust
    return [pad(word, size) for word in (name, *cells)]


def _wide(columns: Sequence[Sequence[str]]) -> int:
    return sum(2 + len(column[0]) for column in columns)


def _groups(columns: Sequence[list[str]], most: int) -> Iterator[list[list[str]]]:
    """Divide columns into groups, each as wide as a line that is at most so wide."""
    group: list[list[str]] = []
    for column in columns:
        if group and _wide([*group, column]) + _STEP > most:
            yield group
            group = []
        group.append(column)
    yield group


def _lines(groups: Sequence[Sequence[Sequence[str]]]) -> str:
    """Print each row: the first group of columns on a line, the others on lines of their own below it."""
    indents = [" " * _STEP * (number > 0) for number in range(len(groups))]
    rows = len(groups[0][0])
    return "\n".join(
        (indent + "".join(f"  {column[row]}" for column in group)).rstrip()
        for row in range(rows)
        for indent, group in zip(indents, groups, strict=True)
    )


_STEP = 4
_TIMES = {"ts_ns", "first_ns", "last_ns", "start_ns", "end_ns", "longest_from_ns"}
_VALUES = {"value", "last", "min", "max"}


def head(name: str) -> str:
    """Return the heading of a column. A time is shown as one, so without its unit; `last` stands beside the
    last time."""
    if name == "last":
        return "last value"
    return name.removesuffix("_ns") if name in _TIMES else name


def cell(name: str, value: Any) -> str:
    """Show a value as text. Columns that hold a time show it as one, and those that hold what a device said
    have all of its digits."""
    if value is None:
        return "-"
    if name in _TIMES and isinstance(value, int) and abs(value) <= TIME_MAX_NS:
        return clock(value)
    if isinstance(value, float):
        return f"{value:.12g}" if name in _VALUES else number(value)
    if isinstance(value, bytes | bytearray):
        return printable(bytes(value))
    return plain(str(value))


def number(value: float) -> str:
    """Show a number: to three decimals, but what is small or large with six digits, as 1.2e-05."""
    return f"{value:.3f}" if value == 0 or 0.1 <= abs(value) < 1e9 else f"{value:.6g}"


def _is_number(cell: str) -> bool:
    if cell == "-":
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def clock(ts_ns: int) -> str:
    """Show a time in UTC, to the microsecond, which a float of seconds cannot hold exactly."""
    moment = datetime.fromtimestamp(ts_ns // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{moment}.{ts_ns // 1000 % 1_000_000:06d}"


def printable(data: bytes) -> str:
    """Show bytes as text if they are text, else in hex; at most 60 characters."""
    words = data.decode(errors="surrogateescape")  # surrogates are not printable
    shown = words if words.isprintable() else data.hex()
    return shown if len(shown) <= 60 else shown[:57] + "..."


class Progress:
    """The progress of a job, a line each with the seconds since the start; silent if `quiet`."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.begin = quiet, time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.begin

    def __call__(self, what: str) -> None:
        if not self.quiet:
            print(f"[{self.seconds:5.1f} s] {what}", file=sys.stderr, flush=True)
