"""The quantities that a topology knows: what the values under patterns are, by the protocols of its sides."""

from collections.abc import Iterator
from dataclasses import replace

from bridges.protocols.protocol import Protocol
from bus.quantity.quantity import Quantity
from topologies.model import Side, Topology


def quantities(topology: Topology) -> Iterator[Quantity]:
    """Yield all quantities, by the patterns that they have on buses. May read files of protocols."""
    seen = list[tuple[Protocol, object]]()
    for side in _spoken(topology):
        assert side.speaks is not None
        if (side.speaks, side.renaming) not in seen:
            seen.append((side.speaks, side.renaming))
            yield from of_side(side)


def _spoken(topology: Topology) -> Iterator[Side]:
    for spec in topology.bridges.values():
        for side in (side for gateway in spec.on for side in spec.at(gateway)):
            if side.speaks is not None:
                yield side


def of_side(side: Side) -> Iterator[Quantity]:
    """Yield the quantities of a side by the patterns that they have inside its bridge. May read files."""
    renaming = side.renaming
    for one in () if side.speaks is None else side.speaks.quantities():
        for pattern in renaming.inside(one.pattern) if renaming else (one.pattern,):
            moved = len(pattern) - len(one.pattern)
            place = None if one.any_at is None else one.any_at + moved
            yield one if pattern == one.pattern else replace(one, pattern=pattern, any_at=place)
