"""Search for addresses that cannot be used where they stand: to listen on, or to reach a bus or a broker."""

from collections.abc import Iterator

from bus.urls import is_loopback, plain_host, split_url
from topologies.checks.exclusive import Use, uses
from topologies.findings import Finding, error, warning
from topologies.model import BrokerSpec, Topology
from topologies.wiring.reach import (
    address_of,
    broker_url,
    brokers_of,
    has_trunk,
    lease_places,
    listen_at,
    machine,
    peer_urls,
)
from topologies.wiring.segments import Wiring


def find_misplaced(wiring: Wiring) -> Iterator[Finding]:
    """Yield the errors of addresses, and warnings where only one end of a link is a trunk."""
    yield from _strangers(wiring)
    yield from _unreachable(wiring)
    yield from _unreachable_brokers(wiring)
    yield from _near(wiring)
    yield from _dials(wiring)


def _strangers(wiring: Wiring) -> Iterator[Finding]:
    """Yield listeners at an address that another gateway has."""
    topology = wiring.topology
    owners = dict[str, str]()
    for name, gateway in topology.gateways.items():
        owners.setdefault(plain_host(gateway.address), name)
    for use in uses(wiring):
        other = owners.get(plain_host(use.host))
        if other and not _has(topology, use, other):
            text = f"{use.host} is the address of gateway {other}; {use.owner} cannot listen there"
            yield error(use.where, f"{text} on {use.gateway}")


def _has(topology: Topology, use: Use, other: str) -> bool:
    """Return whether the gateway of a use has the address of `other`, because both are one machine."""
    return machine(topology, use.gateway) == machine(topology, other)


def _unreachable(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides whose bus has no address for them."""
    topology = wiring.topology
    for joint in wiring.joints:
        bus, trunk = joint.side.bus, joint.trunk
        if bus is None:
            continue
        if topology.buses[bus].on == joint.gateway:
            if trunk and not has_trunk(topology.buses[bus]):
                yield error(joint.side.where, f"bus {bus} is no trunk: give one of its addresses trunk: true")
        elif address_of(topology, bus, joint.gateway, trunk) is None:
            kind = "trunk address" if trunk else "address without trunk"
            yield error(joint.side.where, f"bus {bus} has no {kind} that gateway {joint.gateway} can dial")


def _unreachable_brokers(wiring: Wiring) -> Iterator[Finding]:
    """Yield brokers that a gateway of another machine cannot dial, and has to."""
    topology = wiring.topology
    yield from _secured(wiring)
    far = _diallers(wiring)
    for (name, spec), (leasing, _) in zip(topology.brokers.items(), lease_places(topology), strict=True):
        for url in dict.fromkeys(filter(None, (broker_url(topology, spec), leasing))):
            yield from _unreachable_broker(
                name, spec, url, [one for one, *what in far if what == [name, url]]
            )


def _unreachable_broker(name: str, spec: BrokerSpec, url: str, far: list[str]) -> Iterator[Finding]:
    place, host = spec.listen[0].where, split_url(url).host
    if ":" in host:
        text = f"broker {name} is at {host}, but TMQ knows only IPv4 addresses and names"
        yield error(place, f"{text}: listen on an IPv4 address, or give gateway {spec.on} one")
    elif far and any(one.url == url and is_loopback(host) for one in spec.listen):
        yield error(place, f"broker {name} listens on {host}, which {', '.join(far)} cannot reach")


def _secured(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides that name a broker which has TLS at all its addresses."""
    topology = wiring.topology
    for joint in wiring.joints:
        for name in brokers_of(topology, joint.side.medium) if joint.side.medium else ():
            spec = topology.brokers.get(name)
            if spec is not None and broker_url(topology, spec) is None:
                text = f"broker {name} has TLS at all its addresses, and its clients know none"
                yield error(joint.side.where, f"{text}: give it one with tcp://, as on 127.0.0.1")


def _near(wiring: Wiring) -> Iterator[Finding]:
    """Yield gateways that others dial although their address leads every machine to itself."""
    topology = wiring.topology
    far = dict[str, list[str]]()
    for gateway, owner in _dialled(wiring):
        if is_loopback(topology.gateways[owner].address):
            far.setdefault(owner, []).append(gateway)
    for owner, gateways in far.items():
        near = topology.gateways[owner]
        text = f"{', '.join(gateways)} cannot reach {owner} at {near.address}"
        yield warning(near.where, f"{text}: give {owner} the address of its machine")


def _dialled(wiring: Wiring) -> list[tuple[str, str]]:
    """Return each gateway with each gateway of another machine that it dials for a bus or a broker."""
    topology = wiring.topology
    pairs = [(joint.gateway, topology.buses[joint.side.bus].on) for joint in wiring.joints if joint.side.bus]
    far = [pair for pair in pairs if machine(topology, pair[0]) != machine(topology, pair[1])]
    far += [(gateway, topology.brokers[broker].on) for gateway, broker, _ in _diallers(wiring)]
    return list(dict.fromkeys(far))


def _diallers(wiring: Wiring) -> list[tuple[str, str, str]]:
    """Return each gateway with each broker of another machine that it dials, and the address.

    Those with a candidate, or with a broker, dial all of them; those with a side that dials brokers, these.
    """
    topology = wiring.topology
    brokers = topology.brokers
    plain = {name: broker_url(topology, spec) for name, spec in brokers.items()}
    leasing = dict(zip(brokers, (url for url, _ in lease_places(topology)), strict=True))
    standing = [one.gateway for group in wiring.groups if len(group) > 1 for one in group]
    dials = [(gateway, name, leasing[name]) for gateway in standing for name in brokers]
    for owner, spec in brokers.items():
        shared = peer_urls(topology, owner)
        dials += [(spec.on, name, url) for name, url in plain.items() if url in shared and name != owner]
    for joint in wiring.joints:
        named = brokers_of(topology, joint.side.medium) if joint.side.medium else ()
        dials += [(joint.gateway, name, url) for name in named if (url := plain.get(name))]
    far = [one for one in dials if machine(topology, one[0]) != machine(topology, brokers[one[1]].on)]
    return list(dict.fromkeys(far))


def _dials(wiring: Wiring) -> Iterator[Finding]:
    """Yield addresses of buses that dial to no effect, or to an end that is a trunk while theirs is not."""
    topology = wiring.topology
    dials = [
        (bus.on, dial.url, dial.trunk, dial.where) for bus in topology.buses.values() for dial in bus.dial
    ]
    dials += [
        (joint.gateway, joint.side.medium.dials, joint.trunk, joint.side.where)
        for joint in wiring.joints
        if joint.side.medium is not None and joint.side.medium.dials
    ]
    for gateway, url, trunk, place in dials:
        found = listen_at(topology, url, gateway)
        if found is None and split_url(url).scheme == "inproc":
            yield error(place, f"no bus of {gateway} listens at {url}, which only its own process can reach")
        elif found is not None and found[1].trunk != trunk:
            here, there = ("a trunk here", "plain") if trunk else ("plain here", "a trunk")
            yield warning(
                place, f"{url} is {here} and {there} at bus {found[0]}: make both ends trunk or none"
            )
