"""Search for messages that cannot cross: a pattern keeps out all but frames, a limit long messages."""

from collections.abc import Iterator

from topologies.findings import Finding, note, warning
from topologies.model import Topology
from topologies.wiring.filters import is_bus, takes_frames_only
from topologies.wiring.reach import dials_of, listen_at

_FRAMES_ONLY = "only TMQ frames cross here: messages that are no frames match no pattern"


def find_frames_only(topology: Topology) -> Iterator[Finding]:
    """Yield notes on bridges between buses, and their sides, that carry frames only."""
    for spec in topology.bridges.values():
        sides = [side for side in spec.at(spec.on[0]) if is_bus(side)]
        if len(sides) < 2:
            continue
        bare = [side for side in sides if side.opaque is None]  # the others make frames of such messages
        if takes_frames_only(spec) and len(bare) == len(sides):
            yield note(spec.where, _FRAMES_ONLY)
            continue
        framed = [side for side in bare if takes_frames_only(spec) or takes_frames_only(side)]
        yield from (note(side.where, _FRAMES_ONLY) for side in framed)


def find_unequal_limits(topology: Topology) -> Iterator[Finding]:
    """Yield buses that dial each other and accept messages of different lengths."""
    for name, bus in topology.buses.items():
        for dial in dials_of(topology, name):
            if found := listen_at(topology, dial.url, bus.on):
                ours, theirs = bus.limits(dial)[1], topology.buses[found[0]].limits(found[1])[1]
                if ours != theirs:
                    text = f"messages may have {ours} bytes here and {theirs} on bus {found[0]}"
                    yield warning(dial.where, f"{text}: a longer one ends the connection")
