"""The rows of a capture as views for SQL: frames, ledgers, events and items on wires, with names instead of
tokens."""

from socket import CAN_EFF_FLAG, CAN_EFF_MASK, CAN_ERR_FLAG, CAN_RTR_FLAG
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from bus.names import Names
from bus.wire.notation import written
from capture.schema import Kind
from pipeline.analysis.shared.frames import frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMES_MOST: Final = 2_000
"""Names in a plan. Above that, patterns are in hex: a plan with many takes longer than the query."""


_LITTLE: Final = ", ".join(f"substr(in_hex, {place}, 2)" for place in (7, 5, 3, 1))


def time(column: str = "ts_ns") -> "Column":
    """Return a time as Spark has it, to the microsecond."""
    return F.expr(f"timestamp_micros({column} div 1000)").alias("time")


def of_frames(rows: "DataFrame", names: Names) -> "DataFrame":
    """Return the frames that passed, each where it was seen. `text` is the payload, if it is UTF-8."""
    text = F.expr("CASE WHEN is_valid_utf8(cast(payload AS STRING)) THEN cast(payload AS STRING) END")
    return frames(rows).select(
        "ts_ns", time(), "gateway", "hub", "bus", "peer", "dir", pattern(names).alias("pattern"), "tokens",
        "payload", text.alias("text"), "message_bytes", "origin", "seq", "date",
    )  # fmt: skip


def of_ledgers(rows: "DataFrame") -> "DataFrame":
    """Return the changes of the accounts of links."""
    found = rows.where(F.col("kind") == Kind.LEDGER.value)
    return found.select(
        "ts_ns",
        time(),
        "gateway",
        "hub",
        "bus",
        F.col("peer").alias("link"),
        "dir",
        "reason",
        "count",
        "date",
    )


def of_events(rows: "DataFrame") -> "DataFrame":
    """Return what the candidates of bridges told."""
    found = rows.where(F.col("kind") == Kind.EVENT.value)
    return found.select("ts_ns", time(), "gateway", "hub", F.col("reason").alias("event"), "date")


def of_wires(rows: "DataFrame") -> "DataFrame":
    """Return the items on wires. Frames of CAN have a `can_id`, but not those of errors, whether it
    `is_extended`, and `data`; to what is none, these are null."""
    found = rows.where(F.col("kind") == Kind.WIRE.value)
    head = found.withColumn("in_hex", F.when(F.col("reason") == "frames", F.hex("payload")))
    whole = head.withColumn("word", F.expr(f"cast(conv(concat({_LITTLE}), 16, 10) AS BIGINT)"))
    data = "unhex(substr(in_hex, 17, 2 * cast(conv(substr(in_hex, 9, 2), 16, 10) AS INT)))"
    return whole.select(
        "ts_ns", time(), "gateway", "hub", "bus", F.col("peer").alias("link"), "dir",
        F.col("reason").alias("items"),
        F.expr(f"CASE WHEN word & {CAN_ERR_FLAG} = 0 THEN word & {CAN_EFF_MASK} END AS can_id"),
        F.expr(f"word & {CAN_EFF_FLAG} <> 0 AS is_extended"),
        F.expr(f"CASE WHEN word & {CAN_RTR_FLAG} = 0 THEN {data} END AS data"),
        "payload", "date",
    )  # fmt: skip


def of_signals(values: "DataFrame") -> "DataFrame":
    """Return long rows of signals, with the name that conditions know them by."""
    whole = F.concat_ws("/", "pattern", "signal")
    name = F.when(F.col("pattern") == "/", F.col("signal")).otherwise(whole)
    return values.select("ts_ns", time(), "gateway", "bus", name.alias("name"), *values.columns[3:])


def pattern(names: Names) -> "Column":
    """Return the pattern of a frame as text: names where they are known, else hex."""
    known = sorted((token, names.get(token)) for token in names.tokens())[:_NAMES_MOST]
    in_hex = "concat('0x', lpad(lower(hex(token)), 8, '0'))"
    cases = " ".join(f"WHEN {token} THEN {_quoted(written(name))}" for token, name in known if name)
    word = f"CASE token {cases} ELSE {in_hex} END" if cases else in_hex
    return F.expr(f"array_join(transform(tokens, token -> {word}), '/')")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
