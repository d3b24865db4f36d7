"""The sums of frames: all rows of a frame added up to a few numbers, in one pass.

A frame is known by its envelope if every row has one. In a capture where some rows have none it is known by
its content. Events of gateways are left out: they are no traffic of applications.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pipeline.analysis.shared.expected import (
    ENVELOPED_UNIT,
    PROOF,
    SEGMENTS_A_WORD,
    SENT_UNIT,
    SEVERAL,
    Signature,
)
from pipeline.analysis.shared.filters import of_frame
from pipeline.analysis.shared.frames import (
    content,
    envelope,
    is_frame,
    is_told,
    local_table,
    on_bridge,
    received,
    sent,
)
from pipeline.analysis.shared.places import Places
from pipeline.input.span import WHOLE, Span

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def keyed(rows: "DataFrame", at: Places) -> "DataFrame":
    """Add `key` and the number of the `segment` to rows of frames that enter, that a bridge receives, or that
    it puts. `place` is that number too, or that of the bus that heard a segment of several."""
    ears = {hub: number for number, (hub, _) in enumerate(at.ears, len(at.segments))}
    return _in_segments(rows, at).withColumn("place", _number("hub", ears, F.col("segment")))


def _in_segments(rows: "DataFrame", at: Places) -> "DataFrame":
    wanted = with_key(rows, at).where(~is_told())
    if at.words == 1:  # to compare a few names takes half the time of a join
        names = {name: n for n, name in enumerate(at.segments)}
        return wanted.withColumn("segment", _number("bus", names, F.lit(None).cast("bigint")))
    numbers = local_table(
        rows.sparkSession, {"bus": str, "segment": int}, [(name, n) for n, name in enumerate(at.segments)]
    )
    return wanted.join(F.broadcast(numbers), "bus")


def _number(column: str, names: Mapping[str, int], number: "Column") -> "Column":
    """Return the number of the name in a column; of one that is not known, `number`."""
    for name, n in names.items():
        number = F.when(F.col(column) == name, F.lit(n).cast("bigint")).otherwise(number)
    return number


def with_key(rows: "DataFrame", at: Places, others: "Column | None" = None) -> "DataFrame":
    """Add `key` to the rows that `keyed` takes, and to those of what gateways say about themselves. With
    `others` select the rows that fulfil this as well, which are no frames: they have no key."""
    key = envelope() if at.by_envelope else content()
    its = is_frame() & (received() | on_bridge())
    if others is None:
        return rows.where(its).withColumn("key", key)
    return rows.where(its | others).withColumn("key", F.when(is_frame(), key))


def sums(keyed_rows: "DataFrame", at: Places, span: Span = WHOLE) -> "DataFrame":
    """Sum up the rows of each key: `words`, `rows`, `flow` (see `pipeline.analysis.shared.expected`), and
    what else its tokens say (`pipeline.analysis.shared.filters.of_frame`); and whether the first is `inside`
    the span."""
    enveloped = F.when(F.col("origin").isNull(), F.lit(0)).otherwise(F.lit(ENVELOPED_UNIT))
    unit = F.when(sent(), F.lit(SENT_UNIT)).otherwise(F.lit(1)) + enveloped
    masks = [F.bit_or(_in_word(n, at.words)).alias(f"word{n}") for n in range(at.words)]
    its = [F.max(column).alias(name) for name, column in of_frame(at.filters).items()]
    inside = span.inside(F.min("ts_ns")).alias("inside")
    return keyed_rows.groupBy("key").agg(*masks, F.sum(unit).alias("rows"), *its, inside)


def _in_word(number: int, words: int) -> "Column":
    """Compute the bit of a row's place, or 0 if it is in another word."""
    inside = F.lit(SEGMENTS_A_WORD) * number
    shift = F.col("place") - inside + F.when(sent(), F.lit(SEGMENTS_A_WORD)).otherwise(F.lit(0))
    bit = F.call_function("shiftleft", F.lit(1).cast("bigint"), shift.cast("int"))
    if words == 1:
        return bit
    here = F.col("place").between(inside, inside + SEGMENTS_A_WORD - 1)
    return F.when(here, bit).otherwise(F.lit(0).cast("bigint"))


def columns(at: Places) -> list[str]:
    """Name the columns of `sums` besides the key."""
    return [*(f"word{n}" for n in range(at.words)), "rows", "flow"]


def signatures(frame_sums: "DataFrame", at: Places) -> "DataFrame":
    """Count the keys with equal sums: the few rows that `pipeline.analysis.shared.expected.learn` takes.

    Sums of several equal frames differ by how many there are. Those that are rare prove nothing, and become
    one, so that the rows stay few.
    """
    inside = F.count(F.when(F.col("inside"), 1)).alias("inside")
    begun = F.max("begun" if at.filters else F.lit(0).cast("bigint")).alias("begun")
    each = frame_sums.groupBy(*columns(at)).agg(F.count(F.lit(1)).alias("count"), inside, begun)
    rows = F.when(_are_several(at) & (F.col("count") < PROOF), F.lit(SEVERAL)).otherwise(F.col("rows"))
    one = each.withColumn("rows", rows).groupBy(*columns(at))
    sums = (F.sum(name).alias(name) for name in ("count", "inside"))
    return one.agg(*sums, F.max("begun").alias("begun"))


def _are_several(at: Places) -> "Column":
    """Return whether a sum may be of several frames without envelopes: put onto each segment more than
    once, or onto none."""
    puts = F.expr(f"rows % {ENVELOPED_UNIT} div {SENT_UNIT}")
    is_enveloped = F.expr(f"rows div {ENVELOPED_UNIT}") == puts + F.expr(f"rows % {SENT_UNIT}")
    segments = (F.bit_count(F.shiftright(f"word{n}", SEGMENTS_A_WORD)) for n in range(at.words))
    return ~is_enveloped & ((puts == 0) | (puts >= 2 * reduce(add, segments)))


def alike(frame_sums: "DataFrame", known: Iterable[Signature], at: Places, how: str = "inner") -> "DataFrame":
    """Join the sums of frames with `home`: the number of the segment of the known sums that they equal.

    With `how` "left", frames with other sums stay, without a home.
    """
    table = [[*one.words, one.rows, one.flow, one.home()] for one in known]
    names: dict[str, type] = dict.fromkeys([*columns(at), "home"], int)
    homes = F.broadcast(local_table(frame_sums.sparkSession, names, table))
    return frame_sums.join(homes, columns(at), how)
