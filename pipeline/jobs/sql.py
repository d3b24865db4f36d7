"""`buscoupler pipeline sql`: Spark SQL on a capture, by a query or in a shell."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

from bus.text import nearest, plain
from pipeline.cache import writes_down
from pipeline.errors import PipelineError, cause_of
from pipeline.jobs import audit, signals, statements
from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, OpenCapture, option
from pipeline.output import objects
from pipeline.output.names import titled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEWS: Final = ("frames", "signals", "wires", "events", "ledgers", "findings")
_DOUBLED: Final = re.compile(
    r"--[^\n]*|/\*.*?\*/|`[^`]*`|\b[rR](?P<raw>['\"]).*?(?P=raw)"
    r"|(?P<text>(?P<quote>['\"])(?:\\.|(?P=quote){2}|(?!(?P=quote)|\\).)*(?P=quote))",
    re.DOTALL,
)
"""The parts of a query in which quotes stand: comments, names and raw texts, which stay, and texts."""
_NOT_FOUND: Final = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND\] (?:The table or view (.+?) cannot be|Table or view not found: (.+))"
)
_PROMPT: Final = "sql> "
_MORE: Final = "...> "


class Shell:
    """SQL on a capture. A view is made when a query first names it: for that, findings take an audit."""

    def __init__(self, options: argparse.Namespace, capture: OpenCapture) -> None:
        self._options, self.capture = options, capture
        self._made = set[str]()

    def answer(self, query: str) -> "DataFrame":
        """Return the answer to a query. Raises what the engine does, and `PipelineError`; also for one that
        would store or change tables."""
        for view in VIEWS:
            if view not in self._made and _names(view, query):
                _MAKERS[view](self._options, self.capture).createOrReplaceTempView(view)
                self._made.add(view)
        spark = self.capture.spark
        statement = _with_quotes(query) if writes_down(spark) else query
        statements.check(spark, statement)
        with _views_named():
            return _shown(spark.sql(statement))

    def show(self, query: str) -> None:
        """Print the answer to a query."""
        rows = [row.asDict(recursive=True) for row in self.answer(query).limit(self._options.limit).collect()]
        if self._options.json:
            for row in rows:
                print(objects.line(row, _plain))
        elif rows:
            print(titled(f"{len(rows):,} rows", rows, self.capture.names))
        else:
            print("no rows")


@contextmanager
def _views_named() -> Iterator[None]:
    """Turn what the engine says of a view that is not there into a `PipelineError` that names the others."""
    try:
        yield
    except Exception as error:
        if (found := _NOT_FOUND.search(str(error))) is None:
            raise
        name = (found[1] or found[2]).replace("`", "")
        raise PipelineError(f"{name}: no such view{nearest(name, VIEWS)}") from None


def _names(view: str, *queries: str) -> bool:
    return any(re.search(rf"\b{view}\b", query, re.IGNORECASE) for query in queries)


def _with_quotes(query: str) -> str:
    """Return a query for Sail, which joins `'it''s'` to `its`: quotes in texts stand behind a backslash."""
    return _DOUBLED.sub(_escaped, query)


def _escaped(found: re.Match[str]) -> str:
    if not found["text"]:
        return found[0]
    quote, inner = found["quote"], found["text"][1:-1]
    double = re.compile(rf"(\\.)|{quote}{quote}", re.DOTALL)
    return quote + double.sub(lambda one: one[1] or "\\" + quote, inner) + quote


def _shown(frame: "DataFrame") -> "DataFrame":
    """Return an answer with a name for each column, and times in UTC: without a zone, or Python would show
    them in that of this machine. Sail counts without a sign, which Python's Spark does not take."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegralType, TimestampType

    named = frame.toDF(*_apart(frame.columns))
    types = {field.name: field.dataType for field in named.schema.fields}
    shown = {name: "timestamp_ntz" for name, kind in types.items() if isinstance(kind, TimestampType)}
    shown |= {name: kind.simpleString() for name, kind in types.items() if isinstance(kind, IntegralType)}
    made = {name: F.col(f"`{name.replace('`', '``')}`").cast(kind) for name, kind in shown.items()}
    return named.withColumns(made) if made else named


def _apart(columns: Sequence[str]) -> list[str]:
    """Return names of columns, each once: `a`, `a_2` ... of two sides of a join."""
    made = list[str]()
    for name in columns:
        others = (f"{name}_{number}" for number in count(2))
        made.append(next(one for one in chain([name], others) if one not in made))
    return made


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def _frames(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    from pipeline.analysis import views

    return views.of_frames(capture.rows(), capture.names)


def _wires(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    from pipeline.analysis import views

    return views.of_wires(capture.rows())


def _events(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    from pipeline.analysis import views

    return views.of_events(capture.rows())


def _ledgers(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    from pipeline.analysis import views

    return views.of_ledgers(capture.rows())


def _signals(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    from pipeline.analysis import views

    return views.of_signals(signals.values(options, capture))


def _findings(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    from pipeline.analysis.shared.small import framed

    assert audit.JOB.tables is not None
    tables = audit.JOB.tables(audit.JOB.parsed(capture.directory), capture)
    return framed(capture.spark, next(table.frame for table in tables if table.name == "findings"))


_MAKERS: "Final[dict[str, Callable[[argparse.Namespace, OpenCapture], DataFrame]]]" = {
    "frames": _frames, "signals": _signals, "wires": _wires, "events": _events, "ledgers": _ledgers,
    "findings": _findings,
}  # fmt: skip


def run(options: argparse.Namespace, capture: OpenCapture) -> int:
    """Answer the queries that are given, or those that are typed. Returns 1 if one of them was wrong."""
    shell = Shell(options, capture)
    for query in options.execute:
        shell.show(query)
    if options.execute:
        return 0
    if sys.stdin.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401 - input() then has a history
        print(f"views: {', '.join(VIEWS)}; a query ends with ;, the shell with Ctrl-D", file=sys.stderr)
    return max([_tried(shell, query) for query in _typed()], default=0)


def _tried(shell: Shell, query: str) -> int:
    """Answer a query that was typed, and return 1 if it is wrong: the next one may be right."""
    try:
        shell.show(query)
    except Exception as error:
        if shell.capture.is_lost() or not (
            isinstance(error, PipelineError) or type(error).__module__.partition(".")[0] == "pyspark"
        ):
            raise
        print(plain(cause_of(str(error))), file=sys.stderr)
        return 1
    return 0


def _typed() -> Iterator[str]:
    """Yield the queries on standard input; each ends with a semicolon at the end of a line, or the input."""
    held = ""
    while True:
        try:
            line = input((_MORE if held else _PROMPT) if sys.stdin.isatty() else "")
        except EOFError:
            break
        held = f"{held}\n{line}".strip()
        if held.endswith(";"):
            if query := held.rstrip("; \n"):
                yield query
            held = ""
    if held:
        yield held


JOB: Final = Job(
    name="sql",
    help="ask a capture by Spark SQL: views frames, signals, wires, events, ledgers and findings",
    examples=("buscoupler pipeline sql capture -e 'SELECT count(*) FROM frames'",),
    options=(
        option(
            "-e", "--execute", action="append", default=[], metavar="QUERY", help="answer this, and end"
        ),
        *signals.DECODING,
        option("--limit", type=whole(0), default=1000, metavar="N", help="rows shown (1000)"),
        option("--json", action="store_true", help="print each row as a JSON object"),
    ),
    run=run,
    prepare=signals.check,
    has_names=True,
    decodes=True,
    on_workers=lambda options: not options.execute or _names("signals", *options.execute),
)  # fmt: skip
