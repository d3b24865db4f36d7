"""Search for bridges on several gateways that cannot stand in for each other as the file says."""

from collections.abc import Iterator

from topologies.findings import Finding, error, warning
from topologies.model import Candidate, Topology, candidates_of
from topologies.segments import Joint, bus_at, edges_of, joints, reachable

Group = tuple[Candidate, ...]


def find_gaps(topology: Topology) -> Iterator[Finding]:
    """Yield errors and warnings about the candidates for each bridge that has several."""
    for group in dict.fromkeys(candidates_of(topology, name) for name in topology.bridges):
        if len(group) > 1:
            mine = [joint for joint in joints(topology) if joint.candidate in group]
            yield from _leaderless(topology, group)
            yield from _one_sided(topology, mine)
            yield from _apart(topology, mine)


def _leaderless(topology: Topology, group: Group) -> Iterator[Finding]:
    """Yield bridges that stand in for each other without a broker that chooses one."""
    if not topology.brokers:
        bridge, gateways = group[0].bridge, ", ".join(candidate.gateway for candidate in group)
        text = f"{gateways} stand in for each other at bridge {bridge}: add a broker to choose one (brokers:)"
        yield error(topology.bridges[bridge].where, text)


def _one_sided(topology: Topology, mine: list[Joint]) -> Iterator[Finding]:
    """Yield candidates that join a bus of another one, which dies with its gateway."""
    gateways = {joint.gateway for joint in mine}
    for joint in mine:
        bus = _bus(topology, joint)
        owner = topology.buses[bus].on if bus else joint.gateway
        if owner != joint.gateway and owner in gateways:
            own = f"bus: {{{owner}: {bus}, {joint.gateway}: ...}}"
            text = f"bus {bus} lives on {owner}: when {owner} dies, {joint.gateway} has nothing to join here"
            yield warning(
                joint.side.where, f"{text}; give it a bus of its own, {own}, and join both by trunks"
            )


def _bus(topology: Topology, joint: Joint) -> str | None:
    """Return the bus of this file that a side joins by its name or its address."""
    medium = joint.side.medium
    if medium is None:
        return joint.side.bus
    return bus_at(topology, medium.dials, joint.gateway) if medium.dials else None


def _apart(topology: Topology, mine: list[Joint]) -> Iterator[Finding]:
    """Yield sides that join different wires on the gateways, if nothing else joins these wires."""
    others = {candidates_of(topology, name)[0] for name in topology.bridges} - {
        joint.candidate for joint in mine
    }
    edges = list(edges_of(topology, others))
    first = {joint.number: joint for joint in reversed(mine)}
    for joint in mine:
        one = first[joint.number]
        if joint.wire not in reachable(edges, one.wire):
            text = f"{one.wire} of {one.gateway} and {joint.wire} of {joint.gateway} are not joined"
            why = "while one gateway forwards, nothing crosses the bridge to and from the other's"
            yield warning(joint.side.where, f"{text}: {why}; join them, as by trunks between buses")
