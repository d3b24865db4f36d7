"""Small tables as text, and the progress of a job on standard error."""

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any


def text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Print columns under their names, numbers to the right. An empty table says so."""
    cells = [[cell(name, value) for name, value in zip(columns, row, strict=True)] for row in rows]
    if not cells:
        return "  none"
    heads = [head(name) for name in columns]
    widths = [max(len(line[n]) for line in [heads, *cells]) for n in range(len(columns))]
    numeric = [all(_is_number(line[n]) for line in cells) for n in range(len(columns))]

    def line(words: Sequence[str]) -> str:
        parts = (w.rjust(k) if n else w.ljust(k) for w, k, n in zip(words, widths, numeric, strict=True))
        return "  " + "  ".join(parts).rstrip()

    return "\n".join([line(heads), *map(line, cells)])


_TIMES = {"ts_ns", "first_ns", "last_ns", "start_ns", "end_ns"}


def head(name: str) -> str:
    """Return the heading of a column. A time is shown as one, so without its unit."""
    return name.removesuffix("_ns") if name in _TIMES else name


def cell(name: str, value: Any) -> str:
    """Show a value as text. Columns that hold a time show it as one."""
    if value is None:
        return "-"
    if name in _TIMES:
        return clock(value)
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, bytes | bytearray):
        return printable(bytes(value))
    return str(value)


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.replace(".", "", 1).lstrip("-").isdigit()


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

    def __call__(self, what: str) -> None:
        if not self.quiet:
            print(f"[{time.monotonic() - self.begin:5.1f} s] {what}", file=sys.stderr, flush=True)
