"""Search for addresses at which every machine that reaches them is let in: docs/security.md. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from bus.schema import Where
from bus.transports.options import Tls
from bus.urls import HOSTED, TLS_SCHEMES, WEB_SCHEMES, is_loopback, split_url
from topologies.findings import Finding, warning
from topologies.model import Topology
from topologies.wiring.keys import keys_at, keys_of
from topologies.wiring.reach import with_addresses
from topologies.wiring.segments import Wiring

_FIREWALL = "listen on 127.0.0.1, or let a firewall choose who reaches it"


class _Opening(NamedTuple):
    """An address or a host that something listens on; `advice` says what would protect it."""

    at: str
    host: str
    tls: Tls | None
    where: Where
    advice: str


def _of_pages(topology: Topology) -> Iterator[Finding]:
    """Yield a warning for each status page that other machines can read, unless they show a certificate."""
    for gateway in topology.gateways.values():
        page = gateway.status
        if not page.serve or page.is_local or page.proves:
            continue
        if page.token_file is None:
            text = f"every machine that reaches the status page at {page.address} may read it"
            yield warning(page.where, f"{text}: give it a token_file (docs/security.md)")
        elif page.tls is None:
            text = f"the token of the status page at {page.address} crosses the network unencrypted"
            yield warning(page.where, f"{text}: listen on https:// (docs/security.md)")


def find_exposed(wiring: Wiring) -> Iterator[Finding]:
    """Yield a warning for each address beyond loopback whose peers need no certificate and no key."""
    topology = wiring.topology
    for opening in (*_of_buses(topology), *_of_sides(wiring), *_of_services(topology)):
        if opening.host and not is_loopback(opening.host) and not proves(opening.tls):
            text = f"every machine that reaches {opening.at} is let in: {opening.advice}"
            yield warning(opening.where, f"{text} (docs/security.md)")
    yield from _of_pages(topology)


def proves(tls: Tls | None) -> bool:
    """Return whether a listener with these settings lets in peers with a certificate only."""
    return tls is not None and tls.require_peer_cert


def _of_buses(topology: Topology) -> Iterator[_Opening]:
    for bus in topology.buses.values():
        for listen in bus.listen:
            if not keys_of(topology, listen):
                advice = _secured(listen.url, listen.trunk)
                yield _opening(listen.url, listen.tls_of(bus.on), listen.where, advice)


def _of_sides(wiring: Wiring) -> Iterator[_Opening]:
    topology = wiring.topology
    for joint in wiring.joints:
        if joint.side.medium is None:
            continue
        medium = with_addresses(topology, joint.side.medium)
        if medium.listens and not keys_at(topology, joint.side, joint.trunk):
            advice = _secured(medium.listens, joint.trunk)
            yield _opening(medium.listens, medium.listens_tls, medium.where, advice)
        for host in medium.lets_in():
            yield _Opening(f"{medium.key} at {host}", host, None, medium.where, _FIREWALL)


def _of_services(topology: Topology) -> Iterator[_Opening]:
    for broker in topology.brokers.values():
        for address in broker.listen:
            advice = _FIREWALL if address.tls is None else _secured(address.url)
            yield _opening(address.url, address.tls_of(broker.on), address.where, advice)
    for device in topology.devices.values():
        for url, where, tls in device.listens():
            yield _opening(url, tls, where, _FIREWALL if tls is None else _secured(url))
        for host in device.lets_in():
            yield _Opening(f"{device.key} at {host}", host, None, device.where, _FIREWALL)


def _opening(url: str, tls: Tls | None, where: Where, advice: str) -> _Opening:
    parts = split_url(url)
    return _Opening(url, parts.host if parts.scheme in HOSTED else "", tls, where, advice)


def _secured(url: str, trunk: bool = False) -> str:
    """Return how to protect an address that can have TLS, or keys if it is a `trunk`."""
    scheme, signed = split_url(url).scheme, ", or give the trunk keys" if trunk else ""
    if scheme in TLS_SCHEMES:
        return f"give its tls a ca_file and require_peer_cert: true{signed}"
    secure = "wss" if scheme in WEB_SCHEMES else "tls+tcp"
    return f"listen on 127.0.0.1, or on {secure}:// with require_peer_cert{signed}"
