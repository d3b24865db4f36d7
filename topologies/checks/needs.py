"""The needs of one gateway: what its part of a topology needs of its machine, and where in the file. Pure."""

from collections.abc import Iterator

from bus.needs import (
    Directory,
    KeyFile,
    Need,
    PageToken,
    Readable,
    Room,
    Secret,
    dialling_needs,
    listening_needs,
)
from bus.schema import Where
from devices.device import DeviceSpec
from topologies.model import Topology, running
from topologies.model.status import tcp_url
from topologies.names import file_of
from topologies.wiring.alarms import alarms_at, outlets_at
from topologies.wiring.durable import keepings
from topologies.wiring.keys import keys_at, keys_of
from topologies.wiring.reach import address_of, dials_of, lease_places, peer_urls, with_addresses
from topologies.wiring.segments import Wiring

Placed = tuple[Where, Need]


def needs_of(wiring: Wiring, gateway: str) -> Iterator[Placed]:
    """Yield all needs of a gateway."""
    topology = wiring.topology
    if names := file_of(topology.names):
        yield topology.names.where, Readable(str(names))
    yield from _of_buses(topology, gateway)
    yield from _of_sides(wiring, gateway)
    yield from _of_brokers(wiring, gateway)
    for device in running(topology.devices, gateway).values():
        yield from _of_device(device)
    yield from _of_page(topology, gateway)
    if any(alarms_at(topology, gateway)):
        yield from ((topology.where, KeyFile(path)) for path in topology.keys)
    for _, outlet in outlets_at(topology, gateway):
        yield from ((outlet.where, need) for need in outlet.needs())


def _of_device(device: DeviceSpec) -> Iterator[Placed]:
    for url, where, tls in device.listens():
        yield from ((where, need) for need in listening_needs(url, tls))
    yield from ((device.where, need) for need in device.needs())


def needs_of_device(device: DeviceSpec) -> Iterator[Need]:
    """Yield the needs of a device."""
    return (need for _, need in _of_device(device))


def _of_page(topology: Topology, gateway: str) -> Iterator[Placed]:
    """Yield the needs of a status page. The default port is none: if it is taken, a free one will do."""
    page = topology.gateways[gateway].status
    if page.serve and page.listen is not None:
        yield from ((page.where, need) for need in listening_needs(tcp_url(page.listen), page.tls))
    if page.serve and page.token_file is not None:
        yield from ((page.where, need) for need in (PageToken(page.token_file), Secret(page.token_file)))
    if page.serve and page.ack_file is not None:
        yield from ((page.where, need) for need in (Readable(page.ack_file), Secret(page.ack_file)))


def _of_buses(topology: Topology, gateway: str) -> Iterator[Placed]:
    for name, bus in running(topology.buses, gateway).items():
        for listen in bus.listen:
            yield from ((listen.where, need) for need in listening_needs(listen.url, listen.tls_of(gateway)))
            yield from ((listen.where, KeyFile(path)) for path in keys_of(topology, listen))
        for dial in dials_of(topology, name):
            yield from ((dial.where, need) for need in dialling_needs(dial.url, dial.tls_of(gateway)))
            yield from ((dial.where, KeyFile(path)) for path in keys_of(topology, dial))
        for kept in keepings(topology, name)[:1]:  # a bus has one journal
            yield kept.durable.where, Directory(kept.durable.directory)
            yield kept.durable.where, Room(kept.durable.directory, kept.durable.bytes, "bytes")


def _of_sides(wiring: Wiring, gateway: str) -> Iterator[Placed]:
    topology = wiring.topology
    for joint in wiring.joints:
        side = joint.side
        if joint.gateway != gateway:
            continue
        if side.medium is not None:
            medium = with_addresses(topology, side.medium)
            yield from ((medium.where, need) for need in medium.needs())
            protocol = side.speaks
            yield from ((protocol.where, need) for need in protocol.needs()) if protocol else ()
            yield from ((side.where, KeyFile(path)) for path in keys_at(topology, side, joint.trunk))
        elif side.bus and topology.buses[side.bus].on != gateway:
            found = address_of(topology, side.bus, gateway, joint.trunk)
            needs = dialling_needs(found[0], found[1].tls_of(gateway)) if found else ()
            yield from ((side.where, need) for need in needs)
            keys = keys_of(topology, found[1]) if found else ()
            yield from ((side.where, KeyFile(path)) for path in keys)


def _of_brokers(wiring: Wiring, gateway: str) -> Iterator[Placed]:
    """Yield the needs of brokers, and of candidates, which dial all brokers."""
    topology = wiring.topology
    here = running(topology.brokers, gateway)
    for name, broker in here.items():
        for address in broker.listen:
            yield from (
                (address.where, need) for need in listening_needs(address.url, address.tls_of(gateway))
            )
        for url in peer_urls(topology, name):
            yield from ((broker.where, need) for need in dialling_needs(url, ipv4=True))
    stands = any(len(group) > 1 and gateway in {one.gateway for one in group} for group in wiring.groups)
    if here or stands:
        yield from ((topology.where, KeyFile(path)) for path in topology.keys)
    places = zip(topology.brokers.values(), lease_places(topology), strict=True)
    for broker, (url, address) in places if stands else ():
        yield from ((broker.where, need) for need in dialling_needs(url, address.tls_of(gateway), ipv4=True))
