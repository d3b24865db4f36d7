"""Few suspects, judged in Python: their episodes, as `episodes` and `replays` find those of many by plans.

Up to `MOST` rows are collected at once, for plans cost more there than their rows do. Both ways say the same,
which a test holds.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capture.schema import Direction
from pipeline.analysis.audit.episodes import BOTH, BY_CONTENT, BY_ENVELOPE
from pipeline.analysis.audit.explain import Seen
from pipeline.analysis.audit.labels import Label, PatternKey
from pipeline.analysis.shared.places import Places
from pipeline.input.span import Span

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MOST: Final = 500_000
"""Rows that the driver holds."""
_TEXTS: Final = ("gateway", "hub", "bus")
_NEVER: Final = (-1 << 62, 0)


class Sight(NamedTuple):
    """A row of a suspect (`pipeline.analysis.audit.suspects`), with the times `first_at` and `last_at` by the
    one clock."""

    key: int
    gateway: str
    hub: str
    bus: str
    dir: int
    origin: int | None
    seq: int | None
    stood_by: bool
    peer: int
    n: int
    first_ns: int
    last_ns: int
    token: int
    flow: int
    begun: int
    first_at: int = 0
    last_at: int = 0


Timed = tuple[int, int, Sight]
"""A row and its times, but of a late row the times when its frame was seen first."""
Divided = Mapping[int, Sequence[Sight]]
"""The rows of each episode of a key, by its number."""


class Episode(NamedTuple):
    """An episode, with the fields of `pipeline.analysis.audit.episodes.summarised`, and its rows (`sights`).

    `pattern` has the values of `pipeline.analysis.audit.labels.FAULT_PATTERN`, with a number for the counts.
    """

    key: int
    episode: int
    pattern: PatternKey
    opener: tuple[str, str] | None
    ts_ns: int
    inside: bool
    from_at: int
    to_at: int
    last_ns: int
    matched: str
    origin: int | None
    seq: int | None
    token: int
    sights: Sequence[Sight]

    def finding(self, label: Label) -> tuple[Any, ...]:
        """Return the row of `pipeline.analysis.audit.judgement.FINDING` for one of its faults."""
        its = self.matched, self.origin, self.seq, self.token, self.key, self.episode, self.last_ns
        return (self.ts_ns, *label, *its)


def collected(frame: "DataFrame", most: int) -> "pa.Table | None":
    """Collect a table; None if it has more than `most` rows."""
    found = frame.limit(most + 1).toArrow()
    return found if found.num_rows <= most else None


def values(table: "pa.Table", names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table with these columns. Equal names of places are one object."""
    known: dict[str, str] = {}
    columns = [table[name].to_pylist() for name in names]
    for number, name in enumerate(names):
        if name in _TEXTS:
            columns[number] = [known.setdefault(one, one) for one in columns[number]]
    return zip(*columns, strict=True)


def by_key(picked: "pa.Table", ahead: Mapping[str, int]) -> Iterator[list[Sight]]:
    """Yield the rows of each suspect among those that were picked, in the order of times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    its = picked.filter(picked["home"].is_null())
    places = pc.index_in(its["gateway"], value_set=pa.array([*ahead], pa.string()))
    shift = pc.fill_null(pc.take(pa.array([*ahead.values()], pa.int64()), places), 0)
    for name, new in (("first_ns", "first_at"), ("last_ns", "last_at")):
        its = its.append_column(new, pc.subtract(its[name], shift))
    in_order = its.sort_by([("key", "ascending"), ("first_at", "ascending")])
    rows = map(Sight._make, values(in_order, Sight._fields))
    return (list(some) for _, some in groupby(rows, attrgetter("key")))


def with_entries(
    rows: Sequence[Sight], joins: Mapping[str, frozenset[str]], by_envelope: bool
) -> Sequence[Sight]:
    """Add rows to those of one key, as `pipeline.analysis.audit.replays.with_entries` does."""
    if not joins:
        return rows
    frames: dict[tuple[Any, ...], list[Sight]] = defaultdict(list)
    for one in rows:
        if one.hub in joins:
            frames[one.hub, one.origin, one.seq].append(one)
    came = {name for name, its in frames.items() if any(one.dir == Direction.RX for one in its)}
    known = {hub for hub, origin, _ in came if by_envelope or origin is None}
    put = [its for (hub, origin, seq), its in frames.items()
           if origin is not None and hub not in known and (hub, origin, seq) not in came]  # fmt: skip
    return [*rows, *(entry for its in put for entry in _entries(its, joins))]


def _entries(its: Sequence[Sight], joins: Mapping[str, frozenset[str]]) -> Iterator[Sight]:
    sides = joins[its[0].hub] - {one.bus for one in its}
    if len(sides) == 1:
        first = min(its, key=attrgetter("first_ns"))
        n = max(one.n for one in its)
        yield first._replace(bus=min(sides), dir=Direction.RX.value, stood_by=True, n=n)


def divided(rows: Sequence[Sight], at: Places, window_ns: int, span: Span) -> Divided:
    """Divide the rows of one key into episodes, as `pipeline.analysis.audit.episodes.numbered` does."""
    if at.by_envelope:
        return {0: rows}
    in_time = sorted(rows, key=attrgetter("first_at"))
    if not span.is_bounded and max(one.last_at for one in rows) - in_time[0].first_at <= window_ns:
        return {0: in_time}
    late = _late(in_time, window_ns) if at.has_envelopes else (0 for _ in in_time)
    timed = [(one.first_at - ns, one.last_at - ns, one) for one, ns in zip(in_time, late, strict=True)]
    found = _numbered(sorted(timed, key=lambda one: one[0]), window_ns)
    for bound_ns in (span.from_ns, span.to_ns):
        if bound_ns is not None:
            found = _at_bound(found, bound_ns, window_ns)
    return {number: [one for *_, one in its] for number, its in found.items()}


def _late(in_time: Iterable[Sight], window_ns: int) -> Iterator[int]:
    """Yield how late each row is, in the order of times."""
    begun: dict[tuple[int | None, int | None], int] = {}
    known: dict[str, tuple[int, int]] = {}
    for at, group in groupby(in_time, attrgetter("first_at")):
        same = list(group)
        for one in same:
            if one.origin is not None:
                known[one.gateway] = at, at - begun.setdefault((one.origin, one.seq), at)
        for one in same:
            since, late = known.get(one.gateway, _NEVER)
            yield late if at - since <= window_ns else 0


def _numbered(timed: Sequence[Timed], window_ns: int) -> dict[int, list[Timed]]:
    number, until, found = 0, timed[0][1], defaultdict[int, list[Timed]](list)
    for one in timed:
        number += one[0] - until > window_ns
        until = max(until, one[1])
        found[number].append(one)
    return found


def _at_bound(found: Mapping[int, list[Timed]], bound_ns: int, window_ns: int) -> dict[int, list[Timed]]:
    parts: dict[int, list[Timed]] = defaultdict(list)
    for number, its in found.items():
        begins = _begins(its, bound_ns, window_ns)
        for one in its:
            parts[2 * number + (begins is not None and one[0] >= begins)].append(one)
    return parts


def _begins(its: Sequence[Timed], bound_ns: int, window_ns: int) -> int | None:
    """Return when the part after a bound begins: after the longest silence near it. None if none does."""
    if its[0][0] >= bound_ns - window_ns:
        return None
    until, silences = its[0][1], list[tuple[int, int]]()
    for begin, end, _ in its[1:]:
        if bound_ns <= begin <= bound_ns + window_ns:
            silences.append((begin - until, -begin))
        until = max(until, end)
    return -max(silences)[1] if silences else None


def without_replays(found: Divided) -> Divided:
    """Leave out rows of a key's episodes, as `pipeline.analysis.audit.replays.as_one` does."""
    if not any(one.stood_by for its in found.values() for one in its):
        return found
    frames = {(one.hub, one.origin, one.seq) for its in found.values() for one in its if _came(one)}
    return {number: list(_first(its, frames)) for number, its in found.items()}


def _came(one: Sight) -> bool:
    return one.dir == Direction.RX and not one.stood_by


def _first(its: Iterable[Sight], frames: Collection[tuple[Any, ...]]) -> Iterator[Sight]:
    equal: dict[tuple[str, str], list[Sight]] = defaultdict(list)
    for one in its:
        equal[one.hub, one.bus].append(one)
    for same in equal.values():
        came = [one for one in same if _came(one)]
        mine = [one for one in same if one.dir == Direction.RX and one.stood_by]
        alone = sum(one.n for one in came) == sum(one.n for one in mine) == 1
        origins = {one.origin for one in came} - {None}
        for one in same:
            is_same = one.origin is not None and (one.hub, one.origin, one.seq) in frames
            if (
                _came(one)
                or one.dir == Direction.TX
                or not (is_same or (alone and one.origin not in origins))
            ):
                yield one


class Sums:
    """The sums of episodes, with a number for all that have equal counts (`seen`, by number). Frames enter
    at one of the segments `known`; `span` is what is looked at."""

    def __init__(self, known: Collection[str], span: Span) -> None:
        self.seen: list[tuple[Seen, ...]] = []
        self._numbers: dict[tuple[Seen, ...], int] = {}
        self._known, self._span = known, span

    def _number(self, seen: tuple[Seen, ...]) -> int:
        number = self._numbers.setdefault(seen, len(self.seen))
        if number == len(self.seen):
            self.seen.append(seen)
        return number

    def of(self, number: int, its: Sequence[Sight]) -> Episode:
        """Sum up the rows of one episode."""
        heard = [one for one in its if one.dir == Direction.RX]
        first = min(heard, key=lambda one: (one.bus not in self._known, one.first_at)).bus if heard else ""
        opener = min(heard, key=attrgetter("first_at"), default=None)
        flow, begun = max(one.flow for one in its), max(one.begun for one in its)
        first_ns = min(one.first_ns for one in its)
        return Episode(
            its[0].key, number, (self._number(counted(its)), first, flow, begun),
            None if opener is None else (opener.hub, opener.bus),
            min((one.first_ns for one in heard), default=first_ns),
            self._span.touches(first_ns, first_ns),
            min(one.first_at for one in its), max(one.last_at for one in its),
            max(one.last_ns for one in its),
            matched(its),
            max((one.origin for one in its if one.origin is not None), default=None),
            max((one.seq for one in its if one.seq is not None), default=None),
            max(one.token for one in its),
            its,
        )  # fmt: skip


def matched(its: Sequence[Sight]) -> str:
    """Say how the rows of an episode were matched."""
    enveloped = sum(one.origin is not None for one in its)
    return BY_CONTENT if not enveloped else BY_ENVELOPE if enveloped == len(its) else BOTH


def counted(its: Iterable[Sight]) -> tuple[Seen, ...]:
    """Count the messages of an episode, as `pipeline.analysis.audit.episodes.counted` does."""
    peers: dict[tuple[str, str, str, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for one in its:
        peers[one.gateway, one.hub, one.bus, one.dir][one.peer] += one.n
    return tuple(
        Seen((gateway, hub), bus, way, (max if way == Direction.TX else sum)(some.values()))
        for (gateway, hub, bus, way), some in sorted(peers.items())
    )
