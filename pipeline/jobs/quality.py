"""`buscoupler pipeline quality`: the flaws of a capture itself, to know before conclusions are drawn."""

import argparse
from typing import Final

from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.quality import completeness, flaws
    from pipeline.analysis.shared import inventory
    from pipeline.analysis.shared.small import Small
    from pipeline.input.late import LATENESS, lateness

    rows = capture.rows()
    taken = inventory.counted(rows).collect() if capture.span.is_bounded else capture.inventory()
    recorders = Small(inventory.CAPTURE, inventory.uncaptured(taken))
    days = completeness(rows)
    if options.textfile:
        from pipeline.cache import cached
        from pipeline.output import textfile

        days = cached(days)  # it is shown too

        textfile.write(options.textfile, days.collect())
    recorded = {(run.gateway, run.boot) for run in inventory.runs(taken)}
    late = Small(LATENESS, [*lateness(capture.newest_ns, capture.span, recorded)])
    return [
        Table("flaws", "Holes, doubled rows and clocks that went back", flaws(rows, taken)),
        Table("completeness", "Rows by gateway and day, and numbers of rows that are not there", days),
        Table("recorders", "Rows by run of a recorder, and rows that are not there", recorders),
        Table("lateness", "Seconds from the last row of a file until it was there, by gateway", late),
    ]


JOB: Final = Job(
    name="quality",
    help="find what a capture lacks, has twice or got late, and clocks that went back",
    examples=("buscoupler pipeline quality capture",),
    options=(
        option("--textfile", metavar="FILE", help="also write completeness for Prometheus' node exporter"),
    ),
    tables=tables,
    writes=("textfile",),
    faults=("flaws",),
)
