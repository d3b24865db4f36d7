"""Search for wires that end within one process or machine: what is sent there goes no further."""

from collections.abc import Iterator

from bus.confined import INPROC, Confined
from bus.urls import split_url
from topologies.findings import Finding, note, warning
from topologies.model import Topology
from topologies.wiring.reach import machine
from topologies.wiring.segments import Joint, Wiring


def find_confined(wiring: Wiring) -> Iterator[Finding]:
    """Yield a warning for each end of such a wire that has nobody to talk to, and a note for the others.

    Two gateways on one wire that do not hear each other are a warning as well.
    """
    by_wire = dict[str, list[Joint]]()
    for joint in wiring.joints:
        by_wire.setdefault(joint.wire, []).append(joint)
    for joint in wiring.joints:
        medium = joint.side.medium
        if medium is None or (confined := medium.confined) is None:
            continue
        is_cut = _is_cut(wiring.topology, joint, by_wire, confined)
        if is_cut or not confined.stated:
            yield (warning if is_cut else note)(joint.side.where, f"{medium.device}: {confined.text}")
    yield from _buses(wiring.topology)


def _is_cut(topology: Topology, joint: Joint, by_wire: dict[str, list[Joint]], confined: Confined) -> bool:
    """Return whether nobody can hear a side, or another gateway on its wire cannot."""
    others = [one for one in by_wire[joint.wire] if one is not joint]
    if confined.within == "machine":
        here = machine(topology, joint.gateway)
        return any(machine(topology, one.gateway) != here for one in others)
    return not any(one.gateway == joint.gateway for one in others)


def _buses(topology: Topology) -> Iterator[Finding]:
    """Yield a note for each address of a bus that only programs of its own process reach."""
    for bus in topology.buses.values():
        for address in bus.listen:
            if split_url(address.url).scheme == "inproc":
                yield note(address.where, f"{address.url}: {INPROC.text}")
