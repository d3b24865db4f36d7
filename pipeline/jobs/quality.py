"""`buscoupler pipeline quality`: the flaws of a capture itself, to know before conclusions are drawn."""

import argparse
from typing import Final

from pipeline.jobs.record import Job, OpenCapture, Table


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.quality import flaws
    from pipeline.analysis.shared import inventory
    from pipeline.analysis.shared.small import Small
    from pipeline.input.late import LATENESS, lateness

    rows = capture.rows()
    taken = inventory.counted(rows).collect() if capture.span.is_bounded else capture.inventory()
    recorders = Small(inventory.CAPTURE, inventory.uncaptured(taken))
    late = Small(LATENESS, [*lateness(capture.newest_ns, capture.span)])
    return [
        Table("flaws", "Holes, doubled rows and clocks that went back", flaws(rows, taken)),
        Table("recorders", "Rows by run of a recorder, and rows that are not there", recorders),
        Table("lateness", "Seconds from the last row of a file until it was there, by gateway", late),
    ]


JOB: Final = Job(
    name="quality",
    help="find what a capture lacks, has twice or got late, and clocks that went back",
    examples=("buscoupler pipeline quality capture",),
    tables=tables,
    faults=("flaws",),
)
