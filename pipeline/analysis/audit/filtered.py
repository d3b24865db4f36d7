"""Filters that changed: what a bridge held back by the topology of the time is no loss, although frames of
its kind passed at another time."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from capture.schema import Hubs
from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.audit.ways import Ways, of_flow, reached
from pipeline.analysis.shared.courses import Course, courses
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.inventory import Version
from pipeline.analysis.shared.places import Patterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Spell = tuple[int, int, Sequence[Hubs]]
"""The begin and the end (in ns by one clock) of a spell, and the topologies of all recorders at that time."""
Kept = tuple[str, int, str, int, int]
"""A home, the patterns that frames start with, a segment that they could not reach, from when, until when."""

_SLACK_NS: Final = 1_000_000_000
"""A reload, and the first file after it, may lie so far apart."""
_EVER_NS: Final = 1 << 62


def spells(versions: Iterable[Version], ahead: Mapping[str, int]) -> list[Spell]:
    """Divide time where the topology of a gateway changed. One spell if none did."""
    found = [[_timed(one, ahead) for one in course] for course in courses(versions)]
    cuts = sorted({one.from_ns for course in found for one in course[1:]})
    return [
        (begin, end, [_active(course, begin) for course in found])
        for begin, end in pairwise([-_EVER_NS, *cuts, _EVER_NS])
    ]


def _timed(one: Version, ahead: Mapping[str, int]) -> Version:
    return one._replace(from_ns=one.from_ns - ahead.get(one.gateway, 0))


def _active(course: Course, at_ns: int) -> Hubs:
    """Return the topology that held at a time; before the first one was told, that one."""
    return [course[0], *(one for one in course[1:] if one.from_ns <= at_ns)][-1].hubs


def kept_out(
    lost: Iterable[tuple[str, int, Collection[str]]],
    found: Sequence[Spell],
    traffic: Ways,
    patterns: Patterns,
) -> Iterator[Kept]:
    """Yield what no way led to, of `lost`: homes, the patterns that frames start with, and the segments that
    they did not reach."""
    if len(found) < 2:
        return
    told = {name for _, _, every in found for hubs in every for name in hubs}
    others = {hub: ways for hub, ways in traffic.items() if hub not in told}
    for home, begun, segments in lost:
        for begin, end, hubs in found:
            for name in sorted({*segments} - reached(home, of_flow(others, hubs, patterns, begun))):
                yield home, begun, name, begin, end


def by_pattern(found: Iterable[Kept]) -> dict[tuple[str, int], list[Kept]]:
    """Return what was kept out by the home of frames and the patterns that they start with."""
    its: dict[tuple[str, int], list[Kept]] = defaultdict(list)
    for one in found:
        its[one[:2]].append(one)
    return its


def segments(found: Iterable[Kept], at_ns: int) -> set[str]:
    """Return the segments that frames could not reach at a time."""
    return {
        name for _, _, name, begin, end in found if begin - _SLACK_NS <= at_ns <= end + _SLACK_NS
    }  # fmt: skip


def filtered(episode_rows: "DataFrame", found: Collection[Kept]) -> "DataFrame":
    """Select the episodes of such a time: `key`, `episode`, and segments (`filtered`)."""
    names = {"first": str, "begun": int, "segment": str, "from_ns": int, "to_ns": int}
    table = F.broadcast(local_table(episode_rows.sparkSession, names, list(found)))
    joined = episode_rows.select(*EPISODE, "first", "begun", "from_at").join(table, ["first", "begun"])
    near = joined.where(f"from_at BETWEEN from_ns - {_SLACK_NS} AND to_ns + {_SLACK_NS}")
    return near.groupBy(*EPISODE).agg(F.sort_array(F.collect_set("segment")).alias("filtered"))
