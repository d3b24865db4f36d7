"""Which frames a side lets through, in tokens: what the cycle search and the budgets both ask."""

from collections.abc import Iterable, Iterator

from bus.pattern import Pattern
from topologies.model import BridgeSpec, Side, Topology

Tokens = tuple[int, ...]


def tokens(names: Iterable[int | str]) -> Tokens:
    return tuple(Pattern(*names))


def begins(prefix: Tokens, whole: Tokens) -> bool:
    return whole[: len(prefix)] == prefix


def related(one: Tokens, other: Tokens) -> bool:
    """Whether some frame matches both."""
    return begins(one, other) or begins(other, one)


def passes(spec: BridgeSpec, side: Side, frame: Tokens, inward: bool) -> bool:
    """Whether a frame with these tokens crosses `side`, into the bridge or out of it."""
    if not (begins(tokens(spec.pattern), frame) and begins(tokens(side.pattern), frame)):
        return False
    ways = "inward" if inward else "outward"
    allow, deny = (
        [[tokens(p) for p in patterns] for patterns in (filter_.both, getattr(filter_, ways))]
        for filter_ in (side.allow, side.deny)
    )
    allowed = all(any(begins(p, frame) for p in patterns) for patterns in allow if patterns)
    return allowed and not any(begins(p, frame) for patterns in deny for p in patterns)


def all_names(topology: Topology) -> Iterator[tuple[int | str, ...]]:
    """Every pattern that is written anywhere in the file."""
    for spec in topology.bridges.values():
        yield spec.pattern
        yield from (rate.pattern for rate in spec.rates)
        for side in spec.join:
            yield side.pattern
            for filter_ in (side.allow, side.deny):
                yield from (*filter_.both, *filter_.inward, *filter_.outward)
    yield from (device.pattern for device in topology.devices.values())
