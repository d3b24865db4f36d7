"""`buscoupler audit`: did every frame reach every other segment exactly once?"""

import argparse
from typing import TYPE_CHECKING, Final

from pipeline.analysis.audit.coverage import apart_ns
from pipeline.analysis.audit.verdict import judge
from pipeline.input.span import MARGIN_NS
from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, OpenCapture, Table, option

if TYPE_CHECKING:
    from pipeline.analysis.audit.findings import Audit


def audited(capture: OpenCapture, window_ms: int, margin_ns: int = MARGIN_NS) -> "Audit":
    """Audit the span that is asked for. If clocks turn out to be further apart than the margin, look again,
    with one that they are not: else what one gateway heard lies beyond the time of the others."""
    from pipeline.analysis.audit.findings import audit

    found = audit(
        capture.rows(margin_ns),
        window_ms,
        capture.span,
        capture.inventory(margin_ns),
        capture.left_out,
        journals=capture.unread,
        margin_ns=margin_ns,
    )
    if margin_ns > MARGIN_NS or not capture.span.is_bounded:
        return found
    more_ns = apart_ns(found.coverage.collect())
    return audited(capture, window_ms, MARGIN_NS + more_ns) if more_ns else found


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    found = audited(capture, options.window_ms)
    first = found.findings.orderBy("ts_ns", "segment", "kind", "key", "stage")
    return [
        Table(
            "totals",
            "Frames that entered, each once (no events), by how they were matched",
            found.totals,
        ),
        Table("summary", "Faults by kind, stage and place", found.summary),
        Table("findings", f"The first {options.limit} faults", first, options.limit),
        Table(
            "ledger",
            "Messages by ledger: rejected on arrival (dir 0), dropped on the way (1)",
            found.ledger,
        ),
        Table(
            "agreement", "Messages dropped by ledger, beside frames missing in the traffic", found.agreement
        ),
        Table("capture", "Rows of the recorders: one for each frame, hub and segment", found.capture),
        Table(
            "translated",
            "Sides with a protocol, compared by counts: items on the wire, frames in the bridge",
            found.translated,
        ),
        Table("coverage", "What was not looked at", found.coverage),
    ]


JOB: Final = Job(
    name="audit",
    help="check that every captured frame reached every other segment exactly once",
    examples=("buscoupler audit capture --engine sail",),
    options=(
        option(
            "--window-ms",
            type=whole(1),
            default=2000,
            metavar="MS",
            help="within which equal frames are matched by count and order (2000)",
        ),
        option("--limit", type=whole(0), default=20, metavar="N", help="findings shown one by one (20)"),
    ),
    tables=tables,
    has_names=True,
    verdict=judge,
    legend="Frames, and messages that are no frames with them, count once, where they entered. Ledgers count "
    "the messages of each link, so a frame that went to three links is three there. Recorders count rows: "
    "one for each hub and segment that a frame passed.",
    is_command=True,
)
