"""`buscoupler report`: one HTML page of all that the jobs find."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bus.machine.files import whole
from capture.schema import Kind
from pipeline.analysis.audit.verdict import judge
from pipeline.errors import PipelineError
from pipeline.jobs import audit, failovers, last, latency, rates, signals
from pipeline.jobs.record import Job, OpenCapture, Table, collected, option
from pipeline.output.page import ROWS_MOST, SIGNALS_MOST, page, window_s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_LONG: Final = ("prefixes", "failovers", "hops", "last")
_JOBS: Final = (audit.JOB, rates.JOB, failovers.JOB, latency.JOB, last.JOB)
"""The jobs whose tables the page has. The first alone tells of items on wires."""


def run(options: argparse.Namespace, capture: OpenCapture) -> int:
    """Write the page and print its verdict. Returns 0, faults or none: the page tells of them."""
    parts = gather(capture)
    if signals.are_asked(options):
        capture.tell("report: signals")
        windows = signals.busiest(options, capture, window_s(parts["capture"]), SIGNALS_MOST)
        parts["signals"] = windows.collect()
        if options.dbc and not parts["signals"]:
            capture.tell("report: no signal; `buscoupler signals` shows which identifiers no database has")
    found = judge(parts)
    where = capture.where or capture.directory
    text = page(where, (found.color, found.line), parts, capture.names)
    try:
        Path(options.output).parent.mkdir(parents=True, exist_ok=True)
        with whole(options.output) as file:
            file.write(text.encode())
    except OSError as error:
        raise PipelineError(f"{options.output}: cannot be written: {error.strerror}") from None
    print(found.line)
    capture.tell(f"written: {options.output}")
    return 0


def gather(capture: OpenCapture) -> "dict[str, Sequence[Row]]":
    """Collect the tables of the jobs for the page, by name. The long ones are cut. Of a log of a wire alone
    there are those of the audit."""
    from pipeline.analysis.shared import trunks
    from pipeline.analysis.shared.inventory import carried, holds, topologies
    from pipeline.analysis.shared.small import framed

    parts: dict[str, Sequence[Row]] = {}
    findings: Table | None = None
    taken = capture.inventory()
    for job in _JOBS if holds(taken, Kind.FRAME, Kind.EVENT) else _JOBS[:1]:
        assert job.tables is not None
        capture.tell(f"report: {job.name}")
        words = ["--seconds", str(window_s(parts["capture"]))] if job is rates.JOB else []
        tables = {one.name: one for one in job.tables(job.parsed(capture.directory, *words), capture)}
        findings = tables.pop("findings", findings)  # the page has their summary, and when they were
        parts |= zip(tables, collected([*map(_cut, tables.values())]), strict=True)
    assert findings is not None
    its = framed(capture.spark, findings.frame)
    parts["faults"] = by_time(its, window_s(parts["capture"])).collect()
    parts["carried"] = carried(trunks.in_inventory(taken, trunks.joined(topologies(taken))))
    return parts


def _cut(table: Table) -> Table:
    return table._replace(rows=ROWS_MOST) if table.name in _LONG else table


def by_time(findings: "DataFrame", seconds: float) -> "DataFrame":
    """Count findings by kind, segment and window."""
    from pyspark.sql import functions as F

    start = F.expr(f"ts_ns - ts_ns % {round(seconds * 1e9)}").alias("start_ns")
    counted = findings.groupBy("kind", "segment", start).agg(F.sum("count").alias("count"))
    return counted.orderBy("start_ns", "segment", "kind")


JOB: Final = Job(
    name="report",
    help="write one HTML page of all that the jobs find in a capture",
    examples=("buscoupler report capture -o report.html",),
    options=(
        option(
            "-o", "--output", default="report.html", metavar="FILE", help="the file to write (report.html)"
        ),
        option(
            "--signals", action="store_true", help="plot the busiest signals; so do --dbc, --form, --topology"
        ),
        *signals.DECODING,
    ),
    prepare=signals.check,
    run=run,
    has_names=True,
    is_command=True,
    writes=("output",),
    decodes=True,
    on_workers=signals.are_asked,
)
