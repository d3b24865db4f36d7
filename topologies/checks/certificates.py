"""Search for certificates that are given by gateway, and not to a gateway that needs one. Pure."""

from collections.abc import Iterator

from bus.schema import Owned, Where
from bus.transports.options import Tls
from topologies.findings import Finding, error
from topologies.wiring.reach import address_of, lease_places, trunks_of
from topologies.wiring.segments import Wiring


def find_lacking(wiring: Wiring) -> Iterator[Finding]:
    """Yield addresses at which a gateway dials that has no value among those by gateway."""
    found = dict[tuple[Where, str], list[str]]()
    for gateway, url, where, tls in _dialled(wiring):
        if tls is not None and tls.own and tls.of(gateway) is None:
            found.setdefault((where, url), []).append(gateway)
    for (where, url), gateways in found.items():
        names = list(dict.fromkeys(gateways))
        dials = "dials" if len(names) == 1 else "dial"
        yield error(where, f"tls has no value for {', '.join(names)}, which {dials} {url}")


def _dialled(wiring: Wiring) -> Iterator[tuple[str, str, Where, Owned[Tls] | None]]:
    """Yield each gateway that dials an address of the file, with its URL, its place and its certificates."""
    topology = wiring.topology
    for name, bus in topology.buses.items():
        yield from ((bus.on, dial.url, dial.where, dial.tls) for dial in bus.dial)
        for other, trunk in trunks_of(topology, name).items():
            found = address_of(topology, other, bus.on, trunk=True) if trunk else None
            if found is not None:
                yield bus.on, found[1].url, found[1].where, found[1].tls
    for joint in wiring.joints:
        if joint.side.bus and topology.buses[joint.side.bus].on != joint.gateway:
            found = address_of(topology, joint.side.bus, joint.gateway, joint.trunk)
            if found is not None:
                yield joint.gateway, found[1].url, found[1].where, found[1].tls
    standing = [one.gateway for group in wiring.groups if len(group) > 1 for one in group]
    for _, address in lease_places(topology) if standing else ():
        yield from ((gateway, address.url, address.where, address.tls) for gateway in standing)
