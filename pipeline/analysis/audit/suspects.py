"""Suspects: frames whose sums are not typical. Their rows are looked at one by one, a few in a thousand.

One pass selects them together with a sample of the frames without a fault, by which the gateways' clocks are
compared; and it notes of all others when each hub had some (`pipeline.analysis.audit.pieces`).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from capture.schema import Kind
from pipeline.analysis.audit import failover_copies, few, replays
from pipeline.analysis.audit.pieces import Pieces
from pipeline.analysis.shared import events, filters, sums
from pipeline.analysis.shared.expected import Expected
from pipeline.analysis.shared.places import Places
from pipeline.analysis.shared.service import BIN_NS, GAP_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_ITS: Final = ("token", "flow", "begun")
_OF_KEY: Final = ("key", "home", "origin", "seq", replays.STOOD_BY, "peer")
"""The columns that are asked of suspects and of the sample alone."""
_OF_RUN: Final = ("kind", "boot", "first_seq", "last_seq")
BROADCAST_MOST: Final = 2_000_000
"""Frames of which a hash table in each worker is small."""
_SAMPLE: Final = 2_000
"""Frames by which clocks are compared, about, of a capture that has more."""


class Looked(NamedTuple):
    """A look at a capture: the keys of frames that are `wanted`, those of them that were sent `again`, and
    the `pieces`; None if there are none, or too many for the driver."""

    wanted: "DataFrame"
    again: "DataFrame | None"
    pieces: Pieces | None


def look(
    rows: "DataFrame", frame_sums: "DataFrame", expected: Expected, at: Places, taken: "list[Row]", wrong: int
) -> Looked:
    """Find the suspects, so many of which are `wrong`, and collect what is to be known of them. `taken` is
    the inventory.

    Whether frames were sent again is asked of all rows only if suspects, or what recorders wrote, say so.
    """

    def looked(is_asked: bool) -> Looked:
        pairs = failover_copies.pairs
        again = pairs(sums.with_key(rows, at), frame_sums, expected, at, has_entries) if is_asked else None
        keys = wanted(frame_sums, expected, at, again)
        return Looked(keys, again, _pieces(rows, keys, at, taken, again) if wrong <= few.MOST else None)

    has_entries = replays.are_recorded(taken)
    may_be = failover_copies.may_be(expected, at, has_entries)
    found = looked(may_be and (has_entries or wrong > few.MOST))
    if may_be and found.again is None and (found.pieces is None or found.pieces.are_sent_again()):
        return looked(is_asked=True)
    return found


def _pieces(
    rows: "DataFrame", wanted: "DataFrame", at: Places, taken: "list[Row]", again: "DataFrame | None"
) -> Pieces | None:
    """Collect the rows of the frames that are `wanted`, and when others passed, in one pass. None if these
    are too many for the driver, which the inventory tells before of the times."""
    has_events = events.are_recorded(taken)
    width_ns = BIN_NS if has_events else GAP_MS * 1_000_000
    if _bins(taken, width_ns) > few.MOST:
        return None
    of_frames = sums.with_key(rows, at, events.is_takeover() if has_events else None)
    mine = wanted.withColumn("is_mine", F.lit(True))
    found = _condensed(of_frames.join(F.broadcast(mine), "key", "left"), width_ns)
    table = few.collected(found if again is None else failover_copies.as_one(found, again), 2 * few.MOST)
    return None if table is None else Pieces(table, width_ns)


def _bins(taken: "Iterable[Row]", width_ns: int) -> int:
    """Return of how many bins of time there may be rows."""
    its = (row for row in taken if row.kind == Kind.FRAME)
    return sum(min(row.rows, (row.last_ns - row.first_ns) // width_ns + 1) for row in its)


def picked(of_frames: "DataFrame", looked: Looked, wrong: int) -> "DataFrame":
    """Select the rows of the frames that are wanted, by a plan; so many of them are `wrong`.

    `of_frames` are the rows of all frames with their `key` (`pipeline.analysis.shared.sums.with_key`).
    """
    keys = F.broadcast(looked.wanted) if wrong < BROADCAST_MOST else looked.wanted
    found = _condensed(of_frames.join(keys, "key").withColumn("is_mine", F.lit(True)), BIN_NS).drop(*_OF_RUN)
    return found if looked.again is None else failover_copies.as_one(found, looked.again)


def wanted(
    frame_sums: "DataFrame", expected: Expected, at: Places, again: "DataFrame | None" = None
) -> "DataFrame":
    """Select the keys of suspects, whose `home` is null, and of a sample of frames without a fault.

    What the tokens of a frame say is taken from its sums: so tokens are not read again if envelopes are keys.
    Frames that were sent `again` (`failover_copies.pairs`) are one with what they were before.
    """
    usual = sums.alike(frame_sums, expected.typical, at, "left")
    judged = filters.with_all(usual).select("key", "home", *_ITS)
    found = judged.where(F.col("home").isNull() | _is_in_sample(expected, at))
    if again is None:
        return found
    before = judged.join(F.broadcast(again.select(F.col("one_key").alias("key"))), "key", "left_semi")
    return found.union(before).distinct()


def _is_in_sample(expected: Expected, at: Places) -> "Column":
    if len({gateway for gateway, _ in at.hubs}) < 2:  # there is nothing to compare
        return F.lit(False)
    one_in = max(1, sum(one.frames for one in expected.typical) // _SAMPLE)
    return F.pmod(F.xxhash64("key"), F.lit(one_in)) == 0


def _condensed(rows: "DataFrame", width_ns: int) -> "DataFrame":
    """Make one row of those of a key, a peer of a hub, and a bin of time: `n` rows, from `first_ns` to
    `last_ns` and from `first_seq` to `last_seq`. Of those that are not `is_mine` one of a hub and a bin of
    `width_ns`; an event is alone."""
    told = rows.withColumn(replays.STOOD_BY, replays.stood_by()).withColumn("peer", F.xxhash64("peer"))
    of_key = [F.when(F.col("is_mine"), F.col(name)).alias(name) for name in _OF_KEY]
    is_event = F.col("kind") == Kind.EVENT.value
    when = F.when(is_event, F.col("ts_ns")).when(F.col("is_mine"), F.expr(f"ts_ns div {BIN_NS}"))
    groups = told.groupBy(
        *of_key, "kind", "gateway", "boot", "hub", "bus", "dir",
        when.otherwise(F.expr(f"ts_ns div {width_ns}")).alias("bin"),
    )  # fmt: skip
    most = (F.max(name).alias(name) for name in _ITS)
    return groups.agg(
        F.count(F.lit(1)).alias("n"), F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns"),
        F.min("cap_seq").alias("first_seq"), F.max("cap_seq").alias("last_seq"), *most,
    ).drop("bin")  # fmt: skip
