"""`buscoupler pipeline compact`: the many small files of closed days become a few large ones."""

import argparse
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bus.extras import lacking
from capture.files import is_delta
from pipeline.errors import PipelineError
from pipeline.input.read import is_remote, root
from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, option
from pipeline.output.tables import Progress

if TYPE_CHECKING:
    from capture.compact import Day


def process(options: argparse.Namespace) -> int:
    if is_remote(options.directory):
        raise PipelineError(f"{options.directory}: compact works on a directory of this machine")
    before = options.before or str(datetime.now(UTC).date())
    days, changed = Path(root(options.directory)), 0
    found = _compacted(days, before, options.file_mb << 20)
    for day in found:
        changed += 1
        where = day.directory.relative_to(days)
        size, made = day.size_bytes / 1e6, day.made_bytes / 1e6
        print(f"{where}: {day.files} files ({size:.1f} MB) became {day.made} ({made:.1f} MB)", flush=True)
    if not changed:
        print(f"nothing to compact before {before}")
    return 0


def _compacted(days: Path, before: str, file_bytes: int) -> "Iterator[Day]":
    """Compact a capture, or a Delta table. Raises `PipelineError` if an extra is missing."""
    tell, is_table = Progress(quiet=False), is_delta(days)
    try:
        if is_table:
            from capture import delta

            return delta.compact(days, before, file_bytes)
        from capture.compact import compact
    except ModuleNotFoundError as error:
        extra = "tables" if is_table else "capture"
        raise PipelineError(lacking("compact", error.name or "pyarrow", extra)) from None
    return compact(days, before, file_bytes, lambda whom: tell(f"waiting for {whom}"))


def day(word: str) -> str:
    """Check a day of the command line, YYYY-MM-DD. Raises `ArgumentTypeError`."""
    try:
        return str(date.fromisoformat(word))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word}: give a day, YYYY-MM-DD") from None


JOB: Final = Job(
    name="compact",
    help="merge the many small files of closed days into a few large ones",
    examples=("buscoupler pipeline compact capture",),
    options=(
        option("directory", metavar="DIRECTORY", help="of a recorder"),
        option("--before", type=day, metavar="DAY", help="only days before this one, in UTC (today)"),
        option(
            "--file-mb", type=whole(1, 65536), default=128, metavar="MIB", help="size of a large file (128)"
        ),
    ),
    process=process,
    engines=(),
)
