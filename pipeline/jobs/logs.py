"""`buscoupler logs`: the log of all gateways, as it was captured."""

import argparse
from typing import Final

from bus.logs import LEVELS
from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.logs import lines

    levels = LEVELS[LEVELS.index(options.level) :]
    return [Table("logs", "Lines of the log, the newest first", lines(capture.rows(), levels), options.limit)]


JOB: Final = Job(
    name="logs",
    help="show the captured log of all gateways, the newest line first",
    examples=("buscoupler logs /var/lib/buscoupler/log --level error",),
    options=(
        option("--level", choices=LEVELS, default=LEVELS[0], help="show lines of this level and worse"),
        option("--limit", type=whole(0), default=1000, metavar="N", help="lines shown (1000)"),
    ),
    tables=tables,
    is_command=True,
)
