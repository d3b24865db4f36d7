"""The runner: opens a session and the capture for a job, shows its tables, and makes its exit status."""

import argparse
import json
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from capture.files import CaptureError, listed
from capture.locks import reading
from pipeline.analysis.audit.verdict import Verdict
from pipeline.engine import sail, session
from pipeline.engine.choice import SAIL, Where, decide
from pipeline.engine.sail import Sail
from pipeline.errors import PipelineError, cause_of
from pipeline.input import read, since, sound, span, stored
from pipeline.input.names import known
from pipeline.input.span import Span
from pipeline.input.stored import STORES, Listing
from pipeline.jobs.record import Facts, Job, OpenCapture, collected
from pipeline.output import place
from pipeline.output.names import named, titled
from pipeline.output.tables import Progress, clock, width

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_BYTES: Final = 256 << 20
"""Below this much Parquet a job is over before thorough compilation would pay."""

_REHEARSAL: Final = "pipeline.jobs.rehearsal"

_NO_ROOM: Final = "Failed to allocate"  # Sail's joins need all of one side in memory


def run(job: Job, options: argparse.Namespace) -> int:
    """Run a job. Returns its exit status: 1 if there is a row in one of its tables of faults."""
    if job.process is not None:
        return job.process(options)
    for name in job.writes if job.tables is None else (*job.writes, "parquet"):
        if given := vars(options)[name]:
            place.check(given)
    if job.prepare is not None:
        job.prepare(options)
    with _without_stacks(), opened(job, options) as capture:
        capture.tell(f"{job.name}: {_size(capture.directory)}")
        if capture.span.is_empty:
            print("nothing new since the last time")
            return 0
        if job.run is not None:
            return job.run(options, capture)
        status = show(job, options, capture)
        return sound.SKIPPED_STATUS if capture.left_out else status


@contextmanager
def opened(job: Job, options: argparse.Namespace) -> Iterator[OpenCapture]:
    """Open a session and the capture, whose files are looked at while the engine starts.

    Raises `CaptureError` for a file that cannot be read, or that has rows of another one; or leaves it out.
    """
    tell, warn = Progress(options.quiet), Progress(quiet=False)
    where = (read.followed if job.follows else read.root)(options.directory)
    is_here = not read.is_remote(where)
    note, part = _part(job, options, where)
    listing, doubt = (None, "") if is_here else _listed(where, part)
    is_small = _bytes(where, listing) < QUICK_BYTES
    place = decide(options, SAIL in job.engines)
    # The resident Spark would be held for ever, should compile more thoroughly, or has others' credentials.
    if job.follows or not is_small or not is_here:
        place = place._replace(resident=False)
    if job.follows and place.here:
        place = place._replace(conf={**session.LASTING, **place.conf})
    quick = is_small and not job.follows
    local = session.start(place, quick, _REHEARSAL, lasting=job.follows)
    if local is not None:
        tell(f"{local.begins} on this machine")
    try:
        looked = _looked_at(job, options, where, part, warn) if is_here else None
        doubt = doubt if listing is None else _doubt(where, listing)
    except BaseException:
        if local is not None:
            local.close()
        raise
    bad, count, newest_ns = looked or ([], None, 0)
    if note is not None:
        to_ns = max(part.from_ns or 0, newest_ns - span.MARGIN_NS)
        begin = "the beginning" if part.from_ns is None else clock(part.from_ns)
        tell(f"since the last time: from {begin} to {clock(to_ns)} (UTC)")
        part = part._replace(to_ns=to_ns)
    at_ctrl_c = sail.ended_at_once() if local is not None and local.at_once else nullcontext()
    with (
        reading(Path(where)) if is_here and not job.follows else nullcontext(),
        _left(where, bad) as rest,
        at_ctrl_c,
        session.session(place, local) as spark,
        _one_line(local, rest),
    ):
        for key in session.SMALL.keys() - place.conf.keys() if is_small and place.here else ():
            spark.conf.set(key, session.SMALL[key])
        native = rest if is_here or place.on_sail else read.by_engine(spark, rest)
        if not native:
            _check_ours(
                job, where, "" if place.remote else doubt
            )  # this machine plans the reading, or theirs
        if doubt:
            warn(f"the versions of the files were not checked: {doubt}")
        rest = native or rest
        names = known(spark, rest, options.names if job.has_names else (), bool(native))
        facts = Facts(*engine_of(spark, place), count, read.size_bytes(rest) if is_here else None)
        knows_delta = place.on_sail or bool(place.remote)
        yield OpenCapture(
            spark, rest, tell, names, len(bad), facts, part, knows_delta, is_native=bool(native)
        )
    if note is not None and part.to_ns is not None and not bad:
        since.store(note, job.name, where, part.to_ns)
    tell("done")
    if local is not None and local.hint and not job.follows:
        tell(local.hint + ("; `--engine sail` needs no Java" if SAIL in job.engines else ""))


def _part(job: Job, options: argparse.Namespace, where: str) -> tuple[Path | None, Span]:
    """Find the part of a capture that is asked for, and the note of the last time if that counts."""
    if job.tables is None:
        return None, span.WHOLE
    part = span.of(options)
    if not options.since_last:
        return None, part
    if read.is_remote(where):
        raise PipelineError("--since-last: only for a capture on this machine")
    note = since.note_of(job.name, where)
    return note, part._replace(from_ns=since.load(note))


def _listed(where: str, part: Span) -> tuple[Listing | None, str]:
    """List the files of a part of a capture in an object store; or say why that cannot be done here."""
    if not where.startswith(STORES):
        return None, ""
    try:
        return stored.listing(where, part.widened(span.MARGIN_NS)), ""
    except CaptureError as error:
        return None, str(error)


def _check_ours(job: Job, where: str, doubt: str) -> None:
    """Check that Python can read a store for a job, since Spark cannot. Raises `PipelineError`, and
    `CaptureError` for what this machine could not look into."""
    if job.follows:
        raise PipelineError(f"{where}: Spark cannot follow it without the jars of hadoop-aws (--conf)")
    if doubt:
        raise CaptureError(doubt)


def _bytes(where: str, listing: Listing | None) -> float:
    """Return the size of a capture; without end if only the engine can see it."""
    if not read.is_remote(where):
        return read.size_bytes(where)
    return math.inf if listing is None else sum(listing.sizes.values())


def _doubt(where: str, listing: Listing) -> str:
    """Look at the versions of files in an object store. Say why that cannot be done here; "" if it can.

    Raises `CaptureError` for a later version.
    """
    try:
        trouble = sound.version_by_url(where, listing)
    except CaptureError as error:
        return str(error)
    if trouble:
        raise CaptureError(trouble)
    return ""


def _looked_at(job: Job, options: argparse.Namespace, where: str, part: Span, warn: Progress) -> sound.Looked:
    """Look at the files of a local capture: which are to be left out, and what is passed by."""
    if job.follows and not listed(Path(where)):
        return sound.Looked([], 0, 0)
    skips = job.tables is not None and options.skip_bad
    bad, rows, newest_ns = sound.look(Path(where), thorough=skips, span=part.widened(span.MARGIN_NS))
    if bad and not skips:
        more = f" (and {len(bad) - 1} more files)" if len(bad) > 1 else ""
        hint = "; --skip-bad analyses the rest" if job.tables is not None else ""
        raise CaptureError(f"{bad[0].text}{more}{hint}")
    count = len(listed(Path(where))) if bad else 0
    if bad and len(bad) == count:
        raise CaptureError(f"{bad[0].text}: no file is left")
    for line in [*sound.told(bad), sound.passed_by(Path(where))]:
        if line:
            warn(line)
    if bad:
        warn(f"left out {len(bad)} of {count} files (--skip-bad)")
    return sound.Looked(bad, rows, newest_ns)


@contextmanager
def _left(where: str, bad: list[sound.Bad]) -> Iterator[str]:
    """Yield where the capture without the bad files is."""
    if not bad:
        yield where
        return
    with sound.without(Path(where), bad) as rest:
        yield str(rest)


@contextmanager
def _one_line(local: session.Local | None, where: str) -> Iterator[None]:
    """Turn what the engine raises, whose stack fills pages, into one line. Our own errors stay.

    Of a file that is damaged within, an engine says no name: so all are then read through.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        logging.getLogger("buscoupler").info("Spark's words in full", exc_info=error)
        bad = [] if read.is_remote(where) else sound.look(Path(where), thorough=True).bad
        if bad:
            raise PipelineError(f"{bad[0].text}; --skip-bad analyses the rest") from None
        words = _of_sail(local, error) if isinstance(local, Sail) else f"Spark: {cause_of(str(error))}"
        raise PipelineError(words) from None


@contextmanager
def _without_stacks() -> Iterator[None]:
    """Keep the stacks that py4j logs at Ctrl-C, on any logger, out of the log; with `-v` they stay."""
    root = logging.getLogger()

    def is_brief(record: logging.LogRecord) -> bool:
        ours = record.name.startswith("buscoupler")
        return ours or not record.exc_info or root.isEnabledFor(logging.INFO)

    handlers = tuple(root.handlers)
    for handler in handlers:
        handler.addFilter(is_brief)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_brief)


def _of_sail(local: Sail, error: Exception) -> str:
    spark, words = "or take Spark (--engine spark)", cause_of(str(error))
    if local.has_ended():
        return f"Sail has been killed, as a rule for want of memory; let it hold less (--memory), {spark}"
    more = f"; give it more (--memory), {spark}" if _NO_ROOM in words else ""
    return f"Sail: {words}{more}"


def engine_of(spark: "SparkSession", place: Where) -> tuple[str, str]:
    """Return the engine that answers, and its version."""
    if place.on_sail:
        return SAIL, metadata.version("pysail")
    return "spark", spark.version


def facts_line(ran: Mapping[str, Any]) -> str:
    """Say in a line which engine answered, of how much, and how long it took."""
    rows = "" if ran["rows"] is None else f"{ran['rows']:,} rows, {ran['bytes'] / 1e6:,.1f} MB, "
    return f"{ran['engine'].capitalize()} {ran['version']}: {rows}{ran['seconds']:.1f} s"


def _size(where: str) -> str:
    if read.is_remote(where):
        return where
    return f"{len(listed(Path(where)))} files, {read.size_bytes(where) / 1e6:.1f} MB"


def show(job: Job, options: argparse.Namespace, capture: OpenCapture) -> int:
    """Print the tables, or one JSON object of them; write them, if asked."""
    assert job.tables is not None
    tables = job.tables(options, capture)
    shown: dict[str, Any] = {}
    texts: list[str] = []
    tell = print if job.verdict is None else texts.append
    for table, found in zip(tables, collected(tables), strict=True):
        rows = [row.asDict(recursive=True) for row in found]
        shown[table.name] = [named(row, capture.names) for row in rows]
        if not options.json:
            tell(titled(table.title, rows, capture.names))
        if options.parquet:
            target = f"{place.absolute(options.parquet)}/{job.name}/{table.name}"
            table.frame.write.mode("overwrite").parquet(target)
    verdict = job.verdict(shown) if job.verdict else None
    ran = capture.facts.ran(capture.tell.seconds)
    if options.json:
        first = {"verdict": verdict._asdict()} if verdict else {}
        print(json.dumps({**first, **shown, "run": ran}, default=_plain))
        return _status(job, verdict, shown)
    if verdict:
        print(verdict.line, fill(job.legend, width()), "", *texts, sep="\n")
    print(facts_line(ran))
    return _status(job, verdict, shown)


def _status(job: Job, verdict: Verdict | None, shown: dict[str, Any]) -> int:
    return verdict.status if verdict else int(any(shown[name] for name in job.faults))


def _plain(value: Any) -> Any:
    return (
        bytes(value).decode(errors="backslashreplace") if isinstance(value, bytes | bytearray) else str(value)
    )
