"""`buscoupler audit`: did every frame reach every other segment exactly once?"""

import argparse
from typing import Final

from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis.audit import agreement, audit

    found = audit(capture.rows(), options.window_ms)
    both = agreement(found.findings, found.ledger)
    first = found.findings.orderBy("ts_ns", "segment", "kind", "key", "stage")
    return [
        Table(
            "totals",
            "Frames that entered, without events of gateways, and how their rows were matched",
            found.totals,
        ),
        Table("summary", "Faults by kind, stage and place", found.summary),
        Table("findings", f"The first {options.limit} faults", first, options.limit),
        Table("ledger", "What the ledgers say was dropped or rejected", found.ledger),
        Table("agreement", "Drops by ledger, beside losses in the traffic", both),
        Table("capture", "What the recorders saw, and missed", found.capture),
    ]


JOB: Final = Job(
    name="audit",
    help="check that every captured frame reached every other segment exactly once",
    options=(
        option(
            "--window-ms",
            type=int,
            default=2000,
            metavar="MS",
            help="within which equal frames are matched by count and order (2000)",
        ),
        option("--limit", type=int, default=20, metavar="N", help="findings shown one by one (20)"),
    ),
    tables=tables,
    faults=("summary",),
    has_names=True,
    is_command=True,
)
