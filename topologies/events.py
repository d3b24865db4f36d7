"""Events of gateways: the buses on which they are published, and the sides of bridges that let them out."""

from collections.abc import Iterator

from bus.events import PATTERN
from topologies.filters import begins, one_way, passes
from topologies.model import BridgeSpec, Side, Topology
from topologies.segments import edges_of, reached

_EVENT = tuple(PATTERN)


def keeps_events(topology: Topology, spec: BridgeSpec, side: Side) -> bool:
    """Return whether a side must be told to keep events in: events are published, and would leave unnamed."""
    would = bool(topology.events) and passes(spec, side, _EVENT, inward=False)
    return would and not names_events(side, inward=False)


def names_events(side: Side, inward: bool) -> bool:
    """Return whether a list of the side names the pattern of events, or of one kind of them."""
    return any(begins(_EVENT, pattern) for pattern in one_way(side.allowed, inward))


def publishing_buses(topology: Topology, gateway: str) -> list[str]:
    """Return the buses on which a gateway publishes its events: of those that `events` names, its own.

    Of buses that hear each other's events, only the first is used, so that nobody hears an event twice.
    """
    mine = [name for name in dict.fromkeys(topology.events) if topology.buses[name].on == gateway]
    steps = list(_steps(topology))
    heard = {name: reached(f"bus {name}", steps) for name in mine}
    chosen, covered = list[str](), set[str]()
    for name in sorted(mine, key=lambda name: -len(heard[name])):
        if f"bus {name}" not in covered:
            chosen.append(name)
            covered |= heard[name]
    return chosen


def _steps(topology: Topology) -> Iterator[tuple[str, str]]:
    """Yield each way that events go, from one part to the next."""
    for edge in edges_of(topology):
        joint = edge.joint
        if joint is None or _enters(joint.spec, joint.side):
            yield edge.other, edge.one
        if joint is None or names_events(joint.side, inward=False):
            yield edge.one, edge.other


def _enters(spec: BridgeSpec, side: Side) -> bool:
    return names_events(side, inward=True) or passes(spec, side, _EVENT, inward=True)
