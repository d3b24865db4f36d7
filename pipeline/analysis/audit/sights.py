"""Rows of few suspects as columns (`Sights`), and how they are divided into episodes: what `replays` and
`episodes` do by plans. Pure, with numpy: no step works row by row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from capture.schema import Direction
from pipeline.analysis.audit.orders import Ints, groups, ordered
from pipeline.analysis.audit.replays import STOOD_BY
from pipeline.analysis.shared.places import Places
from pipeline.input.span import Span

if TYPE_CHECKING:
    import pyarrow as pa

Bools = npt.NDArray[np.bool_]

_NEVER: Final = np.iinfo(np.int64).max
TEXTS: Final = ("gateway", "hub", "bus")
"""The columns that name places."""
_NUMBERS: Final = ("key", "dir", "peer", "n", "first_ns", "last_ns", "token", "flow", "begun")
COLUMNS: Final = (*TEXTS, *_NUMBERS, "origin", "seq", STOOD_BY)


class Names(NamedTuple):
    """The names of gateways, hubs and segments, and the keys, each in order: rows have their numbers."""

    gateway: Sequence[str]
    hub: Sequence[str]
    bus: Sequence[str]
    key: Ints


class Sights(NamedTuple):
    """Rows of suspects (`pipeline.analysis.audit.suspects`): of each column an array with a value for each
    row. `key`, `gateway`, `hub` and `bus` are numbers of `Names`, and `peer` a number that its equals have.
    Rows without an envelope are not `enveloped`, and have 0 as `origin` and `seq`. `first_at` and `last_at`
    are times by the one clock."""

    key: Ints
    gateway: Ints
    hub: Ints
    bus: Ints
    dir: Ints
    enveloped: Bools
    origin: Ints
    seq: Ints
    stood_by: Bools
    peer: Ints
    n: Ints
    first_ns: Ints
    last_ns: Ints
    token: Ints
    flow: Ints
    begun: Ints
    first_at: Ints
    last_at: Ints

    @property
    def heard(self) -> Bools:
        """Whether each row is of what came in."""
        found: Bools = self.dir == Direction.RX.value
        return found

    @property
    def came(self) -> Bools:
        """Whether each row is of what came in while the bridge forwarded."""
        return self.heard & ~self.stood_by

    @property
    def frame(self) -> tuple[Ints, Ints, Bools, Ints, Ints]:
        """The columns that tell the frames of a hub apart."""
        return self.key, self.hub, self.enveloped, self.origin, self.seq

    def take(self, rows: Any) -> "Sights":
        """Select rows: by a mask, or by their numbers."""
        return Sights(*(column[rows] for column in self))


def sights(its: "pa.Table", ahead: Mapping[str, int], sides: Sequence[str]) -> tuple[Sights, Names]:
    """Return the rows of a table with `COLUMNS`. Segments may also have names of `sides`."""
    texts = {name: its[name].unique().to_pylist() for name in TEXTS}
    gateways, hubs, buses = (sorted({*texts[name], *(sides if name == "bus" else ())}) for name in TEXTS)
    columns: dict[str, Any] = {name: _ints(its[name]) for name in _NUMBERS}
    keys, columns["key"] = np.unique(columns["key"], return_inverse=True)
    _, columns["peer"] = np.unique(columns["peer"], return_inverse=True)
    names = Names(gateways, hubs, buses, keys)
    known = zip(TEXTS, (gateways, hubs, buses), strict=True)
    columns |= {name: _numbered(its[name], some) for name, some in known}
    columns["enveloped"] = its["origin"].is_valid().to_numpy()
    columns |= {name: _ints(its[name]) for name in ("origin", "seq")}
    columns[STOOD_BY] = its[STOOD_BY].fill_null(False).to_numpy().astype(bool)
    shift = np.array([ahead.get(name, 0) for name in names.gateway], np.int64)[columns["gateway"]]
    at = {"first_at": columns["first_ns"] - shift, "last_at": columns["last_ns"] - shift}
    return Sights(**columns, **at), names


def _ints(column: "pa.ChunkedArray") -> Ints:
    found: Ints = column.fill_null(0).to_numpy().astype(np.int64)
    return found


def _numbered(column: "pa.ChunkedArray", names: Sequence[str]) -> Ints:
    import pyarrow as pa
    import pyarrow.compute as pc

    return _ints(pc.index_in(column, value_set=pa.array(names, pa.string())))


def numbers(*columns: npt.NDArray[Any]) -> Ints:
    """Number the groups of rows that are equal in all columns, from 0: the number of each row's."""
    order, begins = groups(*columns)
    found = np.zeros(len(order), np.int64)
    found[order] = group_in_order(len(order), begins)
    return found


def group_in_order(rows: int, begins: Ints) -> Ints:
    """Return the number of the group of each of so many rows, in the order of `groups`."""
    return np.repeat(np.arange(len(begins)), np.diff(begins, append=rows))


def has_any(which: Bools, group: Ints) -> Bools:
    """Return for each row whether its group has one of `which`."""
    found = np.zeros(group.max(initial=-1) + 1, bool)
    found[group[which]] = True
    return found[group]


def _most_before(values: Ints, group: Ints) -> tuple[Ints, Bools]:
    """Return, for rows whose groups follow each other, the largest value of the rows before in the group, and
    whether there are any."""
    rank, rows = np.empty_like(values), len(values)
    order = ordered(values)
    rank[order] = np.arange(rows)
    most = values[order[np.maximum.accumulate(group * rows + rank) - group * rows]]
    follows = np.zeros(rows, bool)
    follows[1:] = group[1:] == group[:-1]
    return np.concatenate([values[:1], most[:-1]]), follows


def with_entries(its: Sights, names: Names, joins: Mapping[str, frozenset[str]], by_envelope: bool) -> Sights:
    """Add rows, as `pipeline.analysis.audit.replays.with_entries` does."""
    of_them = its.take(np.isin(its.hub, [names.hub.index(one) for one in joins if one in names.hub]))
    frame = numbers(*of_them.frame)
    came = has_any(of_them.heard, frame)
    known = has_any(came & (by_envelope | ~of_them.enveloped), numbers(of_them.key, of_them.hub))
    put = of_them.take(of_them.enveloped & ~came & ~known)
    entries = list(_entries(put, names, joins))
    if not entries:
        return its
    rows, buses, n = (np.array(column, np.int64) for column in zip(*entries, strict=True))
    new = put.take(rows)._replace(bus=buses, n=n, dir=np.full(len(rows), Direction.RX.value))
    new = new._replace(stood_by=np.ones(len(rows), bool))
    return Sights(*(np.concatenate(both) for both in zip(its, new, strict=True)))


def _entries(
    put: Sights, names: Names, joins: Mapping[str, frozenset[str]]
) -> Iterator[tuple[int, int, int]]:
    """Yield, for each frame, its first row, the segment that it came from, and how often it came."""
    frame = numbers(*put.frame)
    order = np.lexsort((put.last_ns, put.gateway, put.bus, put.first_ns, frame))
    for rows in np.split(order, np.flatnonzero(np.diff(frame[order])) + 1) if len(order) else ():
        first = int(rows[0])
        sides = joins[names.hub[put.hub[first]]] - {names.bus[bus] for bus in put.bus[rows]}
        if len(sides) == 1:
            yield first, names.bus.index(min(sides)), int(put.n[rows].max())


def divided(its: Sights, at: Places, window_ns: int, span: Span) -> Ints:
    """Number the episodes of each key, as `pipeline.analysis.audit.episodes.numbered` does: the number of
    each row's."""
    if at.by_envelope:
        return np.zeros(len(its.key), np.int64)
    late = _late(its, window_ns) if at.has_envelopes else 0
    begin, end = its.first_at - late, its.last_at - late
    episode = _in_time(numbers(its.key), begin, end, window_ns)
    for bound_ns in (span.from_ns, span.to_ns):
        if bound_ns is not None:
            episode = _at_bound(numbers(its.key, episode), episode, begin, end, bound_ns, window_ns)
    return episode


def _late(its: Sights, window_ns: int) -> Ints:
    """Return how late each row is."""
    behind = its.first_at - _least(its.first_at, numbers(its.key, its.enveloped, its.origin, its.seq))
    by_late = ordered(behind)  # so that of rows of one time the one most late is the last
    order, begins = groups(its.key[by_late], its.gateway[by_late], its.first_at[by_late])
    order = by_late[order]
    at, owner = its.first_at[order], numbers(its.key, its.gateway)[order]
    last_of_time = np.append(begins[1:], len(order))[group_in_order(len(order), begins)] - 1
    rows = np.where(its.enveloped[order], np.arange(len(order)), -1)
    known = np.maximum.accumulate(rows)[last_of_time]  # of rows of one time all are known
    is_near = (known >= 0) & (owner[known] == owner) & (at - at[known] <= window_ns)
    late = np.zeros(len(order), np.int64)
    late[order] = np.where(is_near, behind[order][known], 0)
    return late


def _least(values: Ints, group: Ints) -> Ints:
    found = np.full(group.max(initial=-1) + 1, _NEVER)
    np.minimum.at(found, group, values)
    return found[group]


def _in_time(key: Ints, begin: Ints, end: Ints, window_ns: int) -> Ints:
    """Number the rows of each key: a new number begins after silence for the window."""
    order = ordered(key, begin)
    in_order = key[order]
    until, follows = _most_before(end[order], in_order)
    fresh = np.cumsum(follows & (begin[order] - until > window_ns))
    first = np.flatnonzero(~follows)
    episode = np.empty_like(key)
    episode[order] = fresh - fresh[first][in_order]
    return episode


def _at_bound(group: Ints, episode: Ints, begin: Ints, end: Ints, bound_ns: int, window_ns: int) -> Ints:
    """Divide the groups that last since long before a bound, after the longest silence near it."""
    order = ordered(group, begin)
    its, starts = group[order], begin[order]
    until, follows = _most_before(end[order], its)
    is_old = starts[np.flatnonzero(~follows)] < bound_ns - window_ns
    near = np.flatnonzero(follows & is_old[its] & (starts >= bound_ns) & (starts <= bound_ns + window_ns))
    by_silence = near[np.lexsort((starts[near], until[near] - starts[near], its[near]))]
    longest = by_silence[np.unique(its[by_silence], return_index=True)[1]]
    begins = np.full(len(is_old), _NEVER)
    begins[its[longest]] = starts[longest]
    return 2 * episode + (begin >= begins[group])


def without_replays(its: Sights, episode: Ints) -> Bools:
    """Return which rows are kept, as `pipeline.analysis.audit.replays.as_one` keeps them."""
    came, mine = its.came, its.heard & its.stood_by
    is_same = its.enveloped & has_any(came, numbers(*its.frame))
    equal = numbers(its.key, episode, its.hub, its.bus)
    is_alone = (_count(its.n, came, equal) == 1) & (_count(its.n, mine, equal) == 1)
    has_same_origin = its.enveloped & has_any(came, numbers(equal, its.enveloped, its.origin))
    kept: Bools = ~(mine & (is_same | (is_alone & ~has_same_origin)))
    return kept


def _count(n: Ints, which: Bools, group: Ints) -> Ints:
    found = np.zeros(group.max(initial=-1) + 1, np.int64)
    np.add.at(found, group[which], n[which])
    return found[group]
