"""`buscoupler latency`: the time per hop and end to end."""

import argparse
from typing import Final

from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.latency import latency

    found = latency(capture.rows(), options.sample, capture.inventory())
    return [
        Table("clocks", "Clocks, against the first gateway of those that can be compared", found.clocks),
        Table("hops", "Each hop, and end to end, in microseconds", found.summary),
    ]


JOB: Final = Job(
    name="latency",
    help="measure the time of captured frames per hop and end to end, clocks corrected",
    examples=("buscoupler latency capture --sample 10",),
    options=(option("--sample", type=whole(1), default=1, metavar="N", help="look at one frame in N (all)"),),
    tables=tables,
    is_command=True,
)
