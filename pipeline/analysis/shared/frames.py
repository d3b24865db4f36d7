"""Rows that are frames: conditions on them, their keys and times; and small tables made of values."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from bus import events, logs
from bus.machine.late import hidden
from capture.schema import ANY, BRIDGE, Direction, Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NO_FRAME: Final = -2
"""Instead of the first token: the message is no frame."""

_SQL: Final[Mapping[Any, str]] = {
    int: "BIGINT", str: "STRING", float: "DOUBLE", bool: "BOOLEAN", list[str]: "ARRAY<STRING>"
}  # fmt: skip


def frames(rows: "DataFrame") -> "DataFrame":
    """Select the rows that are a frame that passed."""
    return rows.where(is_frame())


def is_frame() -> "Column":
    """Return whether a row is a frame that passed."""
    return F.col("kind") == Kind.FRAME.value


def received() -> "Column":
    """Select rows that a hub received from a segment."""
    return F.col("dir") == Direction.RX.value


def sent() -> "Column":
    """Select rows that a hub sent to a segment."""
    return F.col("dir") == Direction.TX.value


def on_bridge() -> "Column":
    """Select rows that a bridge recorded."""
    return F.col("hub").startswith(BRIDGE)


def bins(width_ns: int) -> "Column":
    """Number the time windows of `width_ns` by the time of a row."""
    return F.expr(f"ts_ns div {width_ns}")


def content() -> "Column":
    """Hash a frame's type, tokens and payload to 64 bits."""
    return F.xxhash64("type", "tokens", "payload")


def envelope() -> "Column":
    """Join the envelope's (origin, sequence) to 64 bits; null without one."""
    return F.shiftleft(F.col("origin"), 32).bitwiseOR(F.col("seq"))


def first_token() -> "Column":
    """Return the first token of a frame, -1 if it has none; -2 of a message that is no frame.

    Such messages go other ways than frames without tokens: buses carry them, and field media do not.
    """
    first = F.coalesce(F.try_element_at("tokens", F.lit(1)), F.lit(-1))
    return F.when(F.col("type").isNull(), F.lit(NO_FRAME).cast("bigint")).otherwise(first)


def begins(pattern: "Sequence[int]") -> "Column":
    """Return whether the tokens of a frame start with a pattern of at least one token."""
    tokens = (
        F.try_element_at("tokens", F.lit(n)) == F.lit(token)
        for n, token in enumerate(pattern, 1)
        if token != ANY
    )
    return F.coalesce(reduce(and_, tokens), F.lit(False))


def is_told() -> "Column":
    """Return whether a frame is what a gateway says about itself: an event, or a line of its log."""
    return begins(events.PATTERN) | begins(logs.PATTERN)


def local_table(
    spark: "SparkSession", columns: Mapping[str, Any], rows: Sequence[Sequence[Any]]
) -> "DataFrame":
    """Make a small table of values, by way of Arrow: without a Python worker, and the same over Connect."""
    import pyarrow as pa

    if not rows:  # the optimizer sees that it is empty, and leaves out what is joined with it
        nothing = ", ".join(f"CAST(NULL AS {_SQL[kind]}) AS `{name}`" for name, kind in columns.items())
        return spark.sql(f"SELECT {nothing} WHERE false")
    types = {int: pa.int64(), str: pa.string(), float: pa.float64(), bool: pa.bool_()}
    types |= {list[str]: pa.list_(pa.string())}
    values = zip(columns.items(), zip(*rows, strict=True), strict=True)
    with hidden("pandas"):  # which pyspark asks for, whatever it gets
        return spark.createDataFrame(pa.table({name: pa.array(v, types[kind]) for (name, kind), v in values}))
