"""`buscoupler signals`: the values over time in what was captured."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from bus.extras import absent
from bus.needs import Library
from capture.schema import Kind
from pipeline.errors import PipelineError
from pipeline.jobs import asked
from pipeline.jobs.ranges import SPAN_MS, whole
from pipeline.jobs.record import Job, OpenCapture, Table, option
from pipeline.output import place
from pipeline.output.tables import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.signals.pieces import Source
    from pipeline.signals.wanted import Wanted

_DELTA: Final = Library("deltalake", "deltalake", "tables")


def prepare(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, and databases that cannot be read. Raises `PipelineError`."""
    if (options.wide or options.delta) and not options.output:
        raise PipelineError(
            f"--{'wide' if options.wide else 'delta'} is for a table: give --output TABLE too"
        )
    if options.delta and (words := absent("--delta", _DELTA)):
        raise PipelineError(words)
    if options.output and options.resample_ms and options.wide:
        raise PipelineError("--wide: a table with --resample-ms has a row for each signal and window")
    if options.output:
        place.check_table("--output", options.output, options.directory)
    if options.episodes and (options.output or options.resample_ms or options.stats):
        raise PipelineError(
            "--episodes: is a table of its own: leave out --output, --resample-ms and --stats"
        )
    if options.where:
        asked.condition(options.where)
    check(options)


def decoding(options: argparse.Namespace) -> "Wanted":
    """Return what the options `DECODING` ask for. Raises `PipelineError`."""
    from bus.quantity.known import Quantities
    from pipeline.signals.databases import databases, tokens_of
    from pipeline.signals.forms import check
    from pipeline.signals.wanted import Wanted

    given = list[tuple[tuple[int, ...], str]]()
    for word in options.form:
        pattern, form = asked.form_of(word)
        tokens = tokens_of(pattern)
        if not pattern or tokens is None:
            raise PipelineError(f"--form {word}: give PATTERN=FORM, such as plant/temp=number")
        try:
            check(form)
        except ValueError as error:
            raise PipelineError(f"--form {error}") from None
        given.append((tokens, form))
    known = Quantities(options.topology)
    return Wanted(tuple(databases(options.dbc)), given=tuple(given), quantities=known)


def check(options: argparse.Namespace) -> None:
    """Refuse databases and forms that are wrong, and say what is left out of them. Raises `PipelineError`."""
    from pipeline.signals.databases import flaws

    decoding(options)
    for text in flaws(options.dbc):
        print(text, file=sys.stderr)


def are_asked(options: argparse.Namespace) -> bool:
    """Return whether the options of a job ask for signals: `--signals`, or one by which data are decoded."""
    return bool(options.signals or options.dbc or options.form or options.topology)


def values(options: argparse.Namespace, capture: OpenCapture) -> "DataFrame":
    """Return the values of all signals, a row each: `pipeline.signals.work.LONG`."""
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Long

    return done(_source(capture), _told(options, capture), Long())


def followed(options: argparse.Namespace, capture: OpenCapture) -> "Wanted":
    """Return what is wanted of a capture that goes on: all messages that come in, whoever hears them."""
    from pipeline.signals.databases import roots

    known = tuple(roots(sorted(capture.names.roots)))
    return decoding(options)._replace(roots=known, names=capture.names)


def busiest(options: argparse.Namespace, capture: OpenCapture, seconds: float, count: int) -> "DataFrame":
    """Return windows of the signals with most values."""
    from pipeline.analysis import signals
    from pipeline.cache import cached
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Bins

    bins = done(_source(capture), _told(options, capture), Bins(round(seconds * 1e9)))
    return signals.busiest(cached(signals.resampled(bins)), count)


def _source(capture: OpenCapture) -> "Source":
    from pipeline.signals.pieces import Source

    return Source(capture.spark, capture.directory, capture.span, capture.rows)


def complete(found: "Wanted", capture: OpenCapture, by_wire: bool = False) -> "Wanted":
    """Return what is wanted with what the capture tells: its names, and where messages enter. Frames on wires
    count if there is a database, or `by_wire`."""
    from pipeline.signals.databases import roots
    from pipeline.signals.places import chosen

    places = chosen(capture.inventory(), by_wire=by_wire or bool(found.databases))
    known = tuple(roots(sorted(capture.names.roots)))
    return found._replace(roots=known, names=capture.names, places=places)


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    source, tell = _source(capture), Progress(quiet=False)
    wanted = _told(options, capture)._replace(ends=tuple(options.signal))
    first = list[Table]()
    if options.where:
        held, wanted = asked.inside(options.where, source, wanted, tell)
        first = [Table("intervals", f"When {options.where}", held, options.limit)]
    made = _episodes if options.episodes else _windows if options.resample_ms else _table
    return [*first, made(options, capture, wanted)]


def _told(options: argparse.Namespace, capture: OpenCapture) -> "Wanted":
    """Return what is wanted, and tell what is named there and the capture does not have."""
    found = complete(decoding(options), capture)
    for line in asked.unknown(options, found, capture):
        Progress(quiet=False)(line)
    return found


def _episodes(options: argparse.Namespace, capture: OpenCapture, wanted: "Wanted") -> Table:
    from pipeline.analysis import signals
    from pipeline.cache import cached
    from pipeline.signals.episodes import Episodes
    from pipeline.signals.pieces import done

    source = _source(capture)
    parts = cached(done(source, wanted, Episodes(options.gap_ms)))
    asked.check_names(options.signal, source, wanted, parts)
    found = signals.episodes(parts, options.gap_ms)
    return Table("episodes", "Gaps of signals, and values out of range", found, options.limit)


def _windows(options: argparse.Namespace, capture: OpenCapture, wanted: "Wanted") -> Table:
    from pipeline.analysis import signals
    from pipeline.cache import cached
    from pipeline.signals import output
    from pipeline.signals.blocks import KEYS
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Bins

    source = _source(capture)
    windows = cached(signals.resampled(done(source, wanted, Bins(round(options.resample_ms * 1e6)))))
    asked.check_names(options.signal, source, wanted, windows)
    if options.output:
        output.write_windows(windows, options.output, options.delta)
    return Table("windows", "Signals by window of time", windows.orderBy("start_ns", *KEYS), options.limit)


def _table(options: argparse.Namespace, capture: OpenCapture, wanted: "Wanted") -> Table:
    from pipeline.cache import cached
    from pipeline.signals import output
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Sums

    source = _source(capture)

    def are_known(found: "DataFrame") -> None:
        asked.check_names(options.signal, source, wanted, found)

    if options.output:
        sums = output.write(
            source, wanted, options.output, options.wide, options.delta, options.gap_ms, are_known
        )
    else:
        sums = cached(done(source, wanted, Sums(options.gap_ms)))
        are_known(sums)
    has_can = options.dbc or any(row.kind == Kind.WIRE for row in capture.inventory())
    if has_can and not (wanted.ends or options.where) and not sums.head(1):
        return _strangers(options, source, complete(wanted, capture, by_wire=True))
    return _shown(options, sums, "signals", "Signals: how many values, when, and the last one")


def _strangers(options: argparse.Namespace, source: "Source", asked: "Wanted") -> Table:
    """Return, for who named no database, or one that is of no use, which identifiers there are."""
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Sums

    sums = done(source, asked._replace(strangers=True), Sums(options.gap_ms))
    title = "No value. Identifiers of CAN that no database (--dbc) has, and lengths of their frames"
    return _shown(options, sums, "strangers", title)


def _shown(options: argparse.Namespace, sums: "DataFrame", name: str, title: str) -> Table:
    from pipeline.analysis import signals

    found = signals.signals(sums, options.gap_ms)
    return Table(name, title, found if options.stats else found.drop(*signals.STATS), options.limit)


DECODING: Final = (
    option(
        "--dbc", action="append", default=[], metavar="[WHERE=]FILE",
        help="CAN messages (DBC, KCD, SYM); below the pattern or on the segment WHERE only",
    ),
    option(
        "--form", action="append", default=[], metavar="PATTERN=FORM",
        help="of other data: text, number, json, nmea or struct:FORMAT (guessed without it)",
    ),
)  # fmt: skip
"""The options by which data are decoded."""

JOB: Final = Job(
    name="signals",
    help="decode the signals in a capture: CAN by databases, numbers, JSON, struct and NMEA",
    examples=(
        "buscoupler signals capture --dbc car.dbc --stats",
        "buscoupler signals capture --dbc car.dbc --output table",
    ),
    options=(
        *DECODING,
        option(
            "--signal", action="append", default=[], metavar="NAME",
            help="only signals whose names end so: rpm, engine/rpm",
        ),
        option(
            "--where", metavar="SQL", help="only while this holds: engine/rpm > 3000 and gear = 'Drive'"
        ),
        option("--stats", action="store_true", help="also range, mean, gaps, and values out of range"),
        option("--episodes", action="store_true", help="instead: each gap, and each time out of range"),
        option("--gap-ms", type=SPAN_MS, default=1000.0, metavar="MS", help="a pause that is a gap (1000)"),
        option("--resample-ms", type=SPAN_MS, metavar="MS", help="a row for each window of this length"),
        option("--output", metavar="TABLE", help="write all values: a directory or s3://BUCKET/PREFIX"),
        option("--wide", action="store_true", help="a table for each message, a column for each signal"),
        option("--delta", action="store_true", help="keep a Delta log there"),
        option("--limit", type=whole(0), default=1000, metavar="N", help="rows shown (1000)"),
    ),
    tables=tables,
    prepare=prepare,
    has_names=True,
    is_command=True,
    writes=("output",),
    decodes=True,
    on_workers=lambda _: True,
)  # fmt: skip
