"""Causes of faults that the counts of a frame do not show: what else was the matter when it passed.

A recorder had a hole or did not run, a bridge that the frame had to pass was silent, or nobody put anything
onto a segment. Each finds the episodes that it concerns; `marked` adds them up, one row an episode.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis.audit import absent, dark, filtered, gaps, silent, ways
from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.audit.labels import CIRCUMSTANCES, FAULT_PATTERN, FaultPattern
from pipeline.analysis.shared import events, holes, inventory
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.places import Places
from pipeline.cache import cached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_NONE: Final = {
    "unseen": "string", "dark": "array<string>", "absent": "array<string>",
    "silent": "array<string>", "last": "array<string>",
    "paused": "array<string>", "filtered": "array<string>",
}  # fmt: skip
_NAMED: Final = {"fault_pattern": int, "first": str, "flow": int, "begun": int, "name": str}


class Recorded(NamedTuple):
    """A capture to look for causes in: all `rows`, their inventory (`taken`), places, and the clocks."""

    rows: "DataFrame"
    taken: "list[Row]"
    at: Places
    ahead: Mapping[str, int]

    @property
    def end_ns(self) -> int:
        """Return the time of the last row, by the one clock."""
        return max((row.last_ns - self.ahead.get(row.gateway, 0) for row in self.taken), default=0)


def ways_of(lost: Sequence[FaultPattern], taken: "list[Row]", at: Places) -> dict[int, ways.Ways]:
    """Find the ways that lost frames could have gone, by the patterns that they begin with."""
    traffic = ways.shown(taken)
    every = {one.key[-1] for one in lost}
    return {begun: ways.of_flow(traffic, at.topologies, at.filters, begun) for begun in every}


def with_needed(
    patterns: Sequence[FaultPattern], known: Mapping[int, ways.Ways], at: Places
) -> list[FaultPattern]:
    """Add the bridges that frames of each pattern had to pass, and gateways that may have carried them."""
    homes = {(one.key[1], one.key[-1]) for one in patterns if one.lost}
    needed = {(first, begun): ways.needed(first, known[begun]) for first, begun in homes}
    serving = {
        (first, begun): dark.serving(first, known[begun], at.hubs, at.topologies) for first, begun in homes
    }
    return [
        one._replace(needed=needed.get(its, {}), serving=serving.get(its, {}))
        for one, its in ((one, (one.key[1], one.key[-1])) for one in patterns)
    ]


def marked(
    episode_rows: "DataFrame", numbered: "DataFrame", patterns: Sequence[FaultPattern], its: Recorded,
    are_parallel: bool,
) -> "DataFrame":  # fmt: skip
    """Add `CIRCUMSTANCES` to episodes, and the `label` of what is alike in them and in `FAULT_PATTERN`.

    `are_parallel`: bridges stand beside each other, so pauses of segments are looked for.
    """
    unseen = _unseen(episode_rows, its)
    joined = episode_rows if unseen is None else episode_rows.join(unseen, [*EPISODE], "left")
    seen = joined if unseen is None else joined.where("unseen IS NULL")
    found = [
        _dark(seen, its),
        _absent(seen, patterns, its),
        _silent(seen, numbered, patterns, its),
        _paused(seen, patterns, its) if are_parallel else None,
        _filtered(seen, patterns, its),
    ]
    for one in (one for one in found if one is not None):
        joined = joined.join(one, [*EPISODE], "left")
    missing = {name: F.lit(None).cast(kind) for name, kind in _NONE.items() if name not in joined.columns}
    whole = joined.withColumns(missing) if missing else joined
    labelled = whole.withColumn("label", F.xxhash64(*FAULT_PATTERN, *CIRCUMSTANCES))
    return cached(labelled) if len(missing) < len(_NONE) else labelled


def _absent(episode_rows: "DataFrame", patterns: Sequence[FaultPattern], its: Recorded) -> "DataFrame | None":
    deaf = {gateway for one in patterns for gateway in one.deaf}
    if not deaf:
        return None
    return absent.absent(episode_rows, list(absent.absences(its.taken, deaf, its.ahead)))


def _dark(episode_rows: "DataFrame", its: Recorded) -> "DataFrame | None":
    gateways = dark.known(its.at.topologies)
    found = list(dark.darkness(inventory.runs(its.taken), gateways, its.ahead))
    return dark.dark(episode_rows, found) if found else None


def _unseen(episode_rows: "DataFrame", its: Recorded) -> "DataFrame | None":
    found = holes.holes(its.rows, its.taken, its.ahead)
    return None if found is None else absent.unseen(episode_rows, found)


def _silent(
    episode_rows: "DataFrame", numbered: "DataFrame", patterns: Sequence[FaultPattern], its: Recorded
) -> "DataFrame | None":
    needed = {(*one.key, bridge) for one in patterns for bridge in one.bridges()}
    if not needed:
        return None
    lost = _lost(episode_rows, needed)
    asked = silent.at_once(lost) if its.at.by_envelope else silent.entered(lost, numbered)
    bridges = {row[-1] for row in needed}
    has_events = events.are_recorded(its.taken)
    return silent.guilty(asked, silent.silences(its.rows, bridges, its.ahead, its.end_ns, has_events))


def _paused(episode_rows: "DataFrame", patterns: Sequence[FaultPattern], its: Recorded) -> "DataFrame | None":
    segments = gaps.served(its.taken)
    between = {(*one.key, segment) for one in patterns for segment in one.lost_between & segments}
    if not between:
        return None
    names = {row[-1] for row in between}
    return gaps.paused(_lost(episode_rows, between), gaps.pauses(its.rows, names, its.ahead, its.end_ns))


def _filtered(
    episode_rows: "DataFrame", patterns: Sequence[FaultPattern], its: Recorded
) -> "DataFrame | None":
    lost = [(one.key[1], one.key[-1], one.lost) for one in patterns if one.lost]
    times = filtered.spells(its.at.versions, its.ahead)
    found = set(filtered.kept_out(lost, times, ways.shown(its.taken), its.at.filters))
    return filtered.filtered(episode_rows, sorted(found)) if found else None


def _lost(episode_rows: "DataFrame", names: Collection[tuple[int | str, ...]]) -> "DataFrame":
    """Select the episodes that have one of these fault patterns, once for each `name` that belongs to it."""
    table = local_table(episode_rows.sparkSession, _NAMED, sorted(names))
    return episode_rows.join(F.broadcast(table), list(FAULT_PATTERN))
