"""One name for each frame, wherever it is: patterns are followed through sides that rename.

A segment and the inside of a bridge are *spaces* of names, and each side of a bridge leads from one to the
other. All frames get the names that they have in one of the spaces that are joined. A frame that has no name
on the way there keeps the one that it has, with a mark, so that it is no other's. Sides whose names lead in a
circle to other names are not followed. Tokens that a side strips by their number are gone for all: it is
followed unless filters, or names on the way, need them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from bus.wire.frame import PUB
from capture.schema import Hubs
from pipeline.analysis.shared.places import FILTERS, patterns
from pipeline.analysis.shared.sides import STRIPPED, Cut, Cuts, SidePlace, divided, told

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pipeline.analysis.shared.inventory import Version

CIRCLE: Final = "by other sides its frames have other names there"
OPAQUE: Final = "opaque, and other names lead away from there"
_MARK_BIT: Final = 33  # of a first token; those of frames have 32 bits
_MARKS: Final = 29
_NOWHERE: Final = -1 << 40  # in place of the first token of a pattern that no frame has
Tokens = tuple[int, ...]


class Names(NamedTuple):
    """The names on a wire and inside a bridge: beginnings on either side, and the pattern of opaque
    messages. On the wire `skip` tokens stand before a beginning, which nobody knows inside."""

    pairs: tuple[tuple[Tokens, Tokens], ...]
    opaque: Tokens = ()
    skip: int = 0

    def growth(self) -> int:
        return max((abs(len(new) - len(old)) for old, new in self.pairs), default=0)


class Step(NamedTuple):
    """A way from one space to the next: `inward` from the wire into the bridge. `mark` is for frames that
    have no name there."""

    names: Names
    inward: bool
    mark: int

    @property
    def pairs(self) -> list[tuple[Tokens, Tokens]]:
        """Beginnings and what stands in their place, the longest first."""
        some = [(old, new) if self.inward else (new, old) for old, new in self.names.pairs]
        return sorted(some, key=lambda pair: -len(pair[0]))

    def undoes(self, other: "Step") -> bool:
        return self.names == other.names and self.inward != other.inward

    @property
    def guesses(self) -> bool:
        """Whether tokens would have to be put back that nobody knows."""
        return bool(self.names.skip) and not self.inward


Steps = tuple[Step, ...]


class Naming(NamedTuple):
    """The `steps` of names by hub, where there are any, and `cuts`: sides that cannot be followed."""

    steps: Mapping[str, Steps]
    cuts: Cuts


def learn(versions: "Iterable[Version]", cut: Cuts) -> Naming:
    """Learn from topologies how frames are named at each hub, but for those sides that are `cut`."""
    known = list(versions)
    edges = {
        place: _names(some[0]) for place, some in told(known).items() if place not in cut
    }  # fmt: skip
    if not any(edges.values()):
        return Naming({}, {})
    found: dict[SidePlace, Cut] = {}
    filtering = {name for one in known for name, hub in one.hubs.items() if any(patterns({name: hub}))}
    steps = _steps(edges)
    while lossy := _lossy(steps, filtering):
        gone = [place for place, names in edges.items() if names in lossy]
        found |= {place: divided(place, "", STRIPPED, alone=False) for place in gone}
        edges = {place: names for place, names in edges.items() if place not in found}
        steps = _steps(edges)
    for place, names in edges.items():
        if names and (why := _odd(place, names, steps)):
            found[place] = divided(place, "", why, alone=False)
    return Naming({name: its for name, its in steps.items() if its}, found)


def _lossy(steps: Mapping[str, Steps], filtering: Iterable[str]) -> set[Names]:
    """Find the names that strip tokens by their number where these are needed: to put them back, or for the
    filters of hubs, which tell frames apart by them."""
    back = {step.names for its in steps.values() for step in its if step.guesses}
    return back | {step.names for hub in filtering for step in steps.get(hub, ()) if step.names.skip}


def _steps(edges: "Edges") -> dict[str, Steps]:
    """Find the steps of names from each space, for those that are joined to one of them."""
    steps: dict[str, Steps] = {}
    spaces = sorted({name for place in edges for name in place})
    while spaces:
        whole = _reached(spaces[0], edges)
        its = min((_walked(one, edges) for one in sorted(whole)), key=_cost)
        steps |= its
        spaces = [one for one in spaces if one not in whole]
    return steps


def _names(front: Mapping[str, Any]) -> Names | None:
    if not front.keys() & {"names", "opaque"}:
        return None
    pairs = front.get("names", [[[], []]])
    made = tuple((tuple(one), tuple(other)) for one, other in pairs)
    return Names(made, tuple(front.get("opaque", ())), front.get("strip", 0))


Edges = Mapping[SidePlace, Names | None]


def _next(space: str, edges: Edges) -> Iterator[tuple[str, Names | None, bool]]:
    """Yield the spaces beside one: the names on the way from there, and whether that way is inward."""
    for (hub, segment), names in edges.items():
        if space == hub:
            yield segment, names, True
        elif space == segment:
            yield hub, names, False


def _reached(space: str, edges: Edges) -> set[str]:
    found, rest = {space}, [space]
    while rest:
        for other, *_ in _next(rest.pop(), edges):
            if other not in found:
                found.add(other)
                rest.append(other)
    return found


def _walked(root: str, edges: Edges) -> dict[str, Steps]:
    """Find the steps from each space to the root, by as few names as can be."""
    marks = {place: n % _MARKS for n, place in enumerate(edges)}
    queue: list[tuple[int, int, str, Steps]] = [(0, 0, root, ())]
    found: dict[str, Steps] = {}
    count = 0
    while queue:
        far, _, here, steps = heappop(queue)
        if here in found:
            continue
        found[here] = steps
        for other, names, inward in _next(here, edges):
            if other not in found:
                place = (here, other) if inward else (other, here)
                count += 1
                more = (Step(names, inward, marks[place]),) if names else ()
                heappush(queue, (far + bool(names), count, other, _reduced((*more, *steps))))
    return found


def _reduced(steps: Sequence[Step]) -> Steps:
    """Leave out steps that undo each other."""
    found = list[Step]()
    for one in steps:
        if found and one.undoes(found[-1]):
            found.pop()
        else:
            found.append(one)
    return tuple(found)


def _cost(found: Mapping[str, Steps]) -> tuple[int, int, int]:
    every = [step for steps in found.values() for step in steps]
    opaque = sum(bool(step.names.opaque) and not step.inward for step in every)
    return sum(step.guesses for step in every), opaque, sum(step.names.growth() for step in every)


def _odd(place: SidePlace, names: Names, steps: Mapping[str, Steps]) -> str:
    """Return why the side of a bridge cannot be followed; "" if it can."""
    hub, segment = place
    if any(step.names.opaque and not step.inward for step in steps[hub]):
        return OPAQUE
    by_side = [step[:2] for step in _reduced((Step(names, True, 0), *steps[hub]))]
    return "" if by_side == [step[:2] for step in steps[segment]] else CIRCLE


def in_rows(rows: "DataFrame", steps: Mapping[str, Steps]) -> "DataFrame":
    """Give rows of frames the one name of each."""
    if not steps:
        return rows
    tokens, kind = F.col("tokens"), F.col("type")
    for hub, its in sorted(steps.items()):
        is_its = F.col("hub") == hub
        made, is_wrapped = _renamed(F.col("tokens"), its)
        tokens = F.when(is_its, made).otherwise(tokens)
        if is_wrapped is not None:
            kind = F.when(is_its & is_wrapped, F.lit(PUB).cast("smallint")).otherwise(kind)
    return rows.withColumns({"tokens": tokens, "type": kind})


def _renamed(tokens: "Column", steps: Steps) -> "tuple[Column, Column | None]":
    """Return tokens after all steps, and whether they were none before and are those of a frame now."""
    is_wrapped = None
    for step in steps:
        wrapped = _array(step.names.opaque)
        changed = _changed(tokens, step)
        if step.names.opaque and step.inward:
            is_wrapped = (F.col("type").isNull()) if is_wrapped is None else is_wrapped
            changed = F.when(F.col("type").isNull() & tokens.isNull(), wrapped).otherwise(changed)
        tokens = changed
    return tokens, is_wrapped


def _changed(tokens: "Column", step: Step) -> "Column":
    made = F.when(tokens.isNull(), tokens)
    pairs = step.pairs
    if step.names.skip:
        return _stripped(made, tokens, step)
    for old, new in pairs:
        result = F.concat(_array(new), F.slice(tokens, len(old) + 1, 255)) if old or new else tokens
        longer = [other for _, other in pairs if len(other) > len(new) and other[: len(new)] == new]
        for other in longer:  # from there another way leads back
            rest = other[len(new) :]
            result = F.when(_begins(tokens, old, rest), _marked(tokens, step.mark)).otherwise(result)
        made = made.when(_begins(tokens, (), old), result)
    return made.otherwise(_marked(tokens, step.mark))


def _stripped(made: "Column", tokens: "Column", step: Step) -> "Column":
    """Return `made` with the cases of tokens that lose the first ones, whatever they are."""
    skip = step.names.skip
    is_marked = F.coalesce(F.try_element_at(tokens, F.lit(1)), F.lit(0)) >= F.lit(1 << _MARK_BIT)
    made = made.when(is_marked | (F.size(tokens) < skip), _marked(tokens, step.mark))
    for old, new in step.pairs:
        rest = F.concat(_array(new), F.slice(tokens, skip + len(old) + 1, 255))
        made = made.when(_begins(tokens, (0,) * skip, old), rest)
    return made.otherwise(_marked(tokens, step.mark))


def _begins(tokens: "Column", skipped: Tokens, pattern: Tokens) -> "Column":
    condition = F.lit(True)
    for n, token in enumerate(pattern, 1 + len(skipped)):
        condition = condition & F.coalesce(F.try_element_at(tokens, F.lit(n)) == F.lit(token), F.lit(False))
    return condition


def _marked(tokens: "Column", mark: int) -> "Column":
    first = F.coalesce(F.try_element_at(tokens, F.lit(1)), F.lit(0)) + F.lit(1 << _MARK_BIT + mark)
    return F.concat(F.array(first.cast("bigint")), F.slice(tokens, 2, 255))


def _array(tokens: Tokens) -> "Column":
    made = F.array(*(F.lit(token).cast("bigint") for token in tokens))
    return made if tokens else made.cast("array<bigint>")


def in_topology(hubs: Hubs, steps: Mapping[str, Steps]) -> Hubs:
    """Return a topology whose filters speak the one name of each frame."""
    return {name: _hub(hub, steps[name]) if name in steps else hub for name, hub in hubs.items()}


def _hub(hub: Mapping[str, Any], steps: Steps) -> Mapping[str, Any]:
    def named(side: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**side, **{name: images(side[name], steps) for name in FILTERS if name in side}}

    pattern = hub.get("pattern", ())
    sides = [named(side) for side in hub.get("sides", ())]
    if not pattern:
        return {**hub, "sides": sides}
    return {**hub, "patterns": images([pattern], steps), "sides": sides}


def images(patterns: Iterable[Sequence[int]], steps: Steps) -> list[list[int]]:
    """Return what patterns become by all steps; a pattern that nothing has if none is left."""
    found: Iterable[Tokens] = map(tuple, patterns)
    for step in steps:
        found = dict.fromkeys(image for one in found for image in _images(one, step))
    return [list(one) for one in found] or [[_NOWHERE]]


def _images(pattern: Tokens, step: Step) -> Iterator[Tokens]:
    if not pattern:
        yield ()
        return
    yield (pattern[0] + (1 << _MARK_BIT + step.mark), *pattern[1:])
    pairs = step.pairs
    found = next(((old, new) for old, new in pairs if pattern[: len(old)] == old), None)
    if found is not None:
        yield found[1] + pattern[len(found[0]) :]
    yield from (new for old, new in pairs if len(old) > len(pattern) and old[: len(pattern)] == pattern)
