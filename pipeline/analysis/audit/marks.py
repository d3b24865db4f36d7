"""The circumstances of few episodes, in Python: as `causes.marked` finds those of many by plans."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline.analysis.audit import dark, filtered
from pipeline.analysis.audit.causes import Asked, Needed
from pipeline.analysis.audit.few import MOST, Episode, collected, values
from pipeline.analysis.audit.labels import PatternKey
from pipeline.analysis.audit.quiet import SLACK_NS
from pipeline.analysis.shared.service import MISSED_LEAST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Spells = Mapping[str, Sequence[tuple[int, int, str]]]
"""The spells of each name: begin, end, and the gateway that was last before."""
Hit = tuple[int, str, str]
"""The begin of a spell in which an episode needed something, what that is, and the gateway that was last."""
Entered = Callable[[Episode], Iterator[tuple[int, int]]]
"""The times in which frames of an episode needed something."""
IsNear = Callable[[Episode, int, int], bool]
"""A function that tells whether an episode was near the times from one to another."""
_NO_SPELL: Final = (0, -1 << 62, "")
_HOLE: Final = ("unseen", "from_ns", "to_ns")


class Marks(NamedTuple):
    """The values of `pipeline.analysis.audit.labels.CIRCUMSTANCES` for an episode."""

    unseen: str | None = None
    dark: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()


def marks(every: Sequence[Episode], found: Asked, by_envelope: bool) -> list[Marks] | None:
    """Find the circumstances of each episode, of which `found` has the times as lists. None if there are too
    many holes to look at."""
    assert isinstance(found.silent, list | None)
    assert isinstance(found.paused, list | None)
    unseen, silent, paused = _holes(found.unseen), found.silent or (), found.paused or ()
    if unseen is None:
        return None
    holes = [min(_names(unseen, one, _is_near), default=None) for one in every]
    seen = [(number, one) for number, one in enumerate(every) if holes[number] is None]
    entered = _at_once if by_envelope else _entered
    guilty = _lost_in(_spells(silent), _asked(seen, found.needs_bridge, entered))
    quiet = _lost_in(_spells(paused), _asked(seen, found.needs_segment, _all_along))
    kept = filtered.by_pattern(found.filtered)
    made = [Marks(unseen) for unseen in holes]
    for number, one in seen:
        its = sorted(guilty[number]) if number in guilty else ()
        made[number] = Marks(
            None,
            tuple(_names(found.dark, one, _is_near)),
            tuple(_names(found.absent, one, _began_near)),
            tuple(name for _, name, _ in its),
            tuple(last for *_, last in its),
            tuple(sorted({name for _, name, _ in quiet[number]})) if number in quiet else (),
            _kept_out(kept.get((one.pattern[1], one.pattern[-1])), one.from_at),
        )
    return made


def _kept_out(found: Sequence[filtered.Kept] | None, at_ns: int) -> tuple[str, ...]:
    return tuple(sorted(filtered.segments(found, at_ns))) if found else ()


def _names(times: Sequence[tuple[str, int, int]], one: Episode, is_near: IsNear) -> Sequence[str]:
    """Return the names, in order, of what was the matter near an episode."""
    return sorted({name for name, begin, end in times if is_near(one, begin, end)}) if times else ()


def _holes(frame: "DataFrame | None") -> list[tuple[Any, ...]] | None:
    """Collect holes; none if there is no table, None if there are too many."""
    if frame is None:
        return []
    table = collected(frame, MOST)
    return None if table is None else list(values(table, _HOLE))


def _is_near(one: Episode, begin_ns: int, end_ns: int) -> bool:
    return one.to_at >= begin_ns - dark.SLACK_NS and one.from_at <= end_ns + dark.SLACK_NS


def _began_near(one: Episode, begin_ns: int, end_ns: int) -> bool:
    return begin_ns - dark.SLACK_NS <= one.from_at <= end_ns + dark.SLACK_NS


def _spells(rows: Iterable[tuple[str, int, int, str]]) -> Spells:
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for name, from_ns, to_ns, last in sorted(rows):
        found[name].append((from_ns, to_ns, last))
    return found


def _asked(
    seen: Iterable[tuple[int, Episode]], needed: Collection[Needed], entered: Entered
) -> Iterator[tuple[int, str, int, int]]:
    """Yield the numbers of episodes, a name of what each needed, and when it did: from, and until."""
    names: dict[PatternKey, list[str]] = defaultdict(list)
    for pattern, first, flow, begun, name in needed:
        names[pattern, first, flow, begun].append(name)
    for number, one in seen:
        for name in names.get(one.pattern, ()):
            for from_at, to_at in entered(one):
                yield number, name, from_at, to_at


def _all_along(one: Episode) -> Iterator[tuple[int, int]]:
    yield one.from_at, one.to_at


def _at_once(one: Episode) -> Iterator[tuple[int, int]]:
    yield one.from_at, one.from_at


def _entered(one: Episode) -> Iterator[tuple[int, int]]:
    return ((at, at) for at in one.entered)


def _lost_in(spells: Spells, asked: Iterable[tuple[int, str, int, int]]) -> dict[int, set[Hit]]:
    """Find the spells in which episodes needed something with enough others: as `quiet.lost_in`."""
    begins = {name: [begin - SLACK_NS for begin, *_ in some] for name, some in spells.items()}
    hits, many = list[tuple[int, Hit]](), Counter[tuple[str, int]]()
    for number, name, from_at, to_at in asked:
        place = bisect_right(begins.get(name, ()), to_at) - 1
        begin, end, last = spells[name][place] if place >= 0 else _NO_SPELL
        if end + SLACK_NS >= from_at:
            hits.append((number, (begin, name, last)))
            many[name, begin] += 1
    found: dict[int, set[Hit]] = defaultdict(set)
    for number, hit in hits:
        if many[hit[1], hit[0]] >= MISSED_LEAST:
            found[number].add(hit)
    return found
