"""The opening of a capture for a job: the part that is asked for, the engine that answers, and the files that
it can read. The files are looked at while the engine starts."""

import argparse
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bus.text import amount
from capture import by_url
from capture.files import CaptureError, listed
from capture.locks import reading
from capture.plainly import plainly
from pipeline import reach
from pipeline.engine import cluster, sail, session
from pipeline.engine.choice import SAIL, Where, decide
from pipeline.errors import PipelineError
from pipeline.input import field, read, since, sound, span, stored
from pipeline.input.names import known
from pipeline.input.span import Span
from pipeline.input.stored import STORES, Listing
from pipeline.jobs.record import Facts, Job, OpenCapture
from pipeline.jobs.words import in_one_line
from pipeline.output.tables import Progress, clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_BYTES: Final = 256 << 20
"""Below this much Parquet a job is over before thorough compilation would pay."""

_NAMED: Final = 8
_REHEARSAL: Final = "pipeline.jobs.rehearsal"


class Asked(NamedTuple):
    """A job and the capture that it is asked about: `where` that is, and the `part` of it.

    `note` is the file that says up to when the job has looked, if that counts. Of an object store `listing`
    has the files, or `doubt` says why they cannot be looked at from here. A capture that only the engine can
    see may have any size, so it is not small (`is_small`).
    """

    job: Job
    options: argparse.Namespace
    where: str
    part: Span
    note: Path | None
    listing: Listing | None
    doubt: str
    is_small: bool

    @property
    def is_here(self) -> bool:
        """Whether the capture is on a file system of this machine."""
        return not read.is_remote(self.where)


class Reading(NamedTuple):
    """The way to read a capture: from `where`, by the engine itself if it `is_native`, else by Python."""

    where: str
    is_native: bool


@contextmanager
def opened(job: Job, options: argparse.Namespace) -> Iterator[OpenCapture]:
    """Open a session and the capture, or a file of the field, for the block.

    Raises `CaptureError` for a file that cannot be read, or that has rows of another one; or leaves it out.
    """
    tell, warn = Progress(options.quiet), Progress(quiet=False)
    with ExitStack() as at_end:
        where = at_end.enter_context(field.imported(options, job.follows, tell, warn))
        here = argparse.Namespace(**vars(options) | {"directory": where})
        capture = at_end.enter_context(_opened(job, here))
        yield capture if where == options.directory else replace(capture, where=options.directory)


@contextmanager
def _opened(job: Job, options: argparse.Namespace) -> Iterator[OpenCapture]:
    tell, warn = Progress(options.quiet), Progress(quiet=False)
    asked = ask(job, options)
    place = _place(asked)
    if place.here and reach.is_cut_off(asked.doubt, place.conf):
        raise CaptureError(asked.doubt)
    quick = asked.is_small and not job.follows
    local = session.start(place, quick, _REHEARSAL, lasting=job.follows)
    if local is not None:
        tell(f"{local.begins} on this machine")
    looked, doubt = _look(asked, local, warn)
    asked = _up_to(asked, looked, tell, warn)
    with ExitStack() as at_end:
        rest = at_end.enter_context(_kept(asked, looked.bad))
        if place.on_sail and asked.is_here:
            rest = at_end.enter_context(plainly(rest))
        spark = at_end.enter_context(_session(place, local))
        at_end.enter_context(in_one_line(local, rest, place.remote))
        is_lost = at_end.enter_context(cluster.watched(spark, place.on_sail or bool(place.remote), warn))
        if asked.is_small and place.here:
            _tune(spark, place)
        found = _reading(asked, place, spark, rest, doubt, warn)
        stays_min = 0 if local is None else local.stays_min
        engine = Facts(*engine_of(spark, place), pyspark=client_version(), stays_min=stays_min)
        yield replace(_capture(asked, place, spark, found, looked, tell, engine), is_lost=is_lost)
    if asked.note is not None and asked.part.to_ns is not None and not looked.bad:
        since.store(asked.note, job.name, asked.where, asked.part.to_ns)
    tell("done")
    if local is not None and local.hint and not job.follows:
        tell(local.hint + ("; `--engine sail` needs no Java" if SAIL in job.engines else ""))


def ask(job: Job, options: argparse.Namespace) -> Asked:
    """Find out what a command asks for. Raises `CaptureError` or `PipelineError` if that cannot be."""
    where = (read.followed if job.follows else read.root)(options.directory)
    if not options.remote:  # else a server reads it, which may be in another network
        reach.check_place(where)
    note, part = _part(job, options, where)
    listing, doubt = _listed(where, part)
    is_small = _bytes(where, listing) < QUICK_BYTES
    return Asked(job, options, where, part, note, listing, doubt, is_small)


def _bytes(where: str, listing: Listing | None) -> float:
    """Return the size of a capture; without end if only the engine can see it."""
    if not read.is_remote(where):
        return read.size_bytes(where)
    return math.inf if listing is None else sum(listing.sizes.values())


def _part(job: Job, options: argparse.Namespace, where: str) -> tuple[Path | None, Span]:
    """Find the part of a capture that is asked for, and the note of the last time if that counts."""
    if job.tables is None:
        return None, span.WHOLE
    part = span.of(options)
    if not options.since_last:
        return None, part
    if read.is_remote(where):
        raise PipelineError("--since-last: only for a capture on this machine")
    note = since.note_of(job.name, where, part.gateways)
    return note, part._replace(from_ns=since.load(note))


def _listed(where: str, part: Span) -> tuple[Listing | None, str]:
    """List the files of a part of a capture in an object store; or say why that cannot be done here."""
    if not where.startswith(STORES):
        return None, ""
    try:
        return stored.listing(where, part.widened(span.MARGIN_NS)), ""
    except CaptureError as error:
        return None, str(error)


def _place(asked: Asked) -> Where:
    """Decide where the job runs. Raises `PipelineError` if it cannot run there."""
    place = decide(asked.options, SAIL in asked.job.engines)
    # The resident Spark would be held for ever, should compile more thoroughly, or has others' credentials.
    if asked.job.follows or not asked.is_small or not asked.is_here:
        place = place._replace(resident=False)
    if place.on_sail and not asked.is_here:
        place = place._replace(store=by_url.settings(asked.where))
    if asked.job.follows and place.here:
        place = place._replace(conf={**session.LASTING, **place.conf})
    return place


def _look(asked: Asked, local: session.Local | None, warn: Progress) -> tuple[sound.Looked, str]:
    """Look at the files, and say why that cannot be done here ("" if it was). If they cannot be used, what
    starts is ended."""
    try:
        if asked.is_here:
            return _looked_at(asked, warn), ""
        doubt = asked.doubt if asked.listing is None else _doubt(asked.where, asked.listing)
    except BaseException:
        if local is not None:
            local.close()
        raise
    return sound.Looked([], None, {}), doubt


def _looked_at(asked: Asked, warn: Progress) -> sound.Looked:
    """Look at the files of a local capture: which are to be left out, and what is passed by."""
    days, has_tables = Path(asked.where), asked.job.tables is not None
    if asked.job.follows and not listed(days):
        return sound.Looked([], 0, {})
    skips = has_tables and asked.options.skip_bad
    looked = sound.look(days, thorough=skips, span=asked.part.widened(span.MARGIN_NS))
    if looked.bad and not skips:
        more = f" (and {len(looked.bad) - 1} more files)" if len(looked.bad) > 1 else ""
        hint = "; --skip-bad analyses the rest" if has_tables else ""
        raise CaptureError(f"{looked.bad[0].text}{more}{hint}")
    count = len(listed(days)) if looked.bad else 0
    if looked.bad and len(looked.bad) == count:
        raise CaptureError(f"{looked.bad[0].text}: no file is left that can be analysed")
    for line in filter(
        None, [*sound.told(looked.bad), sound.passed_by(days), *sound.unknown(asked.part.gateways, days)]
    ):
        warn(line)
    if looked.bad:
        warn(f"left out {len(looked.bad)} of {amount(count, 'file')} (--skip-bad)")
    return looked


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


def _up_to(asked: Asked, looked: sound.Looked, tell: Progress, warn: Progress) -> Asked:
    """Bound a job that looks at what is new: rows of a frame that is newer may still come. Name the gateways
    whose rows come too late for the next time, too."""
    if asked.note is None:
        return asked
    from_ns = asked.part.from_ns
    to_ns = max(from_ns or 0, looked.newest_ns - span.MARGIN_NS)
    begin = "the beginning" if from_ns is None else clock(from_ns)
    tell(f"since the last time: from {begin} to {clock(to_ns)} (UTC)")
    for gateway, newest_ns in islice(since.behind(looked.newest, to_ns).items(), _NAMED):
        warn(f"gateway {gateway}: its newest row is of {clock(newest_ns)}{since.BEHIND}")
    return asked._replace(part=asked.part._replace(to_ns=to_ns))


@contextmanager
def _kept(asked: Asked, bad: list[sound.Bad]) -> Iterator[str]:
    """Keep the files where they are in the block, and yield where those are that are not bad."""
    with ExitStack() as at_end:
        if asked.is_here and not asked.job.follows:
            at_end.enter_context(reading(Path(asked.where)))
        yield str(at_end.enter_context(sound.without(Path(asked.where), bad))) if bad else asked.where


@contextmanager
def _session(place: Where, local: session.Local | None) -> Iterator["SparkSession"]:
    with ExitStack() as at_end:
        if local is not None and local.at_once:
            at_end.enter_context(sail.ended_at_once())
        yield at_end.enter_context(session.session(place, local))


def _tune(spark: "SparkSession", place: Where) -> None:
    """Set what is best for a small capture, but for what the user has set."""
    for key in session.SMALL.keys() - place.conf.keys():
        spark.conf.set(key, session.SMALL[key])


def _reading(
    asked: Asked, place: Where, spark: "SparkSession", rest: str, doubt: str, warn: Progress
) -> Reading:
    """Find how the engine reads the files that are left. Raises `PipelineError` if it cannot, and
    `CaptureError` if Python has to read what this machine could not look into."""
    native = rest if asked.is_here or place.on_sail else read.by_engine(spark, rest)
    if not native and asked.job.follows:
        raise PipelineError(f"{asked.where}: Spark cannot follow it without the jars of hadoop-aws (--conf)")
    if not native and doubt and not place.remote:  # a server plans the reading itself
        raise CaptureError(doubt)
    if doubt:
        warn(f"the versions of the files were not checked: {doubt}")
    return Reading(native or rest, bool(native))


def _capture(
    asked: Asked, place: Where, spark: "SparkSession", found: Reading, looked: sound.Looked, tell: Progress,
    engine: Facts,
) -> OpenCapture:  # fmt: skip
    names = known(spark, found.where, asked.options.names if asked.job.has_names else (), found.is_native)
    size_bytes = read.size_bytes(found.where) if asked.is_here else None
    return OpenCapture(
        spark, found.where, tell, names,
        left_out=len(looked.bad),
        facts=engine._replace(rows=looked.rows, bytes=size_bytes),
        span=asked.part,
        knows_delta=place.on_sail or bool(place.remote),
        is_native=found.is_native,
        newest_ns=looked.newest,
        where=asked.where,
        unread=[one for one in looked.unread if one.gateway in (asked.part.gateways or [one.gateway])],
        summaries=looked.summaries,
    )  # fmt: skip


def client_version() -> str:
    """Return the version of Python's side of Spark, which may be another one than the engine's."""
    from pyspark.version import __version__

    return __version__


def engine_of(spark: "SparkSession", place: Where) -> tuple[str, str]:
    """Return the engine that answers, and its version."""
    if place.on_sail:
        from importlib import metadata

        return SAIL, metadata.version("pysail")
    return "spark", spark.version
