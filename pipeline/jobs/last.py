"""`buscoupler last`: the last value of each pattern."""

import argparse
from typing import Final

from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.last import last

    return [Table("last", "The last value of each pattern", last(capture.rows()), options.limit)]


JOB: Final = Job(
    name="last",
    help="show the last captured value of each pattern",
    examples=("buscoupler last capture --names plant.yaml",),
    options=(option("--limit", type=whole(0), default=100, metavar="N", help="patterns shown (100)"),),
    tables=tables,
    has_names=True,
    is_command=True,
)
