"""The sides of a bridge on one gateway: where each of them leads, and who sends first there."""

from dataclasses import replace
from typing import NamedTuple

from topologies.model import Listen, Side, Topology, candidates_of
from topologies.wiring.events import kept_in
from topologies.wiring.filters import Tokens
from topologies.wiring.reach import address_of, with_addresses
from topologies.wiring.segments import Joint, edges_of, joints, reachable


class Rank(NamedTuple):
    """The number of appliances that send before this one: `mates` for the same bridge, and `others`."""

    mates: int
    others: int


class Seat(NamedTuple):
    """One side of a bridge on one gateway.

    `trunk`: whether envelopes are kept there. `rank`: the order of senders on the wire. `segment`: the name
    of the wire, the same on all gateways that share it. `dial`: the address of the side's bus for this
    gateway with its options; None if it has none. `keeps`: the patterns of what gateways say
    themselves, which must not leave the bridge here. Names of brokers in `side` are resolved to addresses.
    """

    side: Side
    trunk: bool
    rank: Rank
    segment: str
    dial: tuple[str, Listen] | None
    keeps: tuple[Tokens, ...]


def seats_at(topology: Topology, gateway: str) -> dict[str, list[Seat]]:
    """Return the seats of each bridge of a gateway, in the order of its sides."""
    found: dict[str, list[Seat]] = {}
    for joint in joints(topology):
        if joint.gateway == gateway:
            found.setdefault(joint.bridge, []).append(_seat(topology, joint))
    return found


def _seat(topology: Topology, joint: Joint) -> Seat:
    side, trunk = _addressed(topology, joint.side), joint.trunk
    dial = None if side.bus is None else address_of(topology, side.bus, joint.gateway, trunk)
    shared = trunk and side.medium is not None and side.medium.shared
    rank = _rank(topology, joint) if shared else Rank(0, 0)
    return Seat(side, trunk, rank, joint.wire, dial, kept_in(topology, joint.spec, side))


def _addressed(topology: Topology, side: Side) -> Side:
    return replace(side, medium=with_addresses(topology, side.medium)) if side.medium else side


def _rank(topology: Topology, joint: Joint) -> Rank:
    """Return the rank of a side, by the order of bridges in the file and of candidates for one of them.

    Only bridges that are also connected by another way count: others never send the same frames.
    """
    on_wire = {other.bridge for other in joints(topology) if other.wire == joint.wire}
    beside = on_wire & _connected(topology, joint.wire, joint.bridge)
    mates = candidates_of(topology, joint.bridge)
    ahead = [name for name in topology.bridges if name in beside or name == mates[0].bridge]
    groups = list(dict.fromkeys(candidates_of(topology, name)[0] for name in ahead))
    return Rank(mates.index(joint.candidate), groups.index(mates[0]))


def _connected(topology: Topology, without: str, bridge: str) -> set[str]:
    """Return the bridges that can be reached from `bridge` without the wire `without`."""
    everyone = {joint.candidate for joint in joints(topology)}
    edges = [edge for edge in edges_of(topology, everyone) if without not in (edge.one, edge.other)]
    found = reachable(edges, f"bridge {bridge}")
    return {name.removeprefix("bridge ") for name in found if name.startswith("bridge ")}
