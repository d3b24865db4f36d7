"""A file of metrics for the textfile collector of Prometheus' node exporter, by prometheus-client."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Row

_GAUGES: Final = {
    "rows": ("buscoupler_capture_rows", "Rows of a capture, by gateway and day (UTC)."),
    "missing": ("buscoupler_capture_rows_missing", "Rows that are not there, by their numbers."),
}


def write(path: str, rows: "Iterable[Row]") -> None:
    """Write the completeness of a capture at once: a collector reads the old file, or all of the new one.

    `rows` have the columns of `pipeline.analysis.quality.completeness`. Raises `PipelineError`.
    """
    registry, found = CollectorRegistry(), list(rows)
    for column, (name, doc) in _GAUGES.items():
        gauge = Gauge(name, doc, ["gateway", "day"], registry=registry)
        for row in found:
            gauge.labels(row.gateway, row.day).set(row[column])
    try:
        write_to_textfile(path, registry)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None
