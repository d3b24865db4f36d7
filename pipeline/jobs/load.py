"""`buscoupler pipeline load`: the files of a capture go to a table, each row once."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bus.extras import lacking
from pipeline.errors import PipelineError
from pipeline.input.read import is_remote, root
from pipeline.input.sound import SKIPPED_STATUS
from pipeline.jobs.record import Job, option
from pipeline.output import place
from pipeline.output.tables import Progress

if TYPE_CHECKING:
    from capture.tables import Table


def process(options: argparse.Namespace) -> int:
    """Load, and print what was added. Returns 3 if a file was left out because it cannot be read."""
    place.check_table("--to", options.to, options.directory)
    place.check(options.to)
    table = _table(options.to, options.delta)
    if is_remote(options.directory):
        raise PipelineError(f"{options.directory}: load works on a directory of this machine")
    from capture.tables import load

    warn, added, bad = Progress(quiet=False), 0, 0
    for one in load(Path(root(options.directory)), table):
        for line in one.bad:
            warn(f"left out: {line}")
        part = f", {one.parts} of them in part" if one.parts else ""
        if one.added:
            print(f"{one.place}: {one.added} files added{part}", flush=True)
        added, bad = added + one.added, bad + len(one.bad)
    if not added:
        print("nothing new: the table has all rows")
    return SKIPPED_STATUS if bad else 0


def _table(url: str, is_delta: bool) -> "Table":
    """Make the table that is asked for. Raises `PipelineError` if an extra is missing."""
    try:
        from capture.stores import store_of
        from capture.tables import PlainTable

        if not is_delta:
            return PlainTable(store_of(url))
        from capture.delta import DeltaTable

        return DeltaTable(store_of(url), url)
    except ModuleNotFoundError as error:
        extra = "tables" if is_delta else "capture"
        raise PipelineError(lacking("load", error.name or "deltalake", extra)) from None


JOB: Final = Job(
    name="load",
    help="add the files of a capture to a table of many captures, each row once",
    examples=("buscoupler pipeline load capture --to captures",),
    options=(
        option("directory", metavar="DIRECTORY", help="of a recorder"),
        option("--to", required=True, metavar="TABLE", help="a directory or s3://BUCKET/PREFIX"),
        option("--delta", action="store_true", help="keep a Delta log there, for other programs"),
    ),
    process=process,
    engines=(),
)
