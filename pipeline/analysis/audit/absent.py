"""Absences: times of which a gateway has recorded nothing, since it or its recorder did not run; and the
frames that passed near one, or near a hole in what was recorded (`pipeline.analysis.shared.holes`).

Of buses that trunks join, each hears every frame. One whose gateway is absent cannot be blamed for frames
that only the others heard; nobody knows of them either. A run of a recorder lasts from its first row to its
last: a recorder that is stopped writes one at its end, and one that was killed did not.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.shared import inventory
from pipeline.analysis.shared.frames import local_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Absence = tuple[str, int, int]
"""A gateway, from when, and until when, in ns by one clock."""

_SLACK_NS: Final = 200_000_000
"""Rows of one frame may lie so far apart, on their way from one gateway to the next."""

_EVER_NS: Final = 1 << 62


def absences(taken: "list[Row]", gateways: Collection[str], ahead: Mapping[str, int]) -> Iterator[Absence]:
    """Yield when there is nothing of these gateways, from the rows of
    `pipeline.analysis.shared.inventory.take`."""
    runs = inventory.uncaptured(taken)
    for gateway in sorted(gateways):
        shift = ahead.get(gateway, 0)
        own = sorted((first - shift, last - shift) for name, *_, first, last in runs if name == gateway)
        until_ns = -_EVER_NS
        for first, last in own:
            if first > until_ns:
                yield gateway, until_ns, first
            until_ns = max(until_ns, last)
        yield gateway, until_ns, _EVER_NS


def absent(episode_rows: "DataFrame", found: Collection[Absence]) -> "DataFrame":
    """Select the episodes that began in an absence, or near it: `key`, `episode`, and the gateways
    (`absent`)."""
    spark, names = episode_rows.sparkSession, {"name": str, "from_ns": int, "to_ns": int}
    near = F.expr(f"from_at BETWEEN from_ns - {_SLACK_NS} AND to_ns + {_SLACK_NS}")
    hit = episode_rows.select(*EPISODE, "from_at").join(
        F.broadcast(local_table(spark, names, list(found))), near
    )
    return hit.groupBy(*EPISODE).agg(F.sort_array(F.collect_set("name")).alias("absent"))


def unseen(episode_rows: "DataFrame", found: "DataFrame") -> "DataFrame":
    """Select the episodes that passed near a hole: `key`, `episode`, and the gateway that has the hole
    (`unseen`)."""
    near = F.expr(f"from_at <= to_ns + {_SLACK_NS} AND to_at >= from_ns - {_SLACK_NS}")
    hit = episode_rows.select(*EPISODE, "from_at", "to_at").join(F.broadcast(found), near)
    return hit.groupBy(*EPISODE).agg(F.min("unseen").alias("unseen"))
