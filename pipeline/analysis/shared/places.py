"""The places of a capture: its segments, its hubs, and the paths of frames between them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capture.schema import BRIDGE, Direction, Hubs, Kind
from pipeline.analysis.shared.expected import SEGMENTS_A_WORD

if TYPE_CHECKING:
    from pyspark.sql import Row

    from pipeline.analysis.shared.inventory import Version
    from pipeline.analysis.shared.sides import Cuts

Hub = tuple[str, str]
"""Gateway and name."""
Hearers = Mapping[str, frozenset[Hub]]
"""The hubs that have to hear each frame of a segment of several buses (`pipeline.analysis.shared.trunks`)."""
NO_HEARERS: Final[Hearers] = MappingProxyType({})

Patterns = tuple[tuple[int, ...], ...]
FILTERS: Final = ("allow", "deny", "allow_in", "deny_in", "allow_out", "deny_out", "deep")
"""The lists of patterns that a side in a topology may have."""


class Paths(NamedTuple):
    """The hubs that put frames onto a segment (`carriers`), those bridges that hear one (`takers`), segments
    between bridges of different names (`wires`), and the buses that hear one by trunks (`hearers`)."""

    carriers: frozenset[tuple[Hub, str]]
    takers: frozenset[tuple[Hub, str]]
    wires: frozenset[str]
    hearers: Hearers = NO_HEARERS

    def towards(self, target: str) -> frozenset[str]:
        """Return the wires from which bridges carry frames onto a segment."""
        hubs = {hub for hub, segment in self.carriers if segment == target}
        return frozenset(wire for hub, wire in self.takers if hub in hubs and wire != target) & self.wires


class Places(NamedTuple):
    """The segments and hubs (gateway and name) of a capture, the paths of frames between them, the topologies
    that it was recorded under (`versions`), and the patterns of their filters. `by_envelope`: all rows of
    frames have an envelope; `has_envelopes`: some have. `cuts` are sides behind which frames are others."""

    segments: tuple[str, ...]
    hubs: tuple[tuple[str, str], ...]
    paths: Paths
    by_envelope: bool
    has_envelopes: bool
    versions: "tuple[Version, ...]" = ()
    filters: Patterns = ()
    cuts: "Cuts" = MappingProxyType({})

    @property
    def topologies(self) -> tuple[Hubs, ...]:
        """The topologies of all gateways and times."""
        return tuple(one.hubs for one in self.versions)

    @property
    def ears(self) -> tuple[tuple[str, str], ...]:
        """The buses that hear a segment of several, each with that segment. Their numbers follow those of
        the segments."""
        hearers = sorted(self.paths.hearers.items())
        return tuple(sorted((hub, segment) for segment, hubs in hearers for _, hub in hubs))

    @property
    def heard_in(self) -> dict[int, int]:
        """The numbers of the segments that ears hear, by the numbers of these."""
        segments = (self.segments.index(segment) for _, segment in self.ears)
        return dict(enumerate(segments, len(self.segments)))

    @property
    def words(self) -> int:
        """The numbers for the bits of all segments and ears (`pipeline.analysis.shared.expected`)."""
        return max(1, -(-(len(self.segments) + len(self.ears)) // SEGMENTS_A_WORD))


def as_places(
    taken: "Iterable[Row]", versions: "tuple[Version, ...]" = (), hearers: Hearers = NO_HEARERS
) -> Places:
    """Make `Places` of the rows of `pipeline.analysis.shared.inventory.take`, with their topologies;
    `hearers` are those of segments of several buses."""
    found = [row for row in taken if row.kind == Kind.FRAME]
    segments = tuple(sorted({row.bus for row in found}))
    hubs = tuple(sorted({(row.gateway, row.hub) for row in found}))
    bridges = [row for row in found if row.hub.startswith(BRIDGE)]
    puts = {(row.hub, row.bus) for row in bridges if row.dir == Direction.TX}
    takes = {(row.hub, row.bus) for row in bridges if row.dir == Direction.RX}
    wires = frozenset(bus for hub, bus in puts if any(b == bus and h != hub for h, b in takes))
    carriers = frozenset(((r.gateway, r.hub), r.bus) for r in bridges if r.dir == Direction.TX)
    by_envelope = all(row.rows == row.enveloped for row in found)
    has_envelopes = any(row.enveloped for row in found)
    takers = frozenset(((r.gateway, r.hub), r.bus) for r in bridges if r.dir == Direction.RX)
    paths = Paths(carriers, takers, wires, hearers)
    filters = patterns_of(one.hubs for one in versions)
    return Places(segments, hubs, paths, by_envelope, has_envelopes, versions, filters)


def patterns_of(topologies: Iterable[Hubs]) -> Patterns:
    """Return the patterns of all filters, sorted."""
    return tuple(sorted({one for hubs in topologies for one in patterns(hubs) if one}))


def patterns_in(hub: Mapping[str, Any]) -> Sequence[Sequence[int]]:
    """Return the patterns of a hub, of which its frames start with one."""
    found: Sequence[Sequence[int]] = hub.get("patterns") or (hub.get("pattern", ()),)
    return found


def patterns(hubs: Hubs) -> Iterator[tuple[int, ...]]:
    """Yield all patterns by which the hubs of a topology filter."""
    for hub in hubs.values():
        yield from map(tuple, patterns_in(hub))
        for side in hub.get("sides", ()):
            for name in FILTERS:
                yield from map(tuple, side.get(name, ()))
