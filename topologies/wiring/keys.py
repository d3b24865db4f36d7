"""The keys of trunks: which are in force where. Pure."""

from bus.urls import split_url
from topologies.model import Address, Side, Topology

Keys = tuple[str, ...]
"""The files of the keys of one trunk; none if it is not signed."""


def keys_of(topology: Topology, address: Address) -> Keys:
    """Return the keys of an address of a bus: its own, or those of the file."""
    if not address.trunk or split_url(address.url).scheme == "inproc":
        return ()
    return topology.keys if address.keys is None else address.keys


def keys_at(topology: Topology, side: Side, trunk: bool) -> Keys:
    """Return the keys of a side that joins a medium: its own, or those of the file."""
    if not trunk or side.medium is None or not side.medium.signs:
        return ()
    return topology.keys if side.keys is None else side.keys
