"""Replays: what a standby heard, and sent when it took over.

A recorder writes what came in so with the verdict "standby", before it leaves. Older ones wrote only what
left: a frame that a bridge with candidates put and none of them received had come in by the one side onto
which nobody put it.

The candidate before may have sent it as well. Then it is one frame, of which a copy is too many: if it has
the same envelope, or if nothing else that came was equal. Equal readings that came several times are several.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction, Kind, Verdict
from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.shared.chosen import of_first, with_first
from pipeline.analysis.shared.frames import local_table, received, sent
from pipeline.analysis.shared.places import Places

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

STOOD_BY: Final = "stood_by"
"""The column that tells whether a row is of what came in while the bridge stood by."""
_FRAME: Final = ("key", "hub", "origin", "seq")
_FIRST: Final = ("first_ns", "bus", "dir", "gateway", "last_ns")
"""The order of a frame's rows."""


def stood_by() -> "Column":
    """Return whether a row is of what came in while the bridge stood by."""
    return (F.col("verdict") == Verdict.STANDBY.value) & received()


def are_recorded(taken: "Iterable[Row]") -> bool:
    """Return whether a recorder wrote what came in so, by the rows of
    `pipeline.analysis.shared.inventory.take`."""
    return any(row.kind == Kind.FRAME and row.verdict == Verdict.STANDBY for row in taken)


def sides(taken: "Iterable[Row]", at: Places) -> dict[str, frozenset[str]]:
    """Find the bridges that have candidates, and the segments that each joins: by the topologies, and by the
    traffic of bridges that are in none."""
    joins, candidates = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for row in taken:
        if row.kind == Kind.FRAME and row.hub.startswith(BRIDGE):
            joins[row.hub].add(row.bus)
            candidates[row.hub].add(row.gateway)
    for name, hub in ((name, hub) for hubs in at.topologies for name, hub in hubs.items()):
        if name.startswith(BRIDGE):
            joins[name].update(side["segment"] for side in hub.get("sides", ()))
            joins[name] -= {side["segment"] for side in hub.get("sides", ()) if side.get("only") == "out"}
            candidates[name].update(hub.get("gateways", ()))
    return {name: frozenset(joins[name]) for name, some in candidates.items() if len(some) > 1}


def with_entries(rows: "DataFrame", joins: Mapping[str, frozenset[str]], by_envelope: bool) -> "DataFrame":
    """Add rows of what came in, of frames with an envelope that candidates put and none had received.

    `rows` are those of suspects (`pipeline.analysis.audit.suspects`), `joins` comes from `sides`. Bridges
    whose rows of what they receive have no envelope are left out; so are, `by_envelope`, frames that were
    received under another one.
    """
    known = [(hub, bus) for hub, some in sorted(joins.items()) for bus in sorted(some)]
    if not known:
        return rows
    of_them = rows.where(F.col("hub").isin(sorted(joins)))
    table = F.broadcast(local_table(rows.sparkSession, {"hub": str, "side": str}, known))
    its_own = [name for name in rows.columns if name not in (*_FRAME, "bus", "dir", "n", STOOD_BY)]
    ordered = with_first(of_them, "is_first", _FRAME, *_FIRST)
    frames = ordered.groupBy(*_FRAME).agg(
        F.max(received()).alias("came"),
        F.collect_set(F.when(sent(), F.col("bus"))).alias("put"),
        F.max(F.when(sent(), F.col("n"))).alias("n"),
        *of_first("is_first", *its_own),
    )
    other = F.col("came") if by_envelope else F.col("came") & F.col("origin").isNull()
    is_known = F.max(other).over(Window.partitionBy("key", "hub"))
    put = frames.withColumn("known", is_known).where("origin IS NOT NULL AND NOT came AND NOT known")
    unseen = put.join(table, "hub").where(~F.array_contains("put", F.col("side")))
    alone = F.count(F.lit(1)).over(Window.partitionBy(*_FRAME))
    entered = unseen.withColumn("alone", alone).where("alone = 1").withColumns({
        "bus": F.col("side"), "dir": F.lit(Direction.RX.value).cast("smallint"), STOOD_BY: F.lit(True),
    })  # fmt: skip
    return rows.unionByName(entered.select(*rows.columns))


def as_one(rows: "DataFrame") -> "DataFrame":
    """Leave out the rows of what came in while a bridge stood by, and which the candidate before had sent.

    `rows` are numbered (`pipeline.analysis.audit.episodes`).
    """
    came, mine = received() & ~F.col(STOOD_BY), received() & F.col(STOOD_BY)
    frame, equal = Window.partitionBy(*_FRAME), Window.partitionBy(*EPISODE, "hub", "bus")
    same_origin = F.array_contains(F.collect_set(F.when(came, F.col("origin"))).over(equal), F.col("origin"))
    is_same = F.col("origin").isNotNull() & (F.max(came).over(frame) > F.lit(False))
    before, after = (F.sum(F.when(one, F.col("n")).otherwise(0)).over(equal) for one in (came, mine))
    is_alone = (before == 1) & (after == 1) & ~F.coalesce(same_origin, F.lit(False))
    marked = rows.withColumn("is_one", mine & (is_same | is_alone))
    return marked.where(~F.coalesce("is_one", F.lit(False))).drop("is_one")
