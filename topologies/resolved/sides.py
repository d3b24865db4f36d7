"""The sides of a bridge on one gateway: where each of them leads, and who sends first there."""

from dataclasses import replace
from typing import NamedTuple

from topologies.model import Listen, Side, Topology
from topologies.resolved.ranks import Rank, Ranks
from topologies.wiring.events import kept_in
from topologies.wiring.filters import Tokens
from topologies.wiring.reach import address_of, with_addresses
from topologies.wiring.segments import Joint, Wiring


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


def seats_at(wiring: Wiring, gateway: str) -> dict[str, list[Seat]]:
    """Return the seats of each bridge of a gateway, in the order of its sides."""
    found: dict[str, list[Seat]] = {}
    ranks = Ranks(wiring)
    for joint in wiring.joints:
        if joint.gateway == gateway:
            found.setdefault(joint.bridge, []).append(_seat(wiring.topology, joint, ranks))
    return found


def _seat(topology: Topology, joint: Joint, ranks: Ranks) -> Seat:
    side, trunk = _addressed(topology, joint.side), joint.trunk
    dial = None if side.bus is None else address_of(topology, side.bus, joint.gateway, trunk)
    return Seat(side, trunk, ranks.of(joint), joint.wire, dial, kept_in(topology, joint.spec, side))


def _addressed(topology: Topology, side: Side) -> Side:
    return replace(side, medium=with_addresses(topology, side.medium)) if side.medium else side
