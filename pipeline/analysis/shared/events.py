"""Events in a capture: what candidates of bridges said about their leases, and when they took over."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from capture.schema import Kind
from pipeline.analysis.shared.chosen import first_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, Row

_SLACK_NS: Final = 1_000_000_000
"""The most time between an event and the frames before and after it."""
_TAKEOVER: Final = "takeover: "


def are_recorded(taken: "Iterable[Row]") -> bool:
    """Return whether there are any, by the rows of `pipeline.analysis.shared.inventory.take`."""
    return any(row.kind == Kind.EVENT for row in taken)


def events(rows: "DataFrame") -> "DataFrame":
    """Select the events: `hub`, `gateway`, `ts_ns`, and `cause`, which is the kind, a colon and words."""
    found = rows.where(F.col("kind") == Kind.EVENT.value)
    return found.select("hub", "gateway", "ts_ns", F.col("reason").alias("cause"))


def is_takeover() -> "Column":
    """Return whether a row is the event that a candidate began to forward."""
    return (F.col("kind") == Kind.EVENT.value) & F.col("reason").startswith(_TAKEOVER)


def takeovers(rows: "DataFrame") -> "DataFrame":
    """Select when candidates began to forward: `hub`, `gateway`, `ts_ns`."""
    return events(rows.where(is_takeover())).drop("cause")


def with_cause(found: "DataFrame", rows: "DataFrame") -> "DataFrame":
    """Add `cause` to takeovers and pauses of services: what the gateway that came told last, or the one that
    went; null if it told nothing."""
    its = F.coalesce("to", "from").eqNullSafe(F.col("gateway")) & (F.col("bridge") == F.col("hub"))
    near = F.col("ts_ns").between(F.col("start_ns") - _SLACK_NS, F.col("end_ns") + _SLACK_NS)
    began = F.col("to").isNotNull() & F.col("told").startswith(_TAKEOVER)
    told = events(rows).withColumnsRenamed({"hub": "bridge", "cause": "told"})
    joined = found.join(F.broadcast(told), its & near, "left")
    last = first_of(joined, found.columns, F.desc(began), F.desc("ts_ns"), "told")
    return last.select(*found.columns, F.col("told").alias("cause"))
