"""Causes of faults that the counts of a frame do not show: what else was the matter when it passed.

A recorder had a hole or did not run, a bridge that the frame had to pass was silent, or nobody put anything
onto a segment. Each finds the episodes that it concerns; `marked` adds them up, one row an episode.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis.audit import absent, dark, filtered, gaps, silent, ways
from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.audit.labels import CIRCUMSTANCES, FAULT_PATTERN, FaultPattern
from pipeline.analysis.audit.pieces import Pieces, Spell
from pipeline.analysis.shared import events, holes, inventory
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.places import Places
from pipeline.cache import cached
from pipeline.input.unread import Unread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_NONE: Final = {
    "unseen": "string", "dark": "array<string>", "absent": "array<string>",
    "silent": "array<string>", "last": "array<string>",
    "paused": "array<string>", "filtered": "array<string>",
}  # fmt: skip
_NAMED: Final = {"fault_pattern": int, "first": str, "flow": int, "begun": int, "name": str}
Needed = tuple[int, str, int, int, str]
"""The values of `FAULT_PATTERN`, and the name of what its frames needed."""


class Recorded(NamedTuple):
    """A capture to look for causes in: all `rows`, their inventory (`taken`), places, by how much clocks are
    `ahead`, and the journals that are not read."""

    rows: "DataFrame"
    taken: "list[Row]"
    at: Places
    ahead: Mapping[str, int] = MappingProxyType({})
    journals: Sequence[Unread] = ()

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


class Asked(NamedTuple):
    """Questions about episodes: times of which nobody knows (`unseen` holes, what was `dark` or `absent`),
    times of `silent` bridges and `paused` segments, each with the fault patterns that `needed` them, and what
    filters kept out (`filtered`)."""

    unseen: "DataFrame | None"
    dark: Sequence[dark.Dark]
    absent: Sequence[absent.Absence]
    silent: "DataFrame | list[Spell] | None"
    needs_bridge: Collection[Needed]
    paused: "DataFrame | list[Spell] | None"
    needs_segment: Collection[Needed]
    filtered: Sequence[filtered.Kept]


def asked(
    patterns: Sequence[FaultPattern], its: Recorded, are_parallel: bool, pieces: Pieces | None = None
) -> Asked:
    """Find what to ask. `are_parallel`: bridges stand beside each other, so pauses of segments are looked
    for. Times are those of `pieces`, or of a plan if there are none."""
    bridges = {(*one.key, bridge) for one in patterns for bridge in one.bridges()}
    served = gaps.served(its.taken) if are_parallel else set()
    segments = {(*one.key, segment) for one in patterns for segment in one.lost_between & served}
    deaf = {gateway for one in patterns for gateway in one.deaf}
    return Asked(
        holes.holes(its.rows, its.taken, its.ahead),
        list(
            dark.darkness(inventory.runs(its.taken), dark.known(its.at.topologies), its.ahead, its.journals)
        ),
        list(absent.absences(its.taken, deaf, its.ahead)),
        _silences(its, {row[-1] for row in bridges}, pieces),
        bridges,
        _pauses(its, {row[-1] for row in segments}, pieces),
        segments,
        _kept_out(patterns, its),
    )


def _silences(
    its: Recorded, bridges: Collection[str], pieces: Pieces | None
) -> "DataFrame | list[Spell] | None":
    if not bridges:
        return None
    if pieces is not None:
        return pieces.silences(bridges, its.ahead, its.end_ns)
    return silent.silences(its.rows, bridges, its.ahead, its.end_ns, events.are_recorded(its.taken))


def _pauses(
    its: Recorded, segments: Collection[str], pieces: Pieces | None
) -> "DataFrame | list[Spell] | None":
    if not segments:
        return None
    if pieces is not None:
        return pieces.pauses(segments, its.ahead, its.end_ns)
    return gaps.pauses(its.rows, segments, its.ahead, its.end_ns)


def _kept_out(patterns: Sequence[FaultPattern], its: Recorded) -> list[filtered.Kept]:
    lost = [(one.key[1], one.key[-1], one.lost) for one in patterns if one.lost]
    times = filtered.spells(its.at.versions, its.ahead)
    return sorted(set(filtered.kept_out(lost, times, ways.shown(its.taken), its.at.filters)))


def marked(
    episode_rows: "DataFrame", numbered: "DataFrame", found: Asked, by_envelope: bool
) -> "DataFrame":  # fmt: skip
    """Add `CIRCUMSTANCES` to episodes, and the `label` of what is alike in them and in `FAULT_PATTERN`."""
    joined = seen = episode_rows
    if found.unseen is not None:
        joined = episode_rows.join(absent.unseen(episode_rows, found.unseen), [*EPISODE], "left")
        seen = joined.where("unseen IS NULL")
    for one in _circumstances(seen, numbered, found, by_envelope):
        joined = joined.join(one, [*EPISODE], "left")
    missing = {name: F.lit(None).cast(kind) for name, kind in _NONE.items() if name not in joined.columns}
    whole = joined.withColumns(missing) if missing else joined
    labelled = whole.withColumn("label", F.xxhash64(*FAULT_PATTERN, *CIRCUMSTANCES))
    return cached(labelled) if len(missing) < len(_NONE) else labelled


def _circumstances(
    seen: "DataFrame", numbered: "DataFrame", found: Asked, by_envelope: bool
) -> "Iterator[DataFrame]":
    """Yield the episodes that each circumstance concerns."""
    if found.dark:
        yield dark.dark(seen, found.dark)
    if found.absent:
        yield absent.absent(seen, found.absent)
    if found.silent is not None:
        assert not isinstance(found.silent, list)
        lost = _lost(seen, found.needs_bridge)
        entered = silent.at_once(lost) if by_envelope else silent.entered(lost, numbered)
        yield silent.guilty(entered, found.silent)
    if found.paused is not None:
        assert not isinstance(found.paused, list)
        yield gaps.paused(_lost(seen, found.needs_segment), found.paused)
    if found.filtered:
        yield filtered.filtered(seen, found.filtered)


def _lost(episode_rows: "DataFrame", names: Collection[Needed]) -> "DataFrame":
    """Select the episodes that have one of these fault patterns, once for each `name` that belongs to it."""
    table = local_table(episode_rows.sparkSession, _NAMED, sorted(names))
    return episode_rows.join(F.broadcast(table), list(FAULT_PATTERN))
