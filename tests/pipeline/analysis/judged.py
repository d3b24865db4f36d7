"""The verdict on a capture that is written by hand, or put together of parts of a real one."""

from typing import TYPE_CHECKING

from pipeline.analysis.audit.findings import audit
from pipeline.analysis.audit.verdict import Verdict, judge
from tests.pipeline.analysis.hand_made import Capture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = ("totals", "summary", "ledger", "agreement", "capture", "coverage", "translated")


def answered(made: Capture, spark: "SparkSession") -> Verdict:
    """Audit a capture."""
    tables = audit(made.rows(spark))._asdict()
    return judge({name: tables[name].collect() for name in _TABLES})
