"""Bridges that were silent while frames were lost that had to pass them: killed, frozen or cut off.

A bridge is its hubs of one name on all gateways: its candidates take over from each other. One that passed
nothing for longer than a pause, and without which a lost frame cannot have reached its segment, is to blame.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.audit.quiet import SLACK_NS, lost_in, spells
from pipeline.analysis.shared.clocks import at_one_clock
from pipeline.analysis.shared.events import takeovers
from pipeline.analysis.shared.frames import frames, on_bridge, received
from pipeline.analysis.shared.service import BIN_NS, GAP_MS, is_pause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BEGAN_INSIDE: Final = f"began_ns BETWEEN from_ns AND to_ns + {SLACK_NS}"


def silences(
    rows: "DataFrame", bridges: Collection[str], ahead: Mapping[str, int], end_ns: int, has_events: bool
) -> "DataFrame":
    """Find when `bridges` passed nothing for longer than a pause (`quiet.spells`).

    If the capture `has_events`, a shorter silence counts too if a candidate took over at its end: nobody was
    in charge until then.
    """
    of_bridges = frames(rows).where(on_bridge() & F.col("hub").isin(sorted(bridges)))
    found = spells(of_bridges, F.col("hub"), ahead, end_ns, *([BIN_NS] if has_events else []))
    is_long = is_pause(F.col("to_ns") - F.col("from_ns"), GAP_MS)
    if not has_events:
        return found.where(is_long)
    taken = found.where(~is_long).join(_taken_over(rows, ahead), "name").where(_BEGAN_INSIDE)
    return found.where(is_long).unionByName(taken.drop("began_ns").distinct())


def _taken_over(rows: "DataFrame", ahead: Mapping[str, int]) -> "DataFrame":
    """Find when candidates began to forward: `name` (of their bridge), `began_ns`."""
    began = at_one_clock(takeovers(rows), ahead)
    return F.broadcast(began.select(F.col("hub").alias("name"), F.col("at_ns").alias("began_ns")))


def at_once(lost: "DataFrame") -> "DataFrame":
    """Find when `lost` episodes of one frame each entered: when they began."""
    return lost.withColumn("to_at", F.col("from_at"))


def entered(lost: "DataFrame", numbered: "DataFrame") -> "DataFrame":
    """Find when the frames of `lost` episodes entered, by the opener: `name` and `from_at`, `to_at`.

    `numbered` are the rows of all episodes: equal frames of one episode enter one after the other.
    """
    heard = numbered.where(received()).select(*EPISODE, "hub", "bus", "first_at")
    rows = lost.select(*EPISODE, "opener_hub", "opener_bus", "name").join(heard, [*EPISODE])
    of_opener = rows.where("opener_hub = hub AND opener_bus = bus")
    by_bin = of_opener.groupBy(*EPISODE, "name", F.expr(f"first_at div {BIN_NS}").alias("bin"))
    return at_once(by_bin.agg(F.min("first_at").alias("from_at")).drop("bin"))


def guilty(lost: "DataFrame", silent: "DataFrame") -> "DataFrame":
    """Find the bridges that were silent when frames of `lost` (from `entered`) needed them.

    For each `key` and `episode`: their names (`silent`), the first to fall silent first, and the gateways
    that passed something `last`.
    """
    found = lost_in(silent, lost).groupBy(*EPISODE)
    one = found.agg(F.sort_array(F.collect_set(F.struct("from_ns", "name", "last"))).alias("its"))
    return one.select(*EPISODE, F.col("its.name").alias("silent"), F.col("its.last").alias("last"))
