"""The part of one gateway, resolved: a record for each part that it runs, and what its process publishes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bus.errors import TopologyError
from bus.machine.lasting import span
from bus.needs import KeyFile, Lasting, Readable
from bus.quantity.known import Quantities
from bus.wire.x509 import Span
from devices.device import DeviceSpec
from topologies.checks.needs import needs_of, needs_of_device
from topologies.model import Gateway, Topology, running
from topologies.names import known
from topologies.quantities import quantities
from topologies.resolved.alarms import ResolvedAlarms, resolved_alarms
from topologies.resolved.bridges import Bridges, ResolvedBridge
from topologies.resolved.brokers import ResolvedBroker, resolved_broker
from topologies.resolved.buses import Buses, ResolvedBus
from topologies.resolved.files import KeyFiles, stamped
from topologies.resolved.ground import Ground
from topologies.wiring.events import EVENTS, LOGS, publishing_buses
from topologies.wiring.ids import bridge_id
from topologies.wiring.rings import ringed
from topologies.wiring.segments import Wiring


@dataclass(frozen=True, slots=True)
class ResolvedDevice:
    """The needs of a device. `gateway` runs it.

    `limits` are `queue_bytes` and `message_bytes` of the buses of its gateway that it joins. `names` are
    those of tokens, for a device that looks into parts. `files` are those that it reads, with stamps.
    """

    name: str
    gateway: str
    spec: DeviceSpec
    limits: tuple[tuple[str, tuple[int, int]], ...]
    names: tuple[str, ...]
    files: KeyFiles


@dataclass(frozen=True, slots=True)
class Resolved:
    """All that a gateway needs of a topology, worked out once. No part looks into the topology itself.

    `copies` are the ids of all bridges in the picture. `names` are all names of tokens, and `listed` those
    of the list and file of names. `quantities` are those of values. `events` and `logs` are the buses on
    which the gateway publishes its own.
    `lasting` has the times of its files of certificates.
    Each part that the gateway runs has a record, by name; `alarms` are those that it judges or hears of.
    `keys` are those of the system, if it signs anything with them.
    """

    topology: Topology
    copies: Mapping[tuple[str, str], str]
    gateway: str
    here: Gateway
    names: tuple[str, ...]
    listed: tuple[str, ...]
    quantities: Quantities
    events: tuple[str, ...]
    logs: tuple[str, ...]
    brokers: Mapping[str, ResolvedBroker]
    buses: Mapping[str, ResolvedBus]
    bridges: Mapping[str, ResolvedBridge]
    devices: Mapping[str, ResolvedDevice]
    lasting: Mapping[str, Span]
    alarms: ResolvedAlarms
    keys: KeyFiles


def resolve(wiring: Wiring, gateway: str) -> Resolved:
    """Work out the needs of a gateway's parts. This reads files, so do it on no event loop.

    Raises `TopologyError` for a gateway that is not there, and for a file of names that cannot be read.
    """
    topology = wiring.topology
    if gateway not in topology.gateways:
        text = f'no gateway "{gateway}" in {topology.name}; it has {", ".join(topology.gateways)}'
        raise TopologyError(text)
    in_list = wiring.listed.names
    ground = Ground(wiring, gateway, ringed(wiring), tuple(known(topology, in_list)))
    buses = Buses(ground)
    return Resolved(
        topology,
        copies(topology),
        gateway,
        ground.here,
        ground.names,
        tuple(in_list),
        Quantities(quantities(topology)),
        tuple(publishing_buses(wiring, gateway, EVENTS)),
        tuple(publishing_buses(wiring, gateway, LOGS)),
        {name: resolved_broker(name, topology) for name in running(topology.brokers, gateway)},
        {name: buses.resolved(name) for name in running(topology.buses, gateway)},
        Bridges(ground).resolved(),
        {name: _device(name, ground) for name in running(topology.devices, gateway)},
        dict(_lasting(wiring, gateway)),
        resolved_alarms(topology, gateway),
        stamped(topology.keys) if _signs(wiring, gateway) else (),
    )


def _signs(wiring: Wiring, gateway: str) -> bool:
    """Return whether a gateway needs the keys of the file."""
    needed = {need.path for _, need in needs_of(wiring, gateway) if isinstance(need, KeyFile)}
    return needed.issuperset(wiring.topology.keys)


def _lasting(wiring: Wiring, gateway: str) -> Iterator[tuple[str, Span]]:
    """Yield the files of certificates that a gateway needs, and their times."""
    for need in dict.fromkeys(need for _, need in needs_of(wiring, gateway) if isinstance(need, Lasting)):
        if (found := span(need.path, need.trusted)) is not None:
            yield need.path, found


def resolve_all(wiring: Wiring) -> list[Resolved]:
    """Return the record of each gateway of a topology. Reads and raises as `resolve` does."""
    return [resolve(wiring, gateway) for gateway in wiring.topology.gateways]


def copies(topology: Topology) -> dict[tuple[str, str], str]:
    """Return the ids of all bridges by their lease and gateway: the bridges of a group have one lease."""
    return {
        (spec.group or name, gateway): bridge_id(name, gateway)
        for name, spec in topology.bridges.items()
        for gateway in spec.on
    }


def _device(name: str, ground: Ground) -> ResolvedDevice:
    spec, near = ground.topology.devices[name], running(ground.topology.buses, ground.gateway)
    limits = tuple((bus, near[bus].limits(near[bus])) for bus in spec.joins if bus in near)
    names = ground.names if spec.inside else ()
    return ResolvedDevice(name, ground.gateway, spec, limits, names, stamped(_files(spec)))


def _files(spec: DeviceSpec) -> Iterator[str]:
    """Yield the files that a device reads."""
    yield from (need.path for need in needs_of_device(spec) if isinstance(need, Readable))
