"""Search for bridges on several gateways that cannot stand in for each other as the file says."""

from collections import defaultdict
from collections.abc import Iterator

from bus.text import nearest
from bus.wire.notation import text_of
from topologies.findings import Finding, error, warning
from topologies.model import BridgeSpec, Candidate, Side, Topology
from topologies.wiring.filters import tokens
from topologies.wiring.graph import Ways, both_ways, reached, ways_of
from topologies.wiring.reach import brokers_of, bus_at
from topologies.wiring.segments import Joint, Wiring

Group = tuple[Candidate, ...]


def find_gaps(wiring: Wiring) -> Iterator[Finding]:
    """Yield errors and warnings about the candidates for each bridge that has several."""
    topology = wiring.topology
    yield from _misnamed(wiring)
    yield from _parallel_to_nobody(wiring)
    sides = defaultdict[Group, list[Joint]](list)
    for joint in wiring.joints:
        sides[wiring.candidates[joint.bridge]].append(joint)
    ways = ways_of(both_ways(edge[:2] for edge in wiring.links(wiring.best)))
    for group, mine in sides.items():
        if len(group) > 1:
            yield from _leaderless(topology, group)
            yield from _unlike(topology, group)
            yield from _not_parallel(mine)
            yield from _one_sided(topology, mine)
            yield from _brokers_of_one(topology, mine)
            yield from _renamed_apart(mine)
            yield from _apart(ways, mine)


def _leaderless(topology: Topology, group: Group) -> Iterator[Finding]:
    """Yield bridges that stand in for each other without a broker that chooses one."""
    if not topology.brokers and not topology.bridges[group[0].bridge].is_parallel:
        bridge, gateways = group[0].bridge, ", ".join(candidate.gateway for candidate in group)
        text = f"{gateways} stand in for each other at bridge {bridge}: add a broker to choose one (brokers:)"
        yield error(topology.bridges[bridge].where, text)


def _misnamed(wiring: Wiring) -> Iterator[Finding]:
    """Yield groups that have the name of a bridge outside of the group, and groups with one candidate."""
    topology = wiring.topology
    for name, spec in topology.bridges.items():
        namesake = topology.bridges.get(spec.group) if spec.group else None
        if namesake and namesake.group != spec.group:
            text = f"group {spec.group} of bridge {name} is also the name of a bridge that is not in it"
            yield error(spec.where, f"{text}: choose another name for the group")
        if spec.group and len(wiring.candidates[name]) == 1:
            others = {one.group for one in topology.bridges.values() if one.group} - {spec.group}
            text = f"bridge {name} is alone in group {spec.group}, and nothing stands in for it"
            yield warning(spec.where, f"{text}{nearest(spec.group, others)}")


def _parallel_to_nobody(wiring: Wiring) -> Iterator[Finding]:
    """Yield bridges with `failover: parallel` that one gateway runs alone."""
    for name, spec in wiring.topology.bridges.items():
        if spec.is_parallel and len(wiring.candidates[name]) == 1:
            text = f"only {spec.on[0]} runs bridge {name}, so failover: parallel changes nothing"
            yield error(spec.where, f"{text}: name several gateways in on, or take it out")


def _unlike(topology: Topology, group: Group) -> Iterator[Finding]:
    """Yield bridges of a group that differ from the first in what must be alike, and gateways with two."""
    owners: dict[str, str] = {}
    for bridge, gateway in group:
        if owners.setdefault(gateway, bridge) != bridge:
            text = f"gateway {gateway} runs bridge {owners[gateway]} of the same group already"
            yield error(topology.bridges[bridge].where, f"{text}: it cannot stand in for itself")
    one = topology.bridges[group[0].bridge]
    for name in dict.fromkeys(candidate.bridge for candidate in group[1:]):
        spec, first = topology.bridges[name], f"bridge {group[0].bridge} of the same group"
        if spec.failover != one.failover:
            text = f"its failover is {spec.failover}, that of {first} is {one.failover}"
            yield error(spec.where, f"{text}: one rule is for the whole group")
        if tokens(spec.pattern) != tokens(one.pattern):
            text = f"its pattern is {text_of(spec.pattern)}, that of {first} is {text_of(one.pattern)}"
            yield error(spec.where, f"{text}: one lease is for one pattern")
        if len(spec.join) != len(one.join):
            text = f"it joins {len(spec.join)} sides, {first} joins {len(one.join)}"
            yield error(spec.where, f"{text}: sides stand in for each other in their order")
        yield from _crossed(spec, one, first)


def _not_parallel(mine: list[Joint]) -> Iterator[Finding]:
    """Yield sides that ask, and on which receivers cannot know copies, where all gateways forward."""
    for joint in mine:
        name, medium = f"{joint.side.kind} of {joint.gateway}", joint.side.medium
        if joint.spec.is_parallel and not joint.trunk:
            text = f"{name} carries no envelopes, so receivers know no copies"
            yield error(joint.side.where, f"{text}: make it a trunk, or write failover: leased")
        elif joint.spec.is_parallel and medium is not None and medium.asks:
            text = f"{name} asks its devices, which know one gateway at a time"
            yield error(joint.side.where, f"{text}: write failover: leased")


def _crossed(spec: BridgeSpec, one: BridgeSpec, first: str) -> Iterator[Finding]:
    """Yield sides of another kind than those in their place in the first bridge of the group."""
    for number, (side, its) in enumerate(zip(spec.at(spec.on[0]), one.at(one.on[0]), strict=False)):
        if _kind(side) != _kind(its) and (side.segment is None or side.segment != its.segment):
            text = f"side {number + 1} is {side.kind}, in {first} it is {its.kind}"
            yield error(side.where, f"{text}: sides stand in for each other in their order")


def _kind(side: Side) -> str:
    """Return the kind of a side; a bus by its address is a bus."""
    return "bus" if side.medium is None or side.medium.dials else side.medium.key


def _one_sided(topology: Topology, mine: list[Joint]) -> Iterator[Finding]:
    """Yield candidates that join a bus of another one, which dies with its gateway."""
    gateways = {joint.gateway for joint in mine}
    for joint in mine:
        bus = _bus(topology, joint)
        owner = topology.buses[bus].on if bus else joint.gateway
        if owner != joint.gateway and owner in gateways:
            own = f"bus: {{{owner}: {bus}, {joint.gateway}: ...}}" if owner in joint.spec.on else "bus: ..."
            text = f"bus {bus} lives on {owner}: when {owner} dies, {joint.gateway} has nothing to join here"
            yield warning(
                joint.side.where, f"{text}; give it a bus of its own, {own}, and join both by trunks"
            )


def _brokers_of_one(topology: Topology, mine: list[Joint]) -> Iterator[Finding]:
    """Yield candidates with a side whose brokers all die with another one."""
    gateways = {joint.gateway for joint in mine}
    for joint in mine:
        names = brokers_of(topology, joint.side.medium) if joint.side.medium else ()
        owners = {topology.brokers[name].on if name in topology.brokers else "" for name in names}
        owner = owners.pop() if len(owners) == 1 else ""
        if owner in gateways - {joint.gateway}:
            text = f"when {owner} dies, {joint.gateway} has no broker here, and cannot stand in"
            yield warning(joint.side.where, f"{', '.join(names)} on {owner}: {text}; name one elsewhere too")


def _renamed_apart(mine: list[Joint]) -> Iterator[Finding]:
    """Yield sides that call the frames of one wire otherwise than another candidate does."""
    first: dict[tuple[int, str], Joint] = {}
    for joint in mine:
        one = first.setdefault((joint.number, joint.wire), joint)
        if joint.side.renaming != one.side.renaming or joint.side.opaque != one.side.opaque:
            text = f"{joint.wire} has other names on {joint.gateway} than on {one.gateway}"
            why = "a standby would not know what the other has sent, and send it again"
            yield error(
                joint.side.where, f"{text}: {why}; give both the same prefix, strip, rename and opaque"
            )


def _bus(topology: Topology, joint: Joint) -> str | None:
    """Return the bus of this file that a side joins by its name or its address."""
    medium = joint.side.medium
    if medium is None:
        return joint.side.bus
    return bus_at(topology, medium.dials, joint.gateway) if medium.dials else None


def _apart(ways: Ways, mine: list[Joint]) -> Iterator[Finding]:
    """Yield sides that join different wires on the gateways, if nothing else joins these wires.

    `ways` are those between parts and wires while the best candidates forward.
    """
    own = {f"bridge {joint.bridge}" for joint in mine}
    first = {joint.number: joint for joint in reversed(mine)}
    near = {number: reached(one.wire, ways, own) for number, one in first.items()}
    for joint in mine:
        one = first[joint.number]
        if joint.wire not in near[joint.number]:
            text = f"{one.wire} of {one.gateway} and {joint.wire} of {joint.gateway} are not joined"
            why = "while one gateway forwards, nothing crosses the bridge to and from the other's"
            yield warning(joint.side.where, f"{text}: {why}; join them, as by trunks between buses")
