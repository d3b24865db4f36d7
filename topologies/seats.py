"""The sides of one bridge as one gateway makes them: a topology's answers, found once for each."""

from typing import NamedTuple

from topologies.model import Listen, Side, Topology
from topologies.ranks import Rank, rank_of
from topologies.segments import Joint, Segments, address_of, is_trunk


class Seat(NamedTuple):
    """One side of a bridge on one gateway.

    `trunk`: whether envelopes are kept there. `rank`: who sends first on the wire. `segment`: the name of the
    wire, the same on all gateways that share it. `dial`: the address of the side's bus, if it has one for
    this gateway, and the options that go with it.
    """

    side: Side
    trunk: bool
    rank: Rank
    segment: str
    dial: tuple[str, Listen] | None


def seats_of(topology: Topology, bridge: str, gateway: str) -> list[Seat]:
    """Return the seats of a bridge, in the order of its sides."""
    spec, segments = topology.bridges[bridge], Segments(topology)
    return [_seat(topology, Joint(bridge, spec, side, gateway), segments) for side in spec.join]


def _seat(topology: Topology, joint: Joint, segments: Segments) -> Seat:
    side, trunk = joint.side, is_trunk(topology, joint.side)
    dial = None if side.bus is None else address_of(topology, side.bus, joint.gateway, trunk)
    return Seat(side, trunk, rank_of(topology, joint), segments.of(joint), dial)
