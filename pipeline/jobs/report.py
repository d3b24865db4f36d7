"""`buscoupler report`: one HTML page of all that the jobs find."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import PipelineError
from pipeline.jobs.record import Job, OpenCapture

if TYPE_CHECKING:
    from pyspark.sql import Row


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="(report.html)")


def run(options: argparse.Namespace, capture: OpenCapture) -> int:
    """Write the page. Returns 0, faults or none: the page tells of them."""
    from pipeline.output.page import page

    parts = gather(capture)
    try:
        Path(options.output).write_text(page(capture.directory, parts), encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{options.output}: {error.strerror}") from None
    capture.tell(f"written: {options.output}")
    return 0


def gather(capture: OpenCapture) -> "dict[str, Sequence[Row]]":
    """Collect the rows of all jobs. All of them are small."""
    from pipeline.analysis import audit, failovers, last, latency, rates
    from pipeline.cache import cached
    from pipeline.output.page import ROWS_MOST, window_s

    rows, tell = capture.rows(), capture.tell
    tell("report: audit")
    found = audit.audit(rows)
    seen = found.capture.collect()
    seconds = window_s(seen)
    tell("report: rates")
    windows = cached(rates.rates(rows, seconds))
    parts: dict[str, Sequence[Row]] = {
        "capture": seen,
        "windows": windows.orderBy("start_ns", "bus").collect(),
        "prefixes": rates.by_prefix(windows).limit(ROWS_MOST).collect(),
        "talkers": rates.talkers(rows).collect(),
        "media": rates.media(windows, seconds).collect(),
        "totals": found.totals.collect(),
        "summary": found.summary.collect(),
        "ledger": found.ledger.collect(),
        "agreement": audit.agreement(found.findings, found.ledger).collect(),
    }
    tell("report: failovers")
    parts["failovers"] = failovers.failovers(rows).limit(ROWS_MOST).collect()
    tell("report: latency")
    times = latency.latency(rows)
    parts |= {"clocks": times.clocks.collect(), "hops": times.summary.limit(ROWS_MOST).collect()}
    tell("report: last values")
    parts["last"] = last.last(rows).limit(ROWS_MOST).collect()
    return parts


JOB: Final = Job(
    name="report",
    help="write one HTML page of all that the jobs find in a capture",
    arguments=arguments,
    run=run,
    engines=("spark",),  # it needs `latency`
    is_command=True,
)
