"""The judgement of suspects: few are judged in Python (`few`, `marks`), many by plans (`episodes`, `causes`).

What counts mean (`explain`) and the names of faults (`labels`) are the same for both.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction
from pipeline.analysis.audit import causes, few, marks, replays, ways
from pipeline.analysis.audit.episodes import counted, numbered, summarised
from pipeline.analysis.audit.explain import Seen, explain
from pipeline.analysis.audit.labels import (
    CIRCUMSTANCES,
    FAULT_PATTERN,
    FaultPattern,
    Group,
    PatternKey,
    groups_of,
)
from pipeline.analysis.audit.pieces import Pieces
from pipeline.analysis.shared.clocks import ahead_by, at_one_clock, clocks_of, least_of
from pipeline.analysis.shared.expected import Expected
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.places import Places
from pipeline.analysis.shared.small import Small
from pipeline.cache import cached
from pipeline.input.span import Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LABEL: Final = {"kind": str, "stage": str, "segment": str, "gateway": str, "hub": str, "count": int}
_OF_FRAME: Final = {"matched": str, "origin": int, "seq": int, "token": int, "key": int, "episode": int}
FINDING: Final = {"ts_ns": int, **_LABEL, **_OF_FRAME, "last_ns": int}
_WIRE: Final = ("key", "gateway", "hub", "bus", "dir", "first_ns")

Found = tuple[PatternKey, int, Sequence[Seen]]
"""A fault pattern, how many episodes have it inside the span, and what each hub has seen of them."""


class Judged(NamedTuple):
    """The faults of suspects: their `patterns`, the `groups` of these, and the `findings` one by one; and by
    how much clocks were `ahead`."""

    patterns: Sequence[FaultPattern]
    groups: Sequence[Group]
    findings: "DataFrame | Small"
    ahead: Mapping[str, int] = MappingProxyType({})


NONE: Final = Judged([], [], Small(FINDING, []))


def judge_few(
    pieces: Pieces, expected: Expected, recorded: causes.Recorded, window_ns: int, span: Span
) -> Judged | None:
    """Judge in Python. None if more holes were recorded than the driver holds."""
    its = recorded._replace(ahead=ahead_by(least_of(pieces.sample(_WIRE)), recorded.at))
    homes = {its.at.segments[home] for home, _ in expected.routes}
    asked_for = few.Asked(its.at, replays.sides(its.taken, its.at), homes, window_ns, span)
    every, seen = few.found(pieces.suspects(), its.ahead, asked_for)
    counts = Counter({one.pattern: 0 for one in every})
    counts.update(one.pattern for one in every if one.inside)
    numbered = ((key, n, seen[key[0]]) for key, n in counts.items())
    patterns, asked = explained(numbered, expected, its, pieces)
    circumstances = marks.marks(every, asked, its.at.by_envelope)
    if circumstances is None:
        return None
    return _labelled(every, circumstances, patterns)._replace(ahead=its.ahead)


def _labelled(
    every: Sequence[few.Episode], found: Sequence[marks.Marks], patterns: Sequence[FaultPattern]
) -> Judged:
    """Name the faults of each episode inside the span, by the numbers of what is alike in episodes."""
    known = {one.key: one for one in patterns}
    groups: dict[tuple[PatternKey, marks.Marks], dict[str, list[few.Episode]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one, its_own in zip(every, found, strict=True):
        if one.inside:
            groups[one.pattern, its_own][one.matched].append(one)
    made, rows = list[Group](), list[tuple[Any, ...]]()
    for number, ((key, its_own), by_match) in enumerate(groups.items()):
        for matched, some in by_match.items():
            times = [one.ts_ns for one in some]
            group = Group(number, known[key], matched, len(some), min(times), max(times), *its_own)
            made.append(group)
            rows += [one.finding(label) for label in dict.fromkeys(group.labels()) for one in some]
    return Judged(patterns, made, Small(FINDING, rows))


def judge_many(
    picked: "DataFrame", expected: Expected, recorded: causes.Recorded, window_ns: int, span: Span
) -> Judged:
    """Judge the rows that were `suspects.picked`, by plans."""
    picked = cached(picked.repartition("key"))  # so that nothing after it has to move rows again
    its = recorded._replace(ahead=clocks_of(picked, recorded.at))
    suspect = picked.where("home IS NULL")
    joins = replays.sides(its.taken, its.at)
    if joins:  # worked out, for Sail's client takes no plan that is much deeper
        suspect = cached(replays.with_entries(suspect, joins, its.at.by_envelope))
    timed = at_one_clock(suspect, its.ahead, {"first_at": "first_ns", "last_at": "last_ns"})
    in_episodes = numbered(timed, its.at, window_ns, span)
    if joins:
        in_episodes = replays.as_one(in_episodes)
        in_episodes = cached(in_episodes) if span.is_bounded else in_episodes
    homes = {its.at.segments[home] for home, _ in expected.routes}
    episode_rows = cached(summarised(counted(in_episodes), homes, span))
    patterns, asked = explained(fault_patterns(episode_rows), expected, its)
    marked = causes.marked(episode_rows, in_episodes, asked, its.at.by_envelope)
    groups = groups_of(grouped(marked).collect(), patterns)
    return Judged(patterns, groups, findings(marked, groups), its.ahead)


def fault_patterns(episode_rows: "DataFrame") -> Iterator[Found]:
    """Reduce episodes to fault patterns, a few dozen as a rule. Any episode of one has seen what the others
    have, though in another order."""
    found = episode_rows.groupBy(*FAULT_PATTERN).agg(
        F.first("seen").alias("seen"), F.count(F.when(F.col("inside"), 1)).alias("episodes")
    )
    for row in found.collect():
        key = row.fault_pattern, row.first, row.flow, row.begun
        yield key, row.episodes, [Seen((one.gateway, one.hub), one.bus, one.dir, one.n) for one in row.seen]


def explained(
    found: Iterable[Found], expected: Expected, its: causes.Recorded, pieces: Pieces | None = None
) -> tuple[list[FaultPattern], causes.Asked]:
    """Explain each fault pattern, and find what to ask of its episodes."""
    every = list(explanations(found, expected, its.at))
    known = causes.ways_of([one for one in every if one.lost], its.taken, its.at)
    patterns = causes.with_needed(every, known, its.at)
    return patterns, causes.asked(patterns, its, any(map(ways.are_parallel, known.values())), pieces)


def explanations(found: Iterable[Found], expected: Expected, at: Places) -> Iterator[FaultPattern]:
    """Explain each fault pattern by its counts."""
    name = at.segments
    routes = {(name[h], flow): frozenset(name[s] for s in to) for (h, flow), to in expected.routes.items()}
    for key, episodes, counts in found:
        _, first, flow, _ = key
        found_out = explain(counts, first, flow, routes, at.paths, at.by_envelope)
        yield FaultPattern(key, episodes, *found_out, passed=passed(counts, found_out[0]))


def passed(seen: Iterable[Seen], entered: int) -> frozenset[str]:
    """Return the bridges that put as many frames onto a segment as entered: they did not keep them."""
    put = Counter[tuple[str, str]]()
    for one in seen:
        if one.dir == Direction.TX and one.hub[1].startswith(BRIDGE):
            put[one.hub[1], one.segment] += one.n
    return frozenset(hub for (hub, _), count in put.items() if count >= entered)


def grouped(marked: "DataFrame") -> "DataFrame":
    """Group the episodes inside the span by fault pattern and circumstances, a few hundred as a rule."""
    return (
        marked.where("inside")
        .groupBy("label", *FAULT_PATTERN, *CIRCUMSTANCES, "matched")
        .agg(
            F.count(F.lit(1)).alias("episodes"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
    )


def findings(marked: "DataFrame", groups: Iterable[Group]) -> "DataFrame":
    """Make the findings that users read: one for each episode inside the span, and fault."""
    table = {(group.label, *label): None for group in groups for label in group.labels()}
    named = local_table(marked.sparkSession, {"label": int, **_LABEL}, list(table))
    return marked.where("inside").join(F.broadcast(named), "label").select(*FINDING)
