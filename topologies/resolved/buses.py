"""The records of buses: each of their addresses, with limits, keys and ages, and where it leads."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bridges.durable.settings import Durable
from bus.key_types import Patterns
from bus.transports.options import Tls
from bus.transports.peers import Peer
from topologies.model import Address, BusSpec, Dial, Listen
from topologies.resolved.files import KeyFiles, Stamp, certificates, stamped
from topologies.resolved.ground import Ground
from topologies.wiring.durable import Keeping, Mode, keepings
from topologies.wiring.graph import both_ways, reached, ways_of
from topologies.wiring.ids import link_between
from topologies.wiring.keys import keys_of
from topologies.wiring.reach import dials_of, has_trunk, listen_at
from topologies.wiring.segments import Wiring


@dataclass(frozen=True, slots=True)
class Journaled:
    """The journal of a bus: its settings, and the gateways for which it is kept."""

    durable: Durable
    gateways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BusAddress:
    """An address of a bus with everything that a link there needs; `address` is its URL.

    `peers` may join there, None for everybody. `age_s` is that of `StreamOptions`. The stamps in
    `certificates` and `keys` differ once a file has been renewed. What matches `kept` goes into the `journal`
    of the bus for the gateways of `keeps_for`; a peer there that says no hello is `plain`, or gets nothing.
    """

    trunk: bool
    address: str
    queue_bytes: int
    message_bytes: int
    tls: Tls | None = None
    certificates: tuple[Stamp, ...] = ()
    origins: tuple[str, ...] = ()
    keys: KeyFiles = ()
    peers: tuple[Peer, ...] | None = None
    age_s: float = 0.0
    keeps_for: tuple[str, ...] = ()
    kept: Patterns = ()
    plain: bool = False
    journal: "Journaled | None" = None


@dataclass(frozen=True, slots=True)
class BusEnd:
    """A link of a bus. `place` is its mode and URL.

    `bus` is the bus of the file that it dials, "" for none; `far` is the `place` of the link that it dials.
    `beacon`: it announces itself on the LAN. `last_values`: newcomers are greeted with these there.
    """

    place: str
    mode: Mode
    at: BusAddress
    bus: str = ""
    far: str = ""
    beacon: bool = False
    last_values: bool = False


@dataclass(frozen=True, slots=True)
class BusLine:
    """A line in the picture from a bus to another: its id, and the `place` of the bus's own link there."""

    edge: str
    place: str


@dataclass(frozen=True, slots=True)
class ResolvedBus:
    """The needs of a bus.

    `system` is the name of the topology. `trunked`: whether the bus has a trunk, and so a side for each
    kind of peer. `origin` is its origin in envelopes, None for one of its own choice. `limits` are
    `queue_bytes` and `message_bytes`. `joined` are its lines to other buses, and `trunks` the buses that
    hear what it hears. `journal` is kept for its durable trunks, None without any.
    """

    name: str
    system: str
    spec: BusSpec
    trunked: bool
    origin: int | None
    limits: tuple[int, int]
    links: tuple[BusEnd, ...]
    joined: tuple[BusLine, ...]
    trunks: tuple[str, ...]
    journal: Journaled | None = None


class Buses:
    """The links of all buses of a topology to each other, found once; `resolved` makes the record of one."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._joined = _joined(ground.wiring)
        self._ways = ways_of(both_ways(edge[:2] for edge in ground.wiring.links(()) if _is_known(edge.other)))

    def resolved(self, name: str) -> ResolvedBus:
        """Return the record of a bus."""
        ground, title = self._ground, f"bus {name}"
        spec = ground.topology.buses[name]
        return ResolvedBus(
            name,
            ground.topology.name,
            spec,
            has_trunk(spec),
            ground.origin(title),
            spec.limits(spec),
            tuple(self._ends(name, spec)),
            tuple(self._joined.get(name, ())),
            tuple(sorted(reached(title, self._ways) - {title})),
            _journal(keepings(ground.topology, name)),
        )

    def _ends(self, name: str, spec: BusSpec) -> Iterator[BusEnd]:
        topology = self._ground.topology
        all_kept = keepings(topology, name)
        kept = {place_of(one.mode, one.address): one for one in all_kept}
        journal = _journal(all_kept)
        for listen in spec.listen:
            place, said = place_of("listen", listen), (listen.beacon, listen.last_values)
            at = self._at(name, spec, listen, kept.get(place), journal)
            yield BusEnd(place, "listen", at, "", "", *said)
        for dial in dials_of(topology, name):
            found = listen_at(topology, dial.url, spec.on)
            bus, far = ("", "") if found is None else (found[0], place_of("listen", found[1]))
            place = place_of("dial", dial)
            yield BusEnd(place, "dial", self._at(name, spec, dial, kept.get(place), journal), bus, far)

    def _at(
        self, name: str, spec: BusSpec, address: Address, kept: Keeping | None, journal: Journaled | None
    ) -> BusAddress:
        """Return one of the bus's own addresses."""
        tls = address.tls_of(spec.on)
        origins, peers = (address.origins, address.peers) if isinstance(address, Listen) else ((), None)
        return BusAddress(
            address.trunk,
            address.url,
            *spec.limits(address),
            tls,
            certificates(tls),
            origins,
            stamped(keys_of(self._ground.topology, address)),
            peers,
            self._ground.age_s(f"bus {name}", address.trunk, address.age_ms),
            () if kept is None else kept.gateways,
            () if kept is None else kept.durable.pattern,
            kept is not None and kept.durable.plain,
            journal if address.trunk else None,
        )


def _journal(kept: list[Keeping]) -> Journaled | None:
    gateways = tuple(dict.fromkeys(gateway for one in kept for gateway in one.gateways))
    return Journaled(kept[0].durable, gateways) if kept else None


def place_of(mode: Mode, address: Address) -> str:
    """Return the name of a link in a plan: its mode and its URL."""
    return f"{mode} {address.url}"


def _is_known(node: str) -> bool:
    return node.startswith("bus ")


def _joined(wiring: Wiring) -> Mapping[str, list[BusLine]]:
    """Return the lines between each bus and others, by the name of the bus."""
    found = defaultdict[str, list[BusLine]](list)
    for one, spec in wiring.topology.buses.items():
        for dial in dials_of(wiring.topology, one):
            _join(found, one, dial, listen_at(wiring.topology, dial.url, spec.on))
    return found


def _join(found: dict[str, list[BusLine]], one: str, dial: Dial, at: tuple[str, Listen] | None) -> None:
    edge = link_between(f"bus {one}", f"url {dial.url}" if at is None else f"bus {at[0]}")
    found[one].append(BusLine(edge, place_of("dial", dial)))
    if at is not None and at[0] != one:
        found[at[0]].append(BusLine(edge, place_of("listen", at[1])))
