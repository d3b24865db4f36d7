"""The lines of the log of gateways that were captured, the newest first."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from bus import logs
from bus.wire.pattern import token
from pipeline.analysis.shared.frames import begins, frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIELDS: Final = "time_ns BIGINT, source STRING, logger STRING, text STRING"
_LEVEL: Final = len(logs.PATTERN) + 1


def lines(rows: "DataFrame", levels: tuple[str, ...] = logs.LEVELS) -> "DataFrame":
    """Show each line once, however many recorders heard it: when, how bad, whose, and what.

    `time_ns` is by the clock of the gateway that said it.
    """
    heard = frames(rows).where(begins(logs.PATTERN) & _level().isin(*levels))
    said = F.from_json(F.col("payload").cast("string"), _FIELDS)
    found = heard.select(said.alias("said"), _level().alias("level")).where("said.time_ns is not null")
    columns = ("time_ns", "level", "source", "logger", "text")
    parts = found.select("said.time_ns", "level", "said.source", "said.logger", "said.text")
    return parts.dropDuplicates(list(columns)).orderBy(*(F.col(name).desc() for name in columns))


def _level() -> "Column":
    """Return the level of a line by its token; null of what is none."""
    found = F.try_element_at("tokens", F.lit(_LEVEL))
    known = F.lit(None).cast("string")
    for level in logs.LEVELS:
        known = F.when(found == F.lit(token(level)), F.lit(level)).otherwise(known)
    return known
