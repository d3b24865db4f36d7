"""The records of bridges: what each side joins, with policies, keys, ages and its rank, and the candidate."""

import os
import zlib
from dataclasses import dataclass, field, replace

from bridges.front.settings import Front
from bridges.media.medium import Medium
from bridges.policy import Policy
from bridges.protocols.protocol import Protocol
from bus.key_types import Names
from bus.quantity.quantity import Quantity
from bus.schema import settings_of
from bus.transports.options import Tls
from bus.transports.peers import Peer
from topologies.model import BridgeSpec, Listen, Shed, Side
from topologies.quantities import of_side
from topologies.resolved.brokers import CandidateFacts, Candidates
from topologies.resolved.buses import BusAddress
from topologies.resolved.files import KeyFiles, Stamp, certificates, stamped
from topologies.resolved.ground import Ground
from topologies.resolved.policies import policy_of
from topologies.resolved.ranks import Rank, Ranks
from topologies.wiring.events import keeps_of, own_patterns
from topologies.wiring.filters import Tokens
from topologies.wiring.ids import bridge_id
from topologies.wiring.keys import keys_at, keys_of
from topologies.wiring.reach import address_of, bus_at, has_trunk, with_addresses
from topologies.wiring.segments import Joint, Wiring


@dataclass(frozen=True, slots=True)
class ResolvedMedium:
    """The needs of the link of a medium. Names of brokers in `medium` are resolved to addresses.

    `node` is the gateway's node id, None where the medium needs none. `held_s` is for how long a message
    may wait there, 0 for as long as it takes. `mates` is the number of the side, the same at all candidates
    but for its last 8 bits, which are the candidate's place; 0 where nothing stands in. `names` are those
    of tokens, where the medium asks for them. `certificates` are stamps. `protocol` is what the devices
    speak, None for TMQ, and `protocol_files` are stamps of what it reads, by absolute paths. `subjects` are
    those of TMQ on the same wire, which a protocol leaves alone. `quantities` are what is known of the values
    that come in.
    `spoken_beside`: another side reads the frames on a wire of TMQ by a protocol. `label` names the link: its
    place in a plan.
    """

    medium: Medium
    protocol: Protocol | None
    protocol_files: KeyFiles
    shed: Shed | None
    node: int | None
    keys: KeyFiles
    certificates: tuple[tuple[Stamp, ...], ...]
    held_s: float
    mates: int
    names: tuple[str, ...] | None
    subjects: tuple[int, ...]
    quantities: tuple[Quantity, ...]
    spoken_beside: bool
    label: str


@dataclass(frozen=True, slots=True)
class ResolvedJoin:
    """The bus that a side joins. `here`: this gateway runs it; `trunked`: it has a side for trunks.

    `dial` is its address for this gateway otherwise, None if it has none, and `peers` those that may join at
    that. `limits` are `queue_bytes` and `message_bytes` of the bus.
    """

    name: str
    here: bool
    trunked: bool
    limits: tuple[int, int]
    dial: BusAddress | None
    peers: tuple[Peer, ...]


@dataclass(frozen=True, slots=True)
class ResolvedSide:
    """One side of a bridge on one gateway: it leads to `medium` or to `bus`, one of which is None.

    `trunk`: whether envelopes are kept there. `rank`: the order of senders on the wire. `segment`: the name
    of the wire, the same on all gateways that share it. `keeps`: the patterns of what gateways say
    themselves, which must not leave the bridge here. `leads` is the bus of the file that it leads to, by
    its name or its address, "" if it leads to none; `near`: this gateway runs that bus. `policy` are its
    rules, and `front` the settings of its front, None without one: both follow from the others.
    """

    side: Side
    trunk: bool
    rank: Rank
    segment: str
    keeps: tuple[Tokens, ...]
    leads: str
    near: bool
    medium: ResolvedMedium | None
    bus: ResolvedJoin | None
    policy: Policy = field(compare=False)
    front: Front | None = field(compare=False)

    @property
    def away(self) -> str:
        """The bus of the file that it leads to on another gateway, "" if it leads to none."""
        return "" if self.near else self.leads


@dataclass(frozen=True, slots=True)
class ResolvedBridge:
    """The needs of a bridge. `id` is that of this gateway's copy in the picture.

    `on` are the gateways that run it, the best first. `origin` is its origin in envelopes, None for one of
    its own choice. `candidate` is None where nothing stands in for it.
    """

    name: str
    id: str
    on: tuple[str, ...]
    pattern: Names
    origin: int | None
    sides: tuple[ResolvedSide, ...]
    candidate: CandidateFacts | None


class Bridges:
    """The bridges of one gateway: `resolved` makes the record of each."""

    def __init__(self, ground: Ground) -> None:
        self._ground, self._topology = ground, ground.topology
        self._ranks, self._candidates = Ranks(ground.wiring), Candidates(ground)
        self._own = own_patterns(ground.topology)
        self._wires = _wires(ground.wiring)

    def resolved(self) -> dict[str, ResolvedBridge]:
        """Return the record of each bridge that the gateway runs, in the order of the file."""
        joints: dict[str, list[Joint]] = {}
        for joint in self._ground.wiring.joints:
            if joint.gateway == self._ground.gateway:
                joints.setdefault(joint.bridge, []).append(joint)
        return {name: self._bridge(name, mine[0].spec, mine) for name, mine in joints.items()}

    def _bridge(self, name: str, spec: BridgeSpec, joints: list[Joint]) -> ResolvedBridge:
        facts = self._candidates.facts(name)
        sides = tuple(self._side(joint, facts) for joint in joints)
        id, origin = bridge_id(name, self._ground.gateway), self._ground.origin(f"bridge {name}")
        return ResolvedBridge(name, id, spec.on, spec.pattern, origin, sides, facts)

    def _side(self, joint: Joint, facts: CandidateFacts | None) -> ResolvedSide:
        side, keeps = joint.side, keeps_of(joint.spec, joint.side, self._own)
        if side.medium is not None:
            side = replace(side, medium=with_addresses(self._topology, side.medium))
        leads = self._leads_to(side)
        near = leads is not None and self._topology.buses[leads].on == joint.gateway
        rank = self._ranks.of(joint)
        return ResolvedSide(
            side,
            joint.trunk,
            rank,
            joint.wire,
            keeps,
            leads or "",
            near,
            None if side.medium is None else self._medium(joint, side, side.medium, facts),
            None if side.bus is None else self._join(joint, side.bus),
            policy_of(side, joint.trunk, rank, keeps),
            side.front or None,
        )

    def _leads_to(self, side: Side) -> str | None:
        """Return the bus of the file to which a side leads, by its name or its address."""
        if side.medium is None or not side.medium.dials:
            return side.bus
        return bus_at(self._topology, side.medium.dials, self._ground.gateway)

    def _medium(
        self, joint: Joint, side: Side, medium: Medium, facts: CandidateFacts | None
    ) -> ResolvedMedium:
        ground = self._ground
        return ResolvedMedium(
            medium,
            side.speaks,
            () if side.speaks is None else stamped(map(os.path.abspath, side.speaks.files())),
            side.shed,
            ground.here.node if medium.needs_node and side.speaks is None else None,
            stamped(keys_at(self._topology, side, joint.trunk)),
            tuple(certificates(value) for value in settings_of(medium).values() if isinstance(value, Tls)),
            ground.age_s(f"bridge {joint.bridge}", joint.trunk) if medium.signs else 0.0,
            _mates(joint.number, facts) if medium.selective else 0,
            ground.names if medium.named or (side.speaks is not None and side.speaks.named) else None,
            () if side.speaks is None else self._subjects(joint.wire),
            tuple(of_side(side)),
            side.speaks is None and bool(medium.subjects_of_tmq) and self._is_spoken(joint.wire),
            medium.label() if side.speaks is None else f"{medium.label()} {side.speaks.label()}",
        )

    def _is_spoken(self, wire: str) -> bool:
        """Return whether a side of this file on a wire speaks a protocol."""
        return any(side.speaks is not None for side in self._wires[wire])

    def _subjects(self, wire: str) -> tuple[int, ...]:
        """Return the Cyphal subjects of TMQ on a wire."""
        media = (side.medium for side in self._wires[wire] if side.speaks is None)
        return tuple(sorted({number for one in media if one is not None for number in one.subjects_of_tmq}))

    def _join(self, joint: Joint, bus: str) -> ResolvedJoin:
        """Return the bus that a side joins."""
        spec = self._topology.buses[bus]
        found = address_of(self._topology, bus, joint.gateway, joint.trunk)
        dial = None if found is None else self._dial(joint, bus, *found)
        peers = (found[1].peers if found else None) or ()
        return ResolvedJoin(bus, spec.on == joint.gateway, has_trunk(spec), spec.limits(spec), dial, peers)

    def _dial(self, joint: Joint, bus: str, url: str, listen: Listen) -> BusAddress:
        """Return the address at which this gateway dials a bus of another."""
        ground, limits = self._ground, self._topology.buses[bus].limits(listen)
        tls = listen.tls_of(joint.gateway)
        return BusAddress(
            joint.trunk,
            url,
            *limits,
            tls,
            certificates(tls),
            keys=stamped(keys_of(self._topology, listen)),
            age_s=ground.age_s(f"bridge {joint.bridge}", joint.trunk, listen.age_ms),
        )


def _wires(wiring: Wiring) -> dict[str, list[Side]]:
    """Return the sides on each wire."""
    found: dict[str, list[Side]] = {}
    for joint in wiring.joints:
        found.setdefault(joint.wire, []).append(joint.side)
    return found


def _mates(number: int, facts: CandidateFacts | None) -> int:
    """Return the number of a side that candidates share."""
    if facts is None:
        return 0
    return zlib.crc32(f"{facts.origin} {number}".encode()) & ~0xFF | facts.on
