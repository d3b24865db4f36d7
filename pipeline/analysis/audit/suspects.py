"""Suspects: frames whose sums are not typical. Their rows are looked at one by one, a few in a thousand.

One pass selects them together with a sample of the frames without a fault, by which the gateways' clocks are
compared.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.audit import failover_copies, replays
from pipeline.analysis.shared import filters, sums
from pipeline.analysis.shared.expected import Expected
from pipeline.analysis.shared.places import Places
from pipeline.analysis.shared.service import BIN_NS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ITS: Final = ("token", "flow", "begun")
BROADCAST_MOST: Final = 2_000_000
"""Frames of which a hash table in each worker is small."""
_SAMPLE: Final = 2_000
"""Frames by which clocks are compared, about, of a capture that has more."""


def picked(
    of_frames: "DataFrame",
    frame_sums: "DataFrame",
    expected: Expected,
    at: Places,
    wrong: int,
    again: "DataFrame | None" = None,
) -> "DataFrame":
    """Select the rows of `wrong` suspects, whose `home` is null, and of a sample of frames without a fault.

    `of_frames` are the rows of all frames with their `key` (`pipeline.analysis.shared.sums.with_key`). Rows
    of one key that one peer of a hub has within a bin of time become one: `n` rows, from `first_ns` to
    `last_ns`. What the tokens of a frame say is taken from its sums: so tokens are not read again if
    envelopes are keys. Frames that were sent `again` (`failover_copies.pairs`) are one with what they were
    before.
    """
    usual = sums.alike(frame_sums, expected.typical, at, "left")
    judged = filters.with_all(usual).select("key", "home", *_ITS)
    wanted = judged.where(F.col("home").isNull() | _is_in_sample(expected, at))
    if again is not None:
        before = judged.join(F.broadcast(again.select(F.col("one_key").alias("key"))), "key", "left_semi")
        wanted = wanted.union(before).distinct()
    if wrong < BROADCAST_MOST:
        wanted = F.broadcast(wanted)
    found = _condensed(of_frames.join(wanted, "key"), at)
    return found if again is None else failover_copies.as_one(found, again)


def _is_in_sample(expected: Expected, at: Places) -> "Column":
    if len({gateway for gateway, _ in at.hubs}) < 2:  # there is nothing to compare
        return F.lit(False)
    one_in = max(1, sum(one.frames for one in expected.typical) // _SAMPLE)
    return F.pmod(F.xxhash64("key"), F.lit(one_in)) == 0


def _condensed(rows: "DataFrame", at: Places) -> "DataFrame":
    """Make one row of those of a key, a peer of a hub, and a bin of time. Envelopes need no time."""
    place = ("key", "home", "gateway", "hub", "bus", "dir", "origin", "seq", replays.STOOD_BY)
    times = F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns")
    most = (F.max(name).alias(name) for name in _ITS)
    when = [] if at.by_envelope else [F.expr(f"ts_ns div {BIN_NS}").alias("bin")]
    told = rows.withColumn(replays.STOOD_BY, replays.stood_by())
    groups = told.groupBy(*place, F.xxhash64("peer").alias("peer"), *when)
    return groups.agg(F.count(F.lit(1)).alias("n"), *times, *most).drop("bin")
