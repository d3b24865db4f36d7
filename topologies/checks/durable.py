"""Search for journals of trunks that could not be kept as the file says. Pure."""

from collections import Counter
from collections.abc import Iterator
from os.path import normpath

from topologies.findings import Finding, error, note
from topologies.model import Topology
from topologies.wiring.durable import Keeping, keepings, kept_words, syncs
from topologies.wiring.segments import Wiring


def find_unkept(wiring: Wiring) -> Iterator[Finding]:
    """Yield journals that nobody is known to need, that differ on one bus, or that two buses share."""
    topology = wiring.topology
    kept = {bus: keepings(topology, bus) for bus in topology.buses}
    for bus, addresses in kept.items():
        yield from _of_nobody(addresses)
        yield from _unlike(bus, addresses)
        yield from _twice(bus, addresses)
        yield from _promised(topology, bus, addresses)
    yield from _shared(topology, kept)


def _of_nobody(addresses: list[Keeping]) -> Iterator[Finding]:
    for one in addresses:
        if not one.gateways:
            yield error(
                one.durable.where,
                f"durable keeps for nobody: no bus of this file is at the other end of {one.address.url}; "
                "name its gateways in `for`",
            )


def _unlike(bus: str, addresses: list[Keeping]) -> Iterator[Finding]:
    """Yield addresses of a bus whose journals differ. It has one, to know a message on all its ways."""
    for one in addresses[1:]:
        if one.durable.journal != addresses[0].durable.journal:
            text = "a bus has one journal: give all its durable trunks the same directory and settings"
            yield error(one.durable.where, f"bus {bus}: {text} (`pattern`, `for` and `plain` may differ)")


def _twice(bus: str, addresses: list[Keeping]) -> Iterator[Finding]:
    counts = Counter(gateway for one in addresses for gateway in one.gateways)
    for one in addresses:
        for gateway in one.gateways:
            if counts[gateway] > 1 and one is not addresses[0]:
                yield error(
                    one.durable.where, f"bus {bus} keeps for gateway {gateway} at two of its addresses"
                )


def _promised(topology: Topology, bus: str, addresses: list[Keeping]) -> Iterator[Finding]:
    """Yield where each journal is, for whom it is kept, and what the acknowledgements of each end mean."""
    for one in addresses:
        if one.gateways:
            yield note(one.durable.where, f"bus {bus} {kept_words(topology, one)}")
        for gateway in one.gateways:
            if syncs(topology, gateway) is False:
                text = (
                    f"gateway {gateway} keeps no journal: it acknowledges what its bus has got, and forgets"
                )
                yield note(
                    one.durable.where, f"{text} that when it restarts, so then some messages may come twice"
                )


def _shared(topology: Topology, kept: dict[str, list[Keeping]]) -> Iterator[Finding]:
    """Yield journals of two buses of one gateway in one directory."""
    owners = dict[tuple[str, str], str]()
    for bus, addresses in kept.items():
        for one in addresses[:1]:
            place = topology.buses[bus].on, normpath(one.durable.directory)
            other = owners.setdefault(place, bus)
            if other != bus:
                yield error(
                    one.durable.where, f"bus {other} has its journal in {one.durable.directory} already"
                )
