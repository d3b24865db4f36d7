"""`buscoupler pipeline watch`: rates, last values and an alert, kept up to date as rows are recorded."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bus.machine.parents import ending_with_us
from capture.files import CAPTURE
from pipeline.errors import PipelineError
from pipeline.input import read
from pipeline.jobs import signals
from pipeline.jobs.ranges import SPAN_S
from pipeline.jobs.record import Job, OpenCapture, option
from pipeline.output import place
from pipeline.output.names import titled
from pipeline.output.sinks import SINKS, Sink
from pipeline.output.tables import Progress


def prepare(options: argparse.Namespace) -> None:
    """Refuse options that do not go together; make the directory that a bus is to be recorded into.

    Raises `PipelineError`.
    """
    chosen(options)
    if (options.dbc or options.form or options.topology) and not options.signals:
        raise PipelineError("--dbc, --form and --topology are for --signals: give it too")
    signals.check(options)
    if options.live and not read.is_remote(options.directory):
        place.check(options.directory)
        Path(options.directory).mkdir(parents=True, exist_ok=True)


def run(options: argparse.Namespace, capture: OpenCapture) -> int:
    """Run until interrupted; with `--once` until all that is there has been taken."""
    from pipeline.analysis import watch

    if options.show:
        return show(options, capture)
    sink = chosen(options)
    with recording(options.live, capture.directory) as is_on:
        wanted = signals.followed(options, capture) if options.signals else None
        queries = watch.start(capture.spark, capture.directory, options, sink, wanted)
        try:
            watch.follow(queries, capture.tell, warn=Progress(quiet=False), is_on=is_on)
        except KeyboardInterrupt:
            for query in queries:
                query.stop()
    return 0


@contextmanager
def recording(endpoint: str | None, directory: str) -> Iterator[Callable[[], bool]]:
    """Record an endpoint into a recorder's directory in the block; give a function that tells whether that
    still goes on. Without an endpoint, nothing is recorded. Raises `PipelineError` for a directory that
    cannot be recorded into."""
    if endpoint is None:
        yield lambda: True
        return
    days = Path(directory)
    if read.is_remote(directory) or days.name != CAPTURE:
        raise PipelineError(f"--live: {directory}: give a directory of this machine, of a recorder or new")
    words = [sys.executable, "-m", "buscoupler", "capture", endpoint, "--directory", str(days.parent)]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=ending_with_us()
    ) as recorder:
        try:
            yield lambda: recorder.poll() is None
        finally:
            recorder.send_signal(signal.SIGINT)


def chosen(options: argparse.Namespace) -> Sink | None:
    """Make the sink that is asked for; None for a bus or files. Raises `PipelineError` if there are two."""
    given = [name for name in ("to", *SINKS) if vars(options)[name]]
    if len(given) > 1:
        raise PipelineError(f"--{given[0]} and --{given[1]}: alerts go to one place; give one of them")
    if given and not options.alert:
        raise PipelineError(
            f"--{given[0]}: there is nothing to send; give the condition of an alert by --alert"
        )
    return next((SINKS[name](vars(options)[name]) for name in given if name in SINKS), None)


def show(options: argparse.Namespace, capture: OpenCapture) -> int:
    """Print the tables that a watch keeps."""
    from pipeline.analysis.watched import tables

    for title, frame in tables(capture.spark, Path(options.output), options.seconds):
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        print(titled(title, rows, capture.names))
    return 0


JOB: Final = Job(
    name="watch",
    help="keep rates, last values and an alert up to date as rows are recorded",
    examples=("buscoupler pipeline watch capture --output live --alert 'value > 30'",),
    options=(
        option(
            "--output", required=True, metavar="DIR", help="tables and checkpoints; give it again to go on"
        ),
        option("--alert", metavar="SQL", help="a condition over value, text and the capture's columns"),
        option("--to", metavar="URL", help="a bus that alerts go to as frames: tcp://HOST:PORT"),
        option("--post", metavar="URL", help="a webhook that alerts are posted to, as lines of JSON"),
        option("--pipe", metavar="COMMAND", help="a program that gets each batch of alerts as lines of JSON"),
        option(
            "--call", metavar="MODULE:FUNCTION", help="a function of yours that gets them: f(lines, batch)"
        ),
        option("--pattern", default="alert", metavar="PATTERN", help="of alerts on the bus (alert)"),
        option("--seconds", type=SPAN_S, default=10.0, metavar="S", help="length of a window of rates (10)"),
        option("--every-s", type=SPAN_S, default=5.0, metavar="S", help="from batch to batch of tables (5)"),
        option("--late-s", type=SPAN_S, default=600.0, metavar="S", help="how late a file may land (600)"),
        option("--live", metavar="ENDPOINT", help="record this bus or medium into DIRECTORY meanwhile"),
        option("--signals", action="store_true", help="also write the values in messages, a row each"),
        *signals.DECODING,
        option("--once", action="store_true", help="take what is there, and end"),
        option("--show", action="store_true", help="print what a watch has written to --output, and end"),
    ),
    run=run,
    prepare=prepare,
    engines=("spark",),  # Sail has no streams
    writes=("output",),
    follows=True,
    decodes=True,
    on_workers=lambda options: options.signals and not options.show,
)
