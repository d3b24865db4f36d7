"""Matching of frames against the patterns of a side, by tokens; for the search for loops and the budgets."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from bus.wire.pattern import Pattern
from topologies.model import BridgeSpec, Filter, Side, Topology

Tokens = tuple[int, ...]


@lru_cache(maxsize=16_384)  # the search for loops needs each of them once for every pattern
def tokens(names: tuple[int | str, ...]) -> Tokens:
    """Return the tokens of a pattern as written in the file."""
    return tuple(Pattern(*names))


def begins(prefix: Tokens, whole: Tokens) -> bool:
    """Return whether a pattern begins with a prefix."""
    return whole[: len(prefix)] == prefix


def related(one: Tokens, other: Tokens) -> bool:
    """Return whether a frame can match both patterns."""
    return begins(one, other) or begins(other, one)


class Passage(NamedTuple):
    """One direction of a side, by tokens.

    `whole` is the pattern of its bridge. `allow` are the patterns that may cross, all if there are none, but
    for those in `deny`.
    """

    whole: Tokens
    allow: Sequence[Tokens]
    deny: Sequence[Tokens]

    def passes(self, frame: Tokens) -> bool:
        """Return whether a frame with these tokens crosses."""
        return (
            begins(self.whole, frame)
            and (not self.allow or any(begins(one, frame) for one in self.allow))
            and not any(begins(one, frame) for one in self.deny)
        )

    def may_pass(self, start: Tokens) -> bool:
        """Return whether a frame that begins with these tokens may cross, whatever follows."""
        lets = not self.allow or any(related(one, start) for one in self.allow)
        return lets and related(self.whole, start) and not any(begins(one, start) for one in self.deny)


def passage(spec: BridgeSpec, side: Side, inward: bool) -> Passage:
    """Return the way through `side`: into the bridge if `inward`, or out of it."""
    return Passage(tokens(spec.pattern), one_way(side.allowed, inward), one_way(side.denied, inward))


def passes(spec: BridgeSpec, side: Side, frame: Tokens, inward: bool) -> bool:
    """Return whether a frame with these tokens crosses `side`: into the bridge if `inward`, or out of it."""
    return passage(spec, side, inward).passes(frame)


def one_way(lists: Filter, inward: bool) -> list[Tokens]:
    """Return the patterns that apply to one direction: those for both, and those for it alone."""
    return [tokens(names) for names in (*lists.both, *(lists.inward if inward else lists.outward))]


def all_names(topology: Topology) -> Iterator[tuple[int | str, ...]]:
    """Yield every pattern in the file."""
    for bus in topology.buses.values():
        for peer in (peer for address in bus.listen for peer in address.peers or ()):
            yield from (*(peer.send or ()), *(peer.hear or ()))
    for spec in topology.bridges.values():
        yield spec.pattern
        yield from (rate.pattern for rate in spec.rates)
        for side in (side for gateway in spec.on for side in spec.at(gateway)):
            for lists in (side.allowed, side.denied):
                yield from (*lists.both, *lists.inward, *lists.outward)
            yield from side.speaks.patterns() if side.speaks is not None else ()
            yield from side.medium.pattern_subjects if side.medium is not None else ()
            yield from (*side.renaming.patterns(), side.opaque or (), *(one.pattern for one in side.limits))
    for device in topology.devices.values():
        yield from device.patterns()
    for name, alarm in topology.alarms.items():
        yield from ((name,), alarm.pattern)


def is_bus(side: Side) -> bool:
    """Return whether what a side joins carries any message."""
    return side.medium is None or side.medium.opaque


def takes_frames_only(place: BridgeSpec | Side) -> bool:
    """Return whether a bridge, or one direction of a side, has a pattern that messages must match."""
    if isinstance(place, BridgeSpec):
        return bool(place.pattern)
    allowed = place.allowed
    ways = [[*allowed.both, *own] for own in (allowed.inward, allowed.outward)]
    return any(allow and () not in allow for allow in ways)
