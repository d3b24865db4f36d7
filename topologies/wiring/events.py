"""The frames that gateways publish about themselves: on which buses, and which sides keep them in."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bus import events, logs
from bus.names import ALARM
from bus.wire.notation import pattern_of
from topologies.model import BridgeSpec, Side, Topology
from topologies.wiring.filters import Tokens, begins, one_way, passes
from topologies.wiring.graph import reached, ways_of
from topologies.wiring.segments import Wiring


class Topic(NamedTuple):
    """A kind of message that gateways publish about themselves: its key in the file, and its pattern."""

    key: str
    pattern: Tokens


EVENTS: Final = Topic("events", tuple(events.PATTERN))
LOGS: Final = Topic("logs", tuple(logs.PATTERN))
ALARMS: Final = Topic("alarms", tuple(pattern_of(ALARM)))


def named_buses(topology: Topology, topic: Topic) -> tuple[str, ...]:
    """Return the buses on which the file wants a topic published."""
    if topic is ALARMS:
        return tuple(bus for alarm in topology.alarms.values() for bus in alarm.bus)
    return topology.events if topic is EVENTS else topology.logs


def own_patterns(topology: Topology) -> tuple[Tokens, ...]:
    """Return the patterns of all that gateways and devices say about themselves, or answer."""
    published = [topic.pattern for topic in (EVENTS, LOGS, ALARMS) if named_buses(topology, topic)]
    devices = topology.devices.values()
    return (*published, *dict.fromkeys(tuple(pattern) for one in devices for pattern in one.local()))


def keeps_of(spec: BridgeSpec, side: Side, own: Iterable[Tokens]) -> tuple[Tokens, ...]:
    """Return the patterns of `own` that a side must keep in: they would leave, and no list names them."""
    return tuple(pattern for pattern in own if _would_leave(spec, side, pattern))


def _would_leave(spec: BridgeSpec, side: Side, pattern: Tokens) -> bool:
    return passes(spec, side, pattern, inward=False) and not _names(side, pattern, inward=False)


def _names(side: Side, published: Tokens, inward: bool) -> bool:
    """Return whether a list of the side names the pattern, or a longer one."""
    return any(begins(published, pattern) for pattern in one_way(side.allowed, inward))


def publishing_buses(wiring: Wiring, gateway: str, topic: Topic) -> list[str]:
    """Return the buses on which a gateway publishes a topic: of those that the file names, its own.

    Of buses that hear each other, only the first is used, so that nobody hears a message twice.
    """
    topology = wiring.topology
    mine = [
        name for name in dict.fromkeys(named_buses(topology, topic)) if topology.buses[name].on == gateway
    ]
    ways = ways_of(_steps(wiring, topic.pattern)) if mine else {}
    heard = {name: reached(f"bus {name}", ways) for name in mine}
    chosen, covered = list[str](), set[str]()
    for name in sorted(mine, key=lambda name: -len(heard[name])):
        if f"bus {name}" not in covered:
            chosen.append(name)
            covered |= heard[name]
    return chosen


def unheard(wiring: Wiring, buses: Sequence[str], topic: Topic) -> list[str]:
    """Return those of some buses that do not hear a topic from the first one, or are not heard there."""
    ways = ways_of(_steps(wiring, topic.pattern))
    heard = reached(f"bus {buses[0]}", ways)
    return [
        bus
        for bus in buses[1:]
        if f"bus {bus}" not in heard or f"bus {buses[0]}" not in reached(f"bus {bus}", ways)
    ]


def _steps(wiring: Wiring, published: Tokens) -> Iterator[tuple[str, str]]:
    """Yield each step of frames with these tokens, from one part to the next.

    A side that gives them other names is no way: nobody behind it looks for those.
    """
    for edge in wiring.links(wiring.best):
        joint = edge.joint
        if joint is not None and _renames(joint.side, published):
            continue
        if joint is None or _enters(joint.spec, joint.side, published):
            yield edge.other, edge.one
        if joint is None or _names(joint.side, published, inward=False):
            yield edge.one, edge.other


def _renames(side: Side, published: Tokens) -> bool:
    turns = side.renaming.entering(published), side.renaming.leaving(published)
    return any(turn is None or turn.of(published) != published for turn in turns)


def _enters(spec: BridgeSpec, side: Side, published: Tokens) -> bool:
    return _names(side, published, inward=True) or passes(spec, side, published, inward=True)
