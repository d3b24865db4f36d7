"""Few suspects, judged on the driver: their episodes, as `episodes` and `replays` find them by plans.

Up to `MOST` rows are collected at once, for plans cost more there than their rows do. Both ways say the same,
which a test holds.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pipeline.analysis.audit.episodes import BOTH, BY_CONTENT, BY_ENVELOPE
from pipeline.analysis.audit.explain import Seen
from pipeline.analysis.audit.labels import Label, PatternKey
from pipeline.analysis.audit.orders import Ints, groups, ordered
from pipeline.analysis.audit.sights import (
    TEXTS,
    Names,
    Sights,
    divided,
    group_in_order,
    numbers,
    sights,
    with_entries,
    without_replays,
)
from pipeline.analysis.shared.places import Places
from pipeline.analysis.shared.service import BIN_NS
from pipeline.input.span import Span

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MOST: Final = 1_000_000
"""Suspects that the driver judges. It holds at most twice as many rows."""


class Episode(NamedTuple):
    """An episode, with the fields of `pipeline.analysis.audit.episodes.summarised`, and the times at which
    frames `entered`.

    `pattern` has the values of `pipeline.analysis.audit.labels.FAULT_PATTERN`, with a number for the counts.
    """

    key: int
    episode: int
    pattern: PatternKey
    ts_ns: int
    inside: bool
    from_at: int
    to_at: int
    last_ns: int
    matched: str
    origin: int | None
    seq: int | None
    token: int
    entered: Sequence[int]

    def finding(self, label: Label) -> tuple[Any, ...]:
        """Return the row of `pipeline.analysis.audit.judgement.FINDING` for one of its faults."""
        its = self.matched, self.origin, self.seq, self.token, self.key, self.episode, self.last_ns
        return (self.ts_ns, *label, *its)


class Found(NamedTuple):
    """The episodes of suspects, and what was `seen` in those with each number that patterns begin with."""

    episodes: Sequence[Episode]
    seen: Sequence[tuple[Seen, ...]]


class Asked(NamedTuple):
    """A question about suspects: their places (`at`), the segments that bridges with candidates join
    (`joins`), those that are `known` as homes, how long equal frames are apart, and the span."""

    at: Places
    joins: Mapping[str, frozenset[str]]
    known: Collection[str]
    window_ns: int
    span: Span


def collected(frame: "DataFrame", most: int) -> "pa.Table | None":
    """Collect a table; None if it has more than `most` rows."""
    found = frame.limit(most + 1).toArrow()
    return found if found.num_rows <= most else None


def values(table: "pa.Table", names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table with these columns. Equal names of places are one object."""
    known: dict[str, str] = {}
    columns = [table[name].to_pylist() for name in names]
    for number, name in enumerate(names):
        if name in TEXTS:
            columns[number] = [known.setdefault(one, one) for one in columns[number]]
    return zip(*columns, strict=True)


def found(rows: "pa.Table", ahead: Mapping[str, int], asked: Asked) -> Found:
    """Find the episodes of suspects."""
    its, names = sights(rows, ahead, sorted({side for sides in asked.joins.values() for side in sides}))
    if asked.joins:
        its = with_entries(its, names, asked.joins, asked.at.by_envelope)
    episode = divided(its, asked.at, asked.window_ns, asked.span)
    if asked.joins:
        kept = without_replays(its, episode)
        its, episode = its.take(kept), episode[kept]
    order, begins = groups(its.key, episode)
    summed = _Summed(its.take(order), begins, names)
    return summed.found(episode[order], asked) if len(order) else Found((), ())


class _Summed:
    """Rows in the order of their episodes, each of which `begins` at a place, and their sums."""

    def __init__(self, its: Sights, begins: Ints, names: Names) -> None:
        self._its, self._begins, self._names = its, begins, names
        self._group = group_in_order(len(its.key), begins)

    def found(self, episode: Ints, asked: Asked) -> Found:
        """Sum up the rows of each episode."""
        first, opener = self._first(asked.known), self._first()
        number, seen = self._counted()
        begun_ns = self._least("first_ns")
        columns = (
            self._names.key[self._its.key[self._begins]].tolist(),
            episode[self._begins].tolist(),
            self._patterns(number, first),
            self._heard_ns(begun_ns, first),
            [asked.span.touches(at_ns, at_ns) for at_ns in begun_ns.tolist()],
            self._least("first_at").tolist(),
            *(self._most(name) for name in ("last_at", "last_ns")),
            self._matched(),
            *(self._of_envelopes(name) for name in ("origin", "seq")),
            self._most("token"),
            self._entered(opener),
        )
        return Found([*map(Episode._make, zip(*columns, strict=True))], seen)

    def _least(self, name: str) -> Ints:
        found: Ints = np.minimum.reduceat(self._its._asdict()[name], self._begins)
        return found

    def _most(self, name: str) -> list[int]:
        found: list[int] = np.maximum.reduceat(self._its._asdict()[name], self._begins).tolist()
        return found

    def _of_envelopes(self, name: str) -> list[int | None]:
        known = np.logical_or.reduceat(self._its.enveloped, self._begins).tolist()
        return [value if is_known else None for value, is_known in zip(self._most(name), known, strict=True)]

    def _patterns(self, number: list[int], first: Ints) -> Iterator[PatternKey]:
        """Yield the fault pattern of each episode, with the segment that heard it `first`."""
        its, names = self._its, [*self._names.bus, ""]
        firsts = [names[bus] for bus in np.where(its.heard[first], its.bus[first], -1).tolist()]
        return zip(number, firsts, self._most("flow"), self._most("begun"), strict=True)

    def _heard_ns(self, begun_ns: Ints, first: Ints) -> list[int]:
        """Return when each episode was heard first; of what nobody heard, when it began."""
        its = self._its
        heard_ns = np.minimum.reduceat(np.where(its.heard, its.first_ns, its.last_ns.max() + 1), self._begins)
        found: list[int] = np.where(its.heard[first], heard_ns, begun_ns).tolist()
        return found

    def _first(self, known: Collection[str] = ()) -> Ints:
        """Return the row of who heard each episode first: on a segment that is `known`, if one did."""
        its = self._its
        later = ~np.isin(its.bus, [bus for bus, name in enumerate(self._names.bus) if name in known])
        order = ordered(self._group, ~its.heard, later, its.first_at, its.hub, its.bus)
        return order[self._begins]

    def _matched(self) -> Iterator[str]:
        """Say how the rows of each episode were matched."""
        count = np.add.reduceat(self._its.enveloped.astype(np.int64), self._begins)
        rows = np.diff(self._begins, append=len(self._group))
        words = np.where(count == 0, BY_CONTENT, np.where(count == rows, BY_ENVELOPE, BOTH))
        return map(str, words.tolist())

    def _entered(self, opener: Ints) -> Iterator[Sequence[int]]:
        """Yield, for each episode, when its frames entered, by the opener: as `silent.entered`."""
        its, group = self._its, self._group
        of_opener = (its.hub == its.hub[opener][group]) & (its.bus == its.bus[opener][group])
        rows = np.flatnonzero(its.heard & of_opener)
        order, begins = groups(group[rows], its.first_at[rows] // BIN_NS)
        rows = rows[order]
        at = np.minimum.reduceat(its.first_at[rows], begins).tolist() if len(rows) else []
        until = np.cumsum(np.bincount(group[rows][begins], minlength=len(opener))).tolist()
        return (at[begin:end] for begin, end in zip([0, *until], until, strict=False))

    def _counted(self) -> tuple[list[int], list[tuple[Seen, ...]]]:
        """Count the messages of each episode, as `pipeline.analysis.audit.episodes.counted` does. Return a
        number for those with equal counts, and the counts by number."""
        its = self._its
        place = numbers(its.gateway, its.hub, its.bus, its.dir)
        order, of_peers = groups(self._group, place, its.peer)
        by_peer = np.add.reduceat(its.n[order], of_peers)
        rows = order[of_peers]
        _, of_places = groups(self._group[rows], place[rows])
        every, most = np.add.reduceat(by_peer, of_places), np.maximum.reduceat(by_peer, of_places)
        rows = rows[of_places]
        n = np.where(its.heard[rows], every, most)
        return self._numbered(rows, n, numbers(place[rows], n))

    def _numbered(self, rows: Ints, n: Ints, alike: Ints) -> tuple[list[int], list[tuple[Seen, ...]]]:
        ends = np.cumsum(np.bincount(self._group[rows])).tolist()
        known, seen, found = dict[bytes, int](), list[tuple[Seen, ...]](), list[int]()
        for begin, end in zip([0, *ends], ends, strict=False):
            number = known.setdefault(alike[begin:end].tobytes(), len(seen))
            if number == len(seen):
                seen.append(
                    tuple(self._seen(*one) for one in zip(rows[begin:end], n[begin:end], strict=True))
                )
            found.append(number)
        return found, seen

    def _seen(self, row: int, n: int) -> Seen:
        its, names = self._its, self._names
        hub = names.gateway[its.gateway[row]], names.hub[its.hub[row]]
        return Seen(hub, names.bus[its.bus[row]], int(its.dir[row]), int(n))
