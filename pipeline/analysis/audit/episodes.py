"""Episodes: the rows of one frame, or of equal frames that follow each other, and how they were counted.

Frames that are known by their content may be equal: equal contents within a window are one *episode*, in
which counts are compared, in order.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.shared.chosen import with_first
from pipeline.analysis.shared.frames import received, sent
from pipeline.analysis.shared.places import Places
from pipeline.input.span import WHOLE, Span

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

EPISODE: Final = ("key", "episode")
"""The columns that name an episode."""

BY_CONTENT: Final = "content"
BY_ENVELOPE: Final = "envelope"
BOTH: Final = "content, envelope on trunks"
"""The ways by which rows are matched to a frame."""

_OF_FRAME: Final = ("origin", "seq", "token", "flow", "begun")


def numbered(rows: "DataFrame", at: Places, window_ns: int, span: Span = WHOLE) -> "DataFrame":
    """Number the episodes of suspects (`suspects`) that have `first_at` and `last_at`.

    A new `episode` begins after silence for the window. Rows of one envelope are in one episode, however late
    some of them are. Equal frames that never pause are divided at the bounds of the span.
    """
    if at.by_envelope:
        return rows.withColumn("episode", F.lit(0).cast("bigint"))
    joined = _joined_in_time(rows, window_ns) if at.has_envelopes else _as_they_are(rows)
    in_time = Window.partitionBy("key").orderBy("from_joined")
    is_fresh = F.coalesce((_silence(in_time) > window_ns).cast("bigint"), F.lit(0))
    found = joined.withColumn("fresh", is_fresh).withColumn("episode", F.sum("fresh").over(in_time))
    for bound_ns in (span.from_ns, span.to_ns):
        if bound_ns is not None:
            found = _divided(found, bound_ns, window_ns)
    return found


def _silence(in_time: "WindowSpec") -> "Column":
    """Return how long nothing was seen before a row."""
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    return F.col("from_joined") - F.max("to_joined").over(before)


def _divided(rows: "DataFrame", bound_ns: int, window_ns: int) -> "DataFrame":
    """Divide the episodes that last since long before a time: at the longest silence in the window after it.

    A frame is not divided so, for its rows follow each other more closely than equal frames do. Who looks at
    the time before the bound and who looks at the time after it divide at one place.
    """
    whole = Window.partitionBy("key", "episode")
    is_old = F.min("from_joined").over(whole) < bound_ns - window_ns
    is_near = F.col("from_joined").between(bound_ns, bound_ns + window_ns)
    silence = _silence(whole.orderBy("from_joined"))
    found = rows.withColumn("silence", F.when(is_old & is_near, silence))
    found = found.withColumn("longest", F.max("silence").over(whole))
    begins = F.min(F.when(F.col("silence") == F.col("longest"), F.col("from_joined"))).over(whole)
    # doubled, so that the numbers of a key's episodes stay different
    is_after = F.coalesce((F.col("from_joined") >= F.col("begins")).cast("int"), F.lit(0))
    divided = found.withColumn("begins", begins).withColumn("episode", F.col("episode") * 2 + is_after)
    return divided.drop("silence", "longest", "begins")


def _as_they_are(rows: "DataFrame") -> "DataFrame":
    return rows.withColumns({"from_joined": F.col("first_at"), "to_joined": F.col("last_at")})


def _joined_in_time(rows: "DataFrame", window_ns: int) -> "DataFrame":
    """Add `from_joined` and `to_joined`: `first_at` and `last_at`, but of late rows when their frame was seen
    first.

    A row with an envelope is as late as it is behind the first row of that envelope. What its gateway does
    with the frame without an envelope, within the window, is as late as that.
    """
    of_envelope = Window.partitionBy("key", "origin", "seq")
    of_gateway = Window.partitionBy("key", "gateway").orderBy("first_at")
    late_ns = F.col("first_at") - F.min("first_at").over(of_envelope)
    known = F.when(
        F.col("origin").isNotNull(), F.struct(F.col("first_at").alias("at"), late_ns.alias("late"))
    )
    found = rows.withColumn("known", known)
    last = found.withColumn("known", F.max("known").over(of_gateway))  # of one time, the one most late
    is_near = F.col("first_at") - F.col("known.at") <= window_ns
    late = F.coalesce(F.when(is_near, F.col("known.late")), F.lit(0))
    times = {"from_joined": F.col("first_at") - late, "to_joined": F.col("last_at") - late}
    return last.withColumns(times).drop("known")


def counted(rows: "DataFrame") -> "DataFrame":
    """Count the messages `n` of each episode, hub, segment and direction.

    A segment with several peers (I2C targets, dialled-in boards) gets a frame once for each of them. The
    count of the busiest peer is taken, so that this is once.
    """
    place = ("key", "episode", "gateway", "hub", "bus", "dir")
    least = [F.min(name).alias(name) for name in ("first_ns", "first_at")]
    most = [F.max(name).alias(name) for name in ("last_ns", "last_at", *_OF_FRAME)]
    enveloped = F.sum(F.when(F.col("origin").isNotNull(), F.col("n")).otherwise(0)).alias("enveloped")
    by_peer = rows.groupBy(*place, "peer").agg(F.sum("n").alias("n"), enveloped, *least, *most)
    n = F.when(sent(), F.max("n")).otherwise(F.sum("n")).alias("n")
    every = F.sum("n").alias("all"), F.sum("enveloped").alias("enveloped")
    return by_peer.groupBy(*place).agg(n, *every, *least, *most)


def summarised(counts: "DataFrame", known: "Iterable[str]", span: Span = WHOLE) -> "DataFrame":
    """Sum up each episode in one row: its counts (`seen`) and 64 bits of them (`fault_pattern`), the segment
    that heard it first (of the `known` homes if one did), the hub and bus of the opener (who heard it first),
    times, envelope, how it was `matched`, and whether it began `inside` the span."""
    one = F.xxhash64("gateway", "hub", "bus", "dir", "n")
    heard_ns, heard_at = (F.when(received(), F.col(name)) for name in ("first_ns", "first_at"))
    in_order = heard_at.asc_nulls_last(), "hub", "bus"
    is_home = received() & F.col("bus").isin(sorted(known))
    marked = with_first(counts.withColumn("is_home", is_home), "is_first", EPISODE, *in_order)
    marked = with_first(marked, "is_best", (*EPISODE, "is_home"), *in_order)
    marked = marked.withColumn("is_opener", F.col("is_first") & received())
    at_home, of_opener = F.col("is_home") & F.col("is_best"), F.col("is_opener")
    firsts = [F.max(F.when(one, F.col("bus"))) for one in (at_home, of_opener)]
    return marked.groupBy(*EPISODE).agg(
        F.bit_xor(one).alias("fault_pattern"),
        F.collect_list(F.struct("gateway", "hub", "bus", "dir", "n")).alias("seen"),
        F.coalesce(*firsts, F.lit("")).alias("first"),
        *(F.max(F.when(F.col("is_opener"), F.col(name))).alias(f"opener_{name}") for name in ("hub", "bus")),
        F.coalesce(F.min(heard_ns), F.min("first_ns")).alias("ts_ns"),
        span.inside(F.min("first_ns")).alias("inside"),
        F.min("first_at").alias("from_at"), F.max("last_at").alias("to_at"),
        *(F.max(name).alias(name) for name in ("last_ns", *_OF_FRAME)),
        _matched(F.sum("enveloped"), F.sum("all")).alias("matched"),
    )  # fmt: skip


def _matched(enveloped: "Column", every: "Column") -> "Column":
    """Say how the rows of a frame were matched: `enveloped` of `every` one of them have an envelope."""
    found = F.when(enveloped == 0, F.lit(BY_CONTENT)).when(enveloped == every, F.lit(BY_ENVELOPE))
    return found.otherwise(F.lit(BOTH))
