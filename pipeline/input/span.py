"""A part of a capture: a span of time, and some of its gateways."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from capture.files import day_of, gateway_of
from capture.schema import DATE, GATEWAY, TIME_MAX_NS, Kind
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MARGIN_NS: Final = 300_000_000_000
"""Rows of a frame may be so much later than the first one, or seem so by another clock; or come so late."""
LATE_NS: Final = 10_000_000_000
"""A frame may be recorded so long after its own time, which an adapter of CAN told: in the next day's files.
"""
_NS: Final = 10**9


class Span(NamedTuple):
    """From `from_ns` (included) to `to_ns` (excluded), in ns since 1970 by each gateway's clock; None is no
    bound. `gateways`: of these only, or of all if there are none."""

    from_ns: int | None = None
    to_ns: int | None = None
    gateways: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        return self.from_ns is not None or self.to_ns is not None

    @property
    def is_empty(self) -> bool:
        return self.from_ns is not None and self.to_ns is not None and self.from_ns >= self.to_ns

    def widened(self, margin_ns: int) -> "Span":
        """Return the span with a margin before and after."""
        begin = None if self.from_ns is None else _bounded(self.from_ns - margin_ns)
        end = None if self.to_ns is None else _bounded(self.to_ns + margin_ns)
        return self._replace(from_ns=begin, to_ns=end)

    def has(self, path: Path) -> bool:
        """Return whether a capture file may have rows of it, by its directories."""
        day = path.absolute().parts[-3].removeprefix(f"{DATE}=")
        return self.has_day(day) and (not self.gateways or gateway_of(path) in self.gateways)

    def has_day(self, day: str) -> bool:
        """Return whether a day (`YYYY-MM-DD`) may have rows of it."""
        begin, end = self._days()
        return begin <= day <= end

    def touches(self, first_ns: int, last_ns: int) -> bool:
        """Return whether one of the times from the first to the last is within the bounds."""
        is_after = self.from_ns is None or last_ns >= self.from_ns
        return is_after and (self.to_ns is None or first_ns < self.to_ns)

    def _days(self) -> tuple[str, str]:
        begin = "0001-01-01" if self.from_ns is None else day_of(self.from_ns)
        return begin, "9999-12-31" if self.to_ns is None else day_of(_bounded(self.to_ns - 1 + LATE_NS))

    def select(self, rows: "DataFrame") -> "DataFrame":
        """Select the rows of it. If it has bounds, the summaries of files are left out, which are about all
        of a file; but for the topology."""
        from pyspark.sql import functions as F

        if self.gateways:
            rows = rows.where(F.col(GATEWAY).isin(*self.gateways))
        if not self.is_bounded:
            return rows
        days = rows.where(F.col(DATE).between(*(F.lit(day).cast("date") for day in self._days())))
        is_summary = F.col("kind") == Kind.CONTENTS.value
        is_topology = is_summary & (F.col("contents.kind") == Kind.TOPOLOGY.value)
        return days.where((~is_summary & self.inside(F.col("ts_ns"))) | is_topology)

    def inside(self, time_ns: "Column") -> "Column":
        """Return whether a time is within the bounds."""
        from pyspark.sql import functions as F

        after = F.lit(True) if self.from_ns is None else time_ns >= self.from_ns
        return after if self.to_ns is None else after & (time_ns < self.to_ns)


WHOLE: Final = Span()


def _bounded(time_ns: int) -> int:
    """Return a time that rows can have, and days: the nearest to one that is outside."""
    return min(max(time_ns, 0), TIME_MAX_NS)


def time_ns(word: str) -> int:
    """Parse a time: a day, or a day and a time of day, in UTC unless it says otherwise. Raises argparse's
    error."""
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        text = f"{word!r} is no time: give 2026-11-20, 2026-11-20T08:00 or 2026-11-20T08:00:00.5+01:00"
        raise argparse.ArgumentTypeError(text) from None
    at = found if found.tzinfo else found.replace(tzinfo=UTC)
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return _bounded((since.days * 86_400 + since.seconds) * _NS + since.microseconds * 1000)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a part of a capture."""
    parser.add_argument("--from", dest="begin", type=time_ns, metavar="TIME", help="only from then on (UTC)")
    parser.add_argument("--to", dest="end", type=time_ns, metavar="TIME", help="only before then (UTC)")
    parser.add_argument(
        "--since-last", action="store_true",
        help="only what came since this job last looked so, up to five minutes before the newest row",
    )  # fmt: skip
    parser.add_argument(
        "--gateway", action="append", default=[], metavar="NAME", help="only what this gateway recorded"
    )


def of(options: argparse.Namespace) -> Span:
    """Make a span of options. Raises `PipelineError` if it is empty, or said in two ways."""
    if options.since_last and (options.begin is not None or options.end is not None):
        raise PipelineError("--since-last: give no --from or --to with it")
    found = Span(options.begin, options.end, tuple(options.gateway))
    if found.is_empty:
        raise PipelineError("--from is not before --to: there is no time between them")
    return found
