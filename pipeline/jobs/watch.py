"""`buscoupler pipeline watch`: rates, last values and an alert, kept up to date as capture files land."""

import argparse
from typing import Final

from pipeline.jobs.ranges import above
from pipeline.jobs.record import Job, OpenCapture, option
from pipeline.output.tables import Progress


def run(options: argparse.Namespace, capture: OpenCapture) -> int:
    """Run until interrupted; with `--once` until all that is there has been taken."""
    from pipeline.analysis import watch

    queries = watch.start(capture.spark, capture.directory, options)
    try:
        watch.follow(queries, capture.tell, warn=Progress(quiet=False))
    except KeyboardInterrupt:
        for query in queries:
            query.stop()
    return 0


JOB: Final = Job(
    name="watch",
    help="keep rates, last values and an alert up to date as capture files land",
    options=(
        option(
            "--output", required=True, metavar="DIR", help="tables and checkpoints; give it again to go on"
        ),
        option("--alert", metavar="SQL", help="a condition over value, text and the capture's columns"),
        option("--to", metavar="URL", help="a bus that alerts go to as frames: tcp://HOST:PORT"),
        option("--pattern", default="alert", metavar="PATTERN", help="of alerts on the bus (alert)"),
        option(
            "--seconds", type=above(0), default=10.0, metavar="S", help="length of a window of rates (10)"
        ),
        option("--late-s", type=above(0), default=600.0, metavar="S", help="how late a file may land (600)"),
        option("--once", action="store_true", help="take what is there, and end"),
    ),
    run=run,
    engines=("spark",),  # Sail has no streams
    writes=("output",),
    follows=True,
)
