"""The commands' words: options of each job, without Spark, so that `--help` and wrong use are quick."""

import argparse
from typing import Final

from pipeline.engine import session

JOBS: Final = {
    "audit": "of every frame: did each other segment get it exactly once, and its own not at all",
    "latency": "time per hop and end to end, clocks corrected",
    "rates": "frames and bytes by pattern and time, top talkers, how full the media are",
    "last": "the last value of each pattern",
    "failovers": "service gaps and takeovers, from the traffic alone",
    "tokens": "names that share a token, and tokens without a name",
    "report": "one HTML page of all of them",
    "watch": "keep rates, last values and an alert up to date as segments land",
    "warm": "make the class archive with which Spark starts in half the time",
    "serve": "a resident Spark Connect server for jobs with --remote",
}
ALONE: Final = ("audit", "latency", "rates", "last", "failovers", "report", "warm")
"""Those that are also commands of their own: `buscoupler audit` is `buscoupler pipeline audit`."""


def arguments(parser: argparse.ArgumentParser, job: str) -> None:
    """The options of one job."""
    parser.set_defaults(job=job)
    if job in ("warm", "serve"):
        parser.add_argument("--memory", default="4g", metavar="SIZE", help="for Spark (4g)")
        if job == "serve":
            parser.add_argument("--port", type=int, default=15002, help="on loopback (15002)")
        return
    parser.add_argument(
        "directory", metavar="DIRECTORY", help="of a recorder; or hdfs://, s3a:// ... on a cluster"
    )
    session.arguments(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    if job == "report":
        parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="(report.html)")
    elif job != "watch":
        parser.add_argument("--json", action="store_true", help="one object, for programs")
        parser.add_argument("--parquet", metavar="DIR", help="also write each table to DIR/JOB/TABLE")
    _OF_JOB.get(job, _nothing)(parser)


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--window-ms",
        type=int,
        default=2000,
        metavar="MS",
        help="within which equal frames are matched by count and order (2000)",
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="findings shown one by one (20)")


def _rates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="length of a window (10)")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="tokens of a prefix (1)")
    parser.add_argument("--names", metavar="FILE", help="names, one a line, shown for tokens")
    parser.add_argument(
        "--capacity",
        action="append",
        default=[],
        metavar="SEGMENT=BYTES_PER_S",
        help="what a medium can carry, to tell how full it is",
    )


def _last(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--names", metavar="FILE", help="names, one a line, shown for tokens")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="patterns shown (100)")


def _latency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="look at one frame in N (all)")


def _failovers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gap-ms", type=int, default=100, metavar="MS", help="silence that counts (100)")
    parser.add_argument("--names", metavar="FILE", help="names, one a line, shown for tokens")


def _tokens(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--names", metavar="FILE", required=True, help="the names in use, one a line")


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="tables and checkpoints; give it again to go on"
    )
    parser.add_argument(
        "--alert", metavar="SQL", help="a condition over value, text and the capture's columns"
    )
    parser.add_argument("--to", metavar="URL", help="a bus that alerts go to as frames: tcp://HOST:PORT")
    parser.add_argument("--pattern", default="alert", metavar="PATTERN", help="of alerts on the bus (alert)")
    parser.add_argument(
        "--seconds", type=float, default=10.0, metavar="S", help="length of a window of rates (10)"
    )
    parser.add_argument(
        "--late-s", type=float, default=600.0, metavar="S", help="how late a segment may land (600)"
    )
    parser.add_argument("--once", action="store_true", help="take what is there, and end")


_OF_JOB: Final = {
    "audit": _audit, "rates": _rates, "last": _last, "latency": _latency,
    "failovers": _failovers, "tokens": _tokens, "watch": _watch,
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the job that was chosen. 0; 1 where it found something wrong."""
    from pipeline.jobs import run as jobs

    return jobs.run(options)
