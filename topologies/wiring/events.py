"""Frames that gateways say themselves: on which buses, and which sides of bridges keep them in."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from bus import events, logs
from topologies.model import BridgeSpec, Side, Topology
from topologies.wiring.filters import Tokens, begins, one_way, passes
from topologies.wiring.graph import reached, ways_of
from topologies.wiring.segments import Wiring


class Told(NamedTuple):
    """Something that gateways say: its key in the file, and the pattern of its frames."""

    key: str
    pattern: Tokens


EVENTS: Final = Told("events", tuple(events.PATTERN))
LOGS: Final = Told("logs", tuple(logs.PATTERN))


def named_buses(topology: Topology, told: Told) -> tuple[str, ...]:
    """Return the buses on which the file wants it said."""
    return topology.events if told is EVENTS else topology.logs


def kept_in(topology: Topology, spec: BridgeSpec, side: Side) -> tuple[Tokens, ...]:
    """Return the patterns that a side must keep in: such frames would leave, and no list names them."""
    return tuple(pattern for pattern in _said(topology) if _would_leave(spec, side, pattern))


def _said(topology: Topology) -> Iterator[Tokens]:
    """Yield the patterns of all that gateways and devices say about themselves, or answer, in this system."""
    yield from (told.pattern for told in (EVENTS, LOGS) if named_buses(topology, told))
    devices = topology.devices.values()
    yield from dict.fromkeys(tuple(pattern) for device in devices for pattern in device.local())


def _would_leave(spec: BridgeSpec, side: Side, pattern: Tokens) -> bool:
    return passes(spec, side, pattern, inward=False) and not _names(side, pattern, inward=False)


def _names(side: Side, told: Tokens, inward: bool) -> bool:
    """Return whether a list of the side names the pattern, or a longer one."""
    return any(begins(told, pattern) for pattern in one_way(side.allowed, inward))


def publishing_buses(wiring: Wiring, gateway: str, told: Told) -> list[str]:
    """Return the buses on which a gateway says it: of those that the file names, its own.

    Of buses that hear what is said on the other, only the first is used, so that nobody hears it twice.
    """
    topology = wiring.topology
    mine = [name for name in dict.fromkeys(named_buses(topology, told)) if topology.buses[name].on == gateway]
    ways = ways_of(_steps(wiring, told.pattern)) if mine else {}
    heard = {name: reached(f"bus {name}", ways) for name in mine}
    chosen, covered = list[str](), set[str]()
    for name in sorted(mine, key=lambda name: -len(heard[name])):
        if f"bus {name}" not in covered:
            chosen.append(name)
            covered |= heard[name]
    return chosen


def _steps(wiring: Wiring, told: Tokens) -> Iterator[tuple[str, str]]:
    """Yield each way that such frames go, from one part to the next."""
    for edge in wiring.links(wiring.best):
        joint = edge.joint
        if joint is None or _enters(joint.spec, joint.side, told):
            yield edge.other, edge.one
        if joint is None or _names(joint.side, told, inward=False):
            yield edge.one, edge.other


def _enters(spec: BridgeSpec, side: Side, told: Tokens) -> bool:
    return _names(side, told, inward=True) or passes(spec, side, told, inward=True)
