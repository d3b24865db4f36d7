"""Search for the bus or broker that an address leads to, and for the addresses of buses and brokers."""

from dataclasses import replace
from typing import Any

from bridges.durable.settings import Durable
from bridges.media.medium import Medium
from bus.urls import (
    HOSTED,
    URL_CHARACTERS_MAX,
    Url,
    is_loopback,
    is_wildcard,
    overlap,
    plain_host,
    split_url,
    with_host,
)
from topologies.model import BrokerAddress, BrokerSpec, BusSpec, Dial, Listen, Topology


def machine(topology: Topology, gateway: str) -> str:
    """Return a name for the machine of a gateway. All gateways with loopback addresses share one machine."""
    address = topology.gateways[gateway].address
    return "this machine" if is_loopback(address) else address


def has_trunk(bus: BusSpec) -> bool:
    """Return whether a bus listens at or dials an address that keeps envelopes."""
    return bool(bus.trunks) or any(end.trunk for end in (*bus.listen, *bus.dial))


def trunks_of(topology: Topology, bus: str) -> dict[str, Dial | None]:
    """Return the buses that `bus` dials because `trunks` joins them, each with its address; None without one.

    If two buses name each other, the first in the file that can dial the other does.
    """
    spec, names = topology.buses[bus], list(topology.buses)
    found = {}
    for trunk in spec.trunks:
        other, theirs = trunk.bus, topology.buses[trunk.bus].trunks
        back = any(one.bus == bus for one in theirs) and _trunk_to(topology, other, bus)
        dial = _trunk_to(topology, bus, other, trunk.durable)
        if bus == other or not back or (dial and names.index(bus) < names.index(other)):
            found[other] = dial
    return found


def _trunk_to(topology: Topology, bus: str, other: str, durable: Durable | None = None) -> Dial | None:
    spec = topology.buses[bus]
    found = address_of(topology, other, spec.on, trunk=True)
    if not found:
        return None
    tls, keys = found[1].tls, found[1].keys
    return Dial(url=found[0], trunk=True, tls=tls, keys=keys, durable=durable, where=spec.where)


def dials_of(topology: Topology, bus: str) -> tuple[Dial, ...]:
    """Return all addresses that a bus dials, with those of its trunks."""
    return *topology.buses[bus].dial, *filter(None, trunks_of(topology, bus).values())


def address_of(topology: Topology, bus: str, gateway: str, trunk: bool) -> tuple[str, Listen] | None:
    """Return the first address, trunk or not, at which `gateway` reaches `bus`, with its options; or None."""
    for listen in topology.buses[bus].listen:
        if listen.trunk == trunk and (address := _from(topology, listen, topology.buses[bus].on, gateway)):
            return address, listen
    return None


def _from(topology: Topology, listen: Listen, owner: str, gateway: str) -> str | None:
    url = split_url(listen.url)
    near = machine(topology, owner) == machine(topology, gateway)
    if url.scheme not in HOSTED:
        return listen.url if near and url.scheme == "ipc" else None
    if url.port == 0 or (is_loopback(url.host) and not near):
        return None
    address = _for_all(topology, listen.url, owner)
    return address if len(address) <= URL_CHARACTERS_MAX else None


def brokers_of(topology: Topology, medium: Medium) -> tuple[str, ...]:
    """Return the brokers that a medium dials, by name or address as in the file, the best first.

    Clients know no TLS, so by default it dials those that have an address without.
    """
    if medium.tmq_brokers is not None:
        return medium.tmq_brokers
    return tuple(name for name, spec in topology.brokers.items() if broker_url(topology, spec))


def with_addresses(topology: Topology, medium: Medium) -> Medium:
    """Return a medium with addresses in place of the names of brokers."""
    brokers, known = brokers_of(topology, medium), topology.brokers
    urls = tuple(filter(None, (broker_url(topology, known[one]) if one in known else one for one in brokers)))
    values: dict[str, Any] = {"brokers": urls}  # a field of those media that dial brokers
    return replace(medium, **values) if brokers else medium


def broker_at(topology: Topology, text: str, gateway: str) -> str | None:
    """Return the broker in this file that `gateway` would reach at the address `text`; None if none is."""
    url = split_url(text)
    for name, spec in topology.brokers.items():
        if any(_leads(topology, url, gateway, split_url(one.url), spec.on) for one in spec.listen):
            return name
    return None


def lease_places(topology: Topology) -> list[tuple[str, BrokerAddress]]:
    """Return where bridges dial each broker for their leases, with that address, in the order of the file.

    That is its first address with TLS, else its first.
    """
    found = [
        (next((one for one in spec.listen if one.tls), spec.listen[0]), spec.on)
        for spec in topology.brokers.values()
    ]
    return [(_for_all(topology, listen.url, owner), listen) for listen, owner in found]


def peer_urls(topology: Topology, name: str) -> list[str]:
    """Return an address of each broker but one: those with which it shares registrations.

    A broker that has TLS at all its addresses has no clients, so it shares none.
    """
    urls = {other: broker_url(topology, spec) for other, spec in topology.brokers.items()}
    return [url for other, url in urls.items() if url and other != name] if urls[name] else []


def broker_url(topology: Topology, spec: BrokerSpec) -> str | None:
    """Return the address at which clients and other brokers dial a broker: without TLS; None without one."""
    plain = next((one.url for one in spec.listen if not one.tls), None)
    return None if plain is None else _for_all(topology, plain, spec.on)


def _for_all(topology: Topology, listening: str, owner: str) -> str:
    url = split_url(listening)
    return with_host(url, topology.gateways[owner].address) if is_wildcard(url.host) else listening


def bus_at(topology: Topology, text: str, gateway: str) -> str | None:
    """Return the bus in this file that `gateway` would reach at the address `text`; None if there is none."""
    found = listen_at(topology, text, gateway)
    return None if found is None else found[0]


def listen_at(topology: Topology, text: str, gateway: str) -> tuple[str, Listen] | None:
    """Return the bus, and its address in this file, that `gateway` would reach at `text`; None if none is."""
    url = split_url(text)
    for name, bus in topology.buses.items():
        for listen in bus.listen:
            if _leads(topology, url, gateway, split_url(listen.url), bus.on):
                return name, listen
    return None


def _leads(topology: Topology, dialled: Url, gateway: str, listening: Url, owner: str) -> bool:
    if dialled.scheme != listening.scheme or dialled.port != listening.port:
        return False
    near = machine(topology, gateway) == machine(topology, owner)
    if dialled.scheme not in HOSTED:
        return near and dialled.path == listening.path and (dialled.scheme == "ipc" or gateway == owner)
    if dialled.path.rstrip("/") != listening.path.rstrip("/"):
        return False
    if is_loopback(dialled.host):
        return near and overlap(dialled.host, listening.host)
    address = plain_host(topology.gateways[owner].address)
    return dialled.host in (address, listening.host) and (
        is_wildcard(listening.host) or listening.host in (dialled.host, address)
    )
