"""Filters of bridges, from the topology that a capture has: which frames go the same ways.

Frames with one first token go the same ways, unless a filter looks deeper. A *flow* is all frames that the
filters treat alike, as a number. A capture without a topology (an older one) has a flow for each first token.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from capture.schema import Hubs
from pipeline.analysis.frames import begins, first_token

if TYPE_CHECKING:
    from pyspark.sql import Column

Patterns = tuple[tuple[int, ...], ...]


def deep_of(topologies: Iterable[Hubs]) -> Patterns:
    """Return the patterns of filters that look at more than the first token, sorted."""
    return tuple(sorted({one for hubs in topologies for one in patterns(hubs) if len(one) > 1}))


def patterns(hubs: Hubs) -> Iterator[tuple[int, ...]]:
    """Yield all patterns by which the hubs of a topology filter."""
    for hub in hubs.values():
        yield tuple(hub.get("pattern", ()))
        for side in hub.get("sides", ()):
            for name, lists in side.items():
                if name != "segment":
                    yield from map(tuple, lists)


def flow(deep: Patterns) -> "Column":
    """Return the number of a frame's flow: its first token where no filter looks deeper at such a frame."""
    by_length: dict[int, list[Sequence[int]]] = defaultdict(list)
    for pattern in deep:
        by_length[len(pattern)].append(pattern)
    if not by_length:
        return first_token()
    heads = [
        F.when(reduce(or_, map(begins, some)), F.xxhash64(F.slice("tokens", 1, length))).otherwise(F.lit(0))
        for length, some in sorted(by_length.items())
    ]
    is_deep = reduce(or_, (head != 0 for head in heads))
    return F.when(is_deep, F.xxhash64(*heads)).otherwise(first_token())
