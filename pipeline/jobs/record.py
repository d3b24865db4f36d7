"""The record of a job: all that the command line, the runner and `warm` know of it.

No module with a record imports Spark at its top, so that `--help` and wrong use are quick and need none.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bus.names import Names
from bus.quantity.quantity import Quantity
from capture.files import listed
from capture.names import given
from pipeline.analysis.audit.verdict import Tables, Verdict
from pipeline.engine import choice
from pipeline.engine.choice import Engine
from pipeline.input import span
from pipeline.input.names import ReadNames, reader
from pipeline.input.read import read, read_stored
from pipeline.input.span import WHOLE, Span
from pipeline.input.unread import Unread
from pipeline.output.tables import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from pipeline.analysis.shared.small import Small

Option = tuple[tuple[str, ...], dict[str, Any]]

ROWS_MOST: Final = 1_000_000
"""The most rows of a table that are shown. A sort with a bound needs no pass of its own to divide the range.
"""


def option(*names: str, **settings: Any) -> Option:
    """State an option of a job, as `ArgumentParser.add_argument` takes it."""
    return names, settings


def _no_topology(file: str) -> Iterable[Quantity]:
    raise argparse.ArgumentTypeError(f"{file}: only the command buscoupler reads topologies")


class Table(NamedTuple):
    """A table that a job shows; `rows` is how many rows of it at most, None as many as there may be."""

    name: str
    title: str
    frame: "DataFrame | Small"
    rows: int | None = None


def collected(tables: Sequence[Table]) -> "Iterator[list[Row]]":
    """Collect each table's rows, two at a time: one is planned while the other is worked out."""
    with ThreadPoolExecutor(2) as pool:
        limited = [table.frame.limit(ROWS_MOST if table.rows is None else table.rows) for table in tables]
        yield from pool.map(lambda frame: frame.collect(), limited)


class Facts(NamedTuple):
    """The engine that answers, its version, how much it was given (None if the capture is elsewhere), the
    version of `pyspark` in this process, and how many minutes a Spark that this command started stays."""

    engine: str = "spark"
    version: str = ""
    rows: int | None = None
    bytes: int | None = None
    pyspark: str = ""
    stays_min: int = 0

    def ran(self, seconds: float) -> dict[str, Any]:
        """Return the facts as a record, with the seconds since the command began."""
        return {**self._asdict(), "seconds": round(seconds, 3)}


class Files(NamedTuple):
    """The readers of files that a job's user names: of names, which raises `BusError`; and of what a topology
    knows of its values, which raises `ArgumentTypeError`."""

    names: ReadNames = given
    quantities: Callable[[str], Iterable[Quantity]] = _no_topology


FILES: Final = Files()
NO_NAMES: Final = Names()
UNKNOWN: Final = Facts()


@dataclass(frozen=True)
class OpenCapture:
    """A capture that a job works on: its session, the directory of its days, where progress goes, the names
    of its tokens, how many files were left out, the facts about this run, the part that is asked for,
    whether the engine `knows_delta` (a server of one's own has to, if the capture is a Delta table), whether
    it reads the files itself: if not `is_native`, Python does; of a capture on this machine the time of
    the newest row of each file (`newest_ns`), what is `unread` in journals beside them, and the `summaries`
    of the files (`pipeline.input.sound.look`); `where` it is, as its user knows the place; and whether the
    cluster `is_lost`, so that no job can run any more."""

    spark: "SparkSession"
    directory: str
    tell: Progress
    names: Names = NO_NAMES
    left_out: int = 0
    facts: Facts = UNKNOWN
    span: Span = WHOLE
    knows_delta: bool = False
    is_native: bool = True
    newest_ns: Mapping[Path, int] = field(default_factory=dict)
    where: str = ""
    unread: Sequence[Unread] = ()
    summaries: Sequence[Mapping[str, Any]] = ()
    is_lost: Callable[[], bool] = lambda: False
    _inventories: "dict[int, list[Row]]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def rows(self, margin_ns: int = 0) -> "DataFrame":
        """Return the rows of the span that is looked at, with a margin before and after."""
        part = self.span.widened(margin_ns)
        if not self.is_native:
            return part.select(read_stored(self.spark, self.directory, part))
        return part.select(read(self.spark, self.directory, self.knows_delta))

    def inventory(self, margin_ns: int = 0) -> "list[Row]":
        """Return the inventory of `rows` (`pipeline.analysis.shared.inventory.take`), which is taken once."""
        from pipeline.analysis.shared.inventory import take

        margin_ns = margin_ns if self.span.is_bounded else 0  # without bounds there is nothing beyond them
        if margin_ns not in self._inventories:
            recorded = None if self.span.is_bounded else self.facts.rows
            self._inventories[margin_ns] = take(self.rows(margin_ns), recorded, self._its_summaries())
        return self._inventories[margin_ns]

    def _its_summaries(self) -> Sequence[Mapping[str, Any]]:
        """Return the summaries, unless other files are there than were looked at: a recorder goes on."""
        if not self.summaries:
            return ()
        there = set(filter(self.span.has, listed(Path(self.directory))))
        return self.summaries if there == set(self.newest_ns) else ()


class Job(NamedTuple):
    """A job: it makes `tables` of a capture, or does all with it in `run`, or needs none and has `process`.
    `prepare` looks at the options, and does what must be done before the capture is looked for. `examples`
    are command lines.

    A row in one of the tables `faults` makes the exit status 1; or `verdict` judges the tables, is printed
    first, and has the exit status; the `legend` below it says what the tables count. `engines` are those that
    give the same answer. If it shows tokens it `has_names`, and takes `--names`. If it `is_command`,
    `buscoupler NAME` is `buscoupler pipeline NAME`. `writes` names the options that say where it writes,
    besides `--parquet`. If it `follows` a capture, files may be compacted while it runs, else that waits; and
    there may be none yet. If it `decodes` data, it takes `--topology`. `on_workers` says
    of options whether its workers run Python of ours, with numpy and pyarrow.
    """

    name: str
    help: str
    examples: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    tables: Callable[[argparse.Namespace, OpenCapture], list[Table]] | None = None
    run: Callable[[argparse.Namespace, OpenCapture], int] | None = None
    prepare: Callable[[argparse.Namespace], None] | None = None
    process: Callable[[argparse.Namespace], int] | None = None
    faults: tuple[str, ...] = ()
    verdict: Callable[[Tables], Verdict] | None = None
    legend: str = ""
    engines: tuple[Engine, ...] = ("spark", "sail")
    has_names: bool = False
    is_command: bool = False
    writes: tuple[str, ...] = ()
    follows: bool = False
    decodes: bool = False
    on_workers: Callable[[argparse.Namespace], bool] | None = None

    @property
    def problem(self) -> str:
        """Return when the exit status is 1, besides that something cannot be done; empty: never."""
        if self.verdict is not None:
            return "the verdict is red, or amber for something that no policy intended"
        return f"there is a row in the table {' or '.join(self.faults)}" if self.faults else ""

    def add_arguments(self, parser: argparse.ArgumentParser, files: Files = FILES) -> None:
        """Add all options of the job to its parser."""
        parser.set_defaults(job=self.name)
        if self.process is None:
            parser.add_argument(
                "directory", metavar="DIRECTORY",
                help="of a recorder; a file of the field, such as drive.log; or s3a:// or hdfs://",
            )  # fmt: skip
            choice.arguments(parser)
            parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
        if self.engines:
            parser.add_argument(
                "--memory", default="4g", metavar="SIZE", help="for Spark or Sail on this machine (4g)"
            )
        if self.tables is not None:
            parser.add_argument("--json", action="store_true", help="print one JSON object")
            parser.add_argument("--parquet", metavar="DIR", help="also write each table to DIR/JOB/TABLE")
            parser.add_argument(
                "--skip-bad", action="store_true",
                help="leave out files that cannot be read, and exit with 3; reads local ones through first",
            )  # fmt: skip
            span.arguments(parser)
        if self.has_names:
            parser.add_argument(
                "--names", type=reader(files.names), action="append", default=[], metavar="FILE|A,B,C",
                help="show tokens by these names too: a topology, a file with one name a line, or a list",
            )  # fmt: skip
        if self.decodes:
            parser.add_argument(
                "--topology", type=files.quantities, default=(), metavar="FILE",
                help="form, unit and range of the values that the protocols of this topology know",
            )  # fmt: skip
        for names, settings in self.options:
            parser.add_argument(*names, **settings)

    def parsed(self, *words: str) -> argparse.Namespace:
        """Parse `words` as the command line does."""
        parser = argparse.ArgumentParser()
        self.add_arguments(parser)
        return parser.parse_args(words)
