"""The journals of buses, and the gateways for which each address keeps."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from bridges.durable.settings import ACKNOWLEDGES, Durable
from topologies.model import Address, Listen, Topology
from topologies.wiring.reach import dials_of, listen_at

Mode = Literal["listen", "dial"]


class Keeping(NamedTuple):
    """A durable address of a bus, its settings, and the gateways for which it keeps, () if none are known."""

    mode: Mode
    address: Address
    durable: Durable
    gateways: tuple[str, ...]


def keepings(topology: Topology, bus: str) -> list[Keeping]:
    """Return the durable addresses of a bus, those at which it listens first."""
    listens, dials = topology.buses[bus].listen, dials_of(topology, bus)
    addresses: list[tuple[Mode, Address]] = [
        *(("listen", one) for one in listens),
        *(("dial", one) for one in dials),
    ]
    return [
        Keeping(mode, one, one.durable, one.durable.ends or tuple(dict.fromkeys(_known(topology, bus, one))))
        for mode, one in addresses
        if one.durable is not None
    ]


def syncs(topology: Topology, gateway: str) -> bool | None:
    """Return whether a gateway keeps a journal, so that it acknowledges after its fdatasync.

    None: it is not in the file.
    """
    if gateway not in topology.gateways:
        return None
    return any(spec.on == gateway and keepings(topology, bus) for bus, spec in topology.buses.items())


def kept_words(topology: Topology, keeping: Keeping) -> str:
    """Return for whom an address keeps, when each of these acknowledges, and where the journal is."""
    ends = ", ".join(f"{one}{_promise(syncs(topology, one))}" for one in keeping.gateways) or "nobody"
    return f"keeps for {ends} in {keeping.durable.directory}"


def _promise(is_synced: bool | None) -> str:
    return "" if is_synced is None else f" ({ACKNOWLEDGES['synced' if is_synced else 'delivered']})"


def durable_lines(topology: Topology) -> set[tuple[str, str]]:
    """Return the lines of the picture that are durable trunks: two nodes each, in order."""
    found = set[tuple[str, str]]()
    for bus in topology.buses:
        for one in keepings(topology, bus):
            others = [f"bus {other}" for other in _buses_at(topology, bus, one.address)]
            for other in others or [f"url {one.address.url}"]:
                first, second = sorted((f"bus {bus}", other))
                found.add((first, second))
    return found


def _known(topology: Topology, bus: str, address: Address) -> Iterator[str]:
    """Yield the gateways of this file at the other end of an address."""
    return (topology.buses[other].on for other in _buses_at(topology, bus, address))


def _buses_at(topology: Topology, bus: str, address: Address) -> Iterator[str]:
    """Yield the buses of this file at the other end of an address."""
    if isinstance(address, Listen):
        for other, spec in topology.buses.items():
            dialled = (
                listen_at(topology, dial.url, spec.on) for dial in dials_of(topology, other) if dial.trunk
            )
            if any(found is not None and found[0] == bus and found[1] is address for found in dialled):
                yield other
        return
    found = listen_at(topology, address.url, topology.buses[bus].on)
    if found is not None:
        yield found[0]
