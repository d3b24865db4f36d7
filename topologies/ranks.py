"""The order in which appliances on a shared wire send: all but the first hold frames back."""

from typing import NamedTuple

from topologies.model import Topology
from topologies.segments import Joint, Segments, bus_at, is_trunk, joints


class Rank(NamedTuple):
    """How many are ahead of us: stand-ins for the same bridge, and other bridges by another way round."""

    mates: int
    others: int


def rank_of(topology: Topology, joint: Joint) -> Rank:
    """The order is that of the file, and of `on`. A bridge that no other way leads to sends nothing twice."""
    medium = joint.side.medium
    if medium is None or not medium.shared or not is_trunk(topology, joint.side):
        return Rank(0, 0)
    segments = Segments(topology)
    wire = segments.of(joint)
    on_wire = {j.bridge for j in joints(topology) if segments.of(j) == wire}
    connected = _connected(topology, segments, wire, joint.bridge)
    names = list(topology.bridges)
    ahead = [name for name in names[: names.index(joint.bridge)] if name in on_wire and name in connected]
    return Rank(joint.spec.on.index(joint.gateway), len(ahead))


def _connected(topology: Topology, segments: Segments, without: str, bridge: str) -> set[str]:
    """The bridges that are reached from one without using a wire."""
    edges = [(f"bridge {j.bridge}", segments.of(j)) for j in joints(topology)]
    for name, bus in topology.buses.items():
        targets = [bus_at(topology, dial.url, bus.on) or dial.url for dial in bus.dial]
        edges += [(f"bus {name}", f"bus {target}") for target in targets]
    found, grown = {f"bridge {bridge}"}, True
    while grown:
        near = {end for edge in edges if without not in edge and found & set(edge) for end in edge}
        grown = not near <= found
        found |= near
    return {name.removeprefix("bridge ") for name in found if name.startswith("bridge ")}
