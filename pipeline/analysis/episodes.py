"""Episodes: the rows of one frame, or of equal frames that follow each other, and how they were counted.

Frames that are known by their content may be equal: equal contents within a window are one *episode*, in
which counts are compared, in order.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis import filters
from pipeline.analysis.frames import first_token, received, sent
from pipeline.input.span import WHOLE, Span

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LATE: Final = 1 << 60
_OF_FRAME: Final = ("origin", "seq", "token", "flow", "begun")


def episodes(
    keyed_rows: "DataFrame", suspect: "DataFrame", window_ns: int, span: Span = WHOLE
) -> "DataFrame":
    """Select the suspects' rows and number their episodes: a new `episode` begins after silence for the
    window. Rows of one envelope are in one episode, however late some of them are. Equal frames that never
    pause are divided at the bounds of the span."""
    picked = joined_in_time(keyed_rows.join(suspect, "key", "left_semi"), window_ns)
    in_time = Window.partitionBy("key").orderBy("joined_ns")
    fresh = F.col("joined_ns") - F.lag("joined_ns").over(in_time) > window_ns
    numbered = picked.withColumn("fresh", F.coalesce(fresh.cast("int"), F.lit(0))).withColumn(
        "episode", F.sum("fresh").over(in_time)
    )
    for bound_ns in (span.from_ns, span.to_ns):
        if bound_ns is not None:
            numbered = _divided(numbered, bound_ns, window_ns)
    return numbered


def _divided(rows: "DataFrame", bound_ns: int, window_ns: int) -> "DataFrame":
    """Divide the episodes that last since long before a time: at the longest silence in the window after it.

    A frame is not divided so, for its rows follow each other more closely than equal frames do. Who looks at
    the time before the bound and who looks at the time after it divide at one place.
    """
    whole = Window.partitionBy("key", "episode")
    in_time = whole.orderBy("joined_ns")
    silence = F.col("joined_ns") - F.lag("joined_ns").over(in_time)
    is_old = F.min("joined_ns").over(whole) < bound_ns - window_ns
    is_near = F.col("joined_ns").between(bound_ns, bound_ns + window_ns)
    found = rows.withColumn("silence", F.when(is_old & is_near, silence))
    found = found.withColumn("longest", F.max("silence").over(whole))
    begins = F.min(F.when(F.col("silence") == F.col("longest"), F.col("joined_ns"))).over(whole)
    # doubled, so that the numbers of a key's episodes stay different
    is_after = F.coalesce((F.col("joined_ns") >= F.col("begins")).cast("int"), F.lit(0))
    divided = found.withColumn("begins", begins).withColumn("episode", F.col("episode") * 2 + is_after)
    return divided.drop("silence", "longest", "begins")


def narrow(rows: "DataFrame", known: filters.Patterns) -> "DataFrame":
    """Keep what is counted of the suspects' rows."""
    numbers = (
        first_token().alias("token"), filters.flow(known).alias("flow"), filters.begun(known).alias("begun"),
        F.xxhash64("peer").alias("peer"),
    )  # fmt: skip
    names = ("key", "episode", "gateway", "hub", "bus", "dir", "ts_ns", "at_ns", "origin", "seq")
    return rows.select(*names, *numbers)


def joined_in_time(rows: "DataFrame", window_ns: int) -> "DataFrame":
    """Add `joined_ns`: `at_ns`, but of late rows when their frame was seen first.

    A row with an envelope is as late as it is behind the first row of that envelope. What its gateway does
    with the frame without an envelope, within the window, is as late as that.
    """
    of_envelope = Window.partitionBy("key", "origin", "seq")
    of_gateway = Window.partitionBy("key", "gateway").orderBy("at_ns")
    late_ns = F.col("at_ns") - F.min("at_ns").over(of_envelope)
    known = F.when(F.col("origin").isNotNull(), F.struct(F.col("at_ns").alias("at"), late_ns.alias("late")))
    found = rows.withColumn("known", known)
    last = found.withColumn("known", F.last("known", ignorenulls=True).over(of_gateway))
    is_near = F.col("at_ns") - F.col("known.at") <= window_ns
    late = F.coalesce(F.when(is_near, F.col("known.late")), F.lit(0))
    return last.withColumn("joined_ns", F.col("at_ns") - late).drop("known")


def counted(rows: "DataFrame") -> "DataFrame":
    """Count the messages `n` of each episode, hub, segment and direction.

    A segment with several peers (I2C targets, dialled-in boards) gets a frame once for each of them. The
    count of the busiest peer is taken, so that this is once.
    """
    place = ("key", "episode", "gateway", "hub", "bus", "dir")
    most = [F.max(name).alias(name) for name in ("last_ns", *_OF_FRAME)]
    by_peer = (
        rows.withColumn("last_ns", F.col("ts_ns"))
        .groupBy(*place, "peer")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.min("ts_ns").alias("first_ns"),
            F.min("at_ns").alias("first_at"),
            F.max("at_ns").alias("last_at"),
            F.count("origin").alias("enveloped"),
            *most,
        )
    )
    return by_peer.groupBy(*place).agg(
        F.when(sent(), F.max("n")).otherwise(F.sum("n")).alias("n"),
        F.sum("n").alias("all"),
        F.min("first_ns").alias("first_ns"),
        F.min("first_at").alias("first_at"),
        F.max("last_at").alias("last_at"),
        F.sum("enveloped").alias("enveloped"),
        *most,
    )


def summarised(counts: "DataFrame", known: "Iterable[str]", span: Span = WHOLE) -> "DataFrame":
    """Add to each count the summary of its episode: `fault_pattern` (64 bits of its counts), `first` (who
    heard it first, of the `known` homes if one did), times, envelope, whether it began
    `inside` the span; `lead` marks one row of each."""
    whole = Window.partitionBy("key", "episode")
    one = F.xxhash64("gateway", "hub", "bus", "dir", "n")
    heard_ns, heard_at = (F.when(received(), F.col(name)) for name in ("first_ns", "first_at"))
    order = heard_at + F.when(F.col("bus").isin(sorted(known)), F.lit(0)).otherwise(F.lit(_LATE))
    return counts.withColumn("one", one).select(
        "key", "episode", "gateway", "hub", "bus", "dir", "n",
        F.bit_xor("one").over(whole).alias("fault_pattern"),
        F.coalesce(F.min_by("bus", order).over(whole), F.lit("")).alias("first"),
        F.min(heard_ns).over(whole).alias("ts_ns"),
        span.inside(F.min("first_ns").over(whole)).alias("inside"),
        F.min("first_at").over(whole).alias("from_at"), F.max("last_at").over(whole).alias("to_at"),
        *(F.max(name).over(whole).alias(name) for name in ("last_ns", *_OF_FRAME)),
        _matched(F.sum("enveloped").over(whole), F.sum("all").over(whole)).alias("matched"),
        (F.col("one") == F.min("one").over(whole)).alias("lead"),
    )  # fmt: skip


def _matched(enveloped: "Column", every: "Column") -> "Column":
    """Say how the rows of a frame were matched: `enveloped` of `every` one of them have an envelope."""
    found = F.when(enveloped == 0, F.lit("content")).when(enveloped == every, F.lit("envelope"))
    return found.otherwise(F.lit("content, envelope on trunks"))
