"""`buscoupler failovers`: service gaps and takeovers."""

import argparse
from typing import Final

from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.failovers import failovers

    found = failovers(capture.rows(), options.gap_ms, capture.inventory())
    return [Table("failovers", "Takeovers and service gaps", found)]


JOB: Final = Job(
    name="failovers",
    help="find service gaps and takeovers, and what their bridges said",
    examples=("buscoupler failovers capture --gap-ms 500",),
    options=(option("--gap-ms", type=whole(1), default=100, metavar="MS", help="silence that counts (100)"),),
    tables=tables,
    has_names=True,
    is_command=True,
)
