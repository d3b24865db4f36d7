"""The rows of a capture as views for SQL: frames, ledgers and events, with names instead of tokens."""

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
