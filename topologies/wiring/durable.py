"""The journals of buses, and the gateways for which each address keeps."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from bridges.durable.settings import Durable
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


def _known(topology: Topology, bus: str, address: Address) -> Iterator[str]:
    """Yield the gateways of this file at the other end of an address."""
    if isinstance(address, Listen):
        for other, spec in topology.buses.items():
            dialled = (
                listen_at(topology, dial.url, spec.on) for dial in dials_of(topology, other) if dial.trunk
            )
            if any(found is not None and found[0] == bus and found[1] is address for found in dialled):
                yield spec.on
        return
    found = listen_at(topology, address.url, topology.buses[bus].on)
    if found is not None:
        yield topology.buses[found[0]].on
