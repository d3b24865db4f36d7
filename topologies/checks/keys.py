"""Search for keys of trunks that have no effect, or that cannot match. Pure."""

from collections.abc import Iterator

from topologies.findings import Finding, error, note, warning
from topologies.model import Address, Listen, Side, Topology
from topologies.wiring.keys import Keys, keys_at, keys_of
from topologies.wiring.reach import dials_of, listen_at
from topologies.wiring.segments import Joint, Wiring


def find_unkeyed(wiring: Wiring) -> Iterator[Finding]:
    """Yield keys without effect, and the ends of a trunk that have not the same."""
    yield from _idle(wiring)
    yield from _unsigned(wiring)
    yield from _apart(wiring)
    yield from _apart_on_wires(wiring)
    yield from _timed(wiring)


def _idle(wiring: Wiring) -> Iterator[Finding]:
    """Yield the keys of the file if nothing is signed with them."""
    topology = wiring.topology
    addresses = [address for bus in topology.buses.values() for address in (*bus.listen, *bus.dial)]
    used = any(address.keys is None and keys_of(topology, address) for address in addresses)
    sides = [joint for joint in wiring.joints if joint.side.keys is None]
    used = used or any(keys_at(topology, joint.side, joint.trunk) for joint in sides)
    if topology.keys and not used and not topology.brokers:
        yield warning(topology.where, "keys have no effect: no address or side is a trunk that signs")


def _unsigned(wiring: Wiring) -> Iterator[Finding]:
    """Yield trunks on media that cannot sign, where the file has keys."""
    topology = wiring.topology
    for joint in wiring.joints:
        medium = joint.side.medium
        if topology.keys and joint.trunk and medium is not None and not medium.signs:
            text = f"keys have no effect on this trunk: nothing is signed on {medium.key}"
            yield warning(joint.side.where, f"{text}, so whoever reaches the wire can forge messages")


def _timed(wiring: Wiring) -> Iterator[Finding]:
    """Yield notes on sides that need clocks: what has no handshake is judged by its time."""
    topology = wiring.topology
    for joint in wiring.joints:
        medium = joint.side.medium
        if medium and medium.clock_s and keys_at(topology, joint.side, joint.trunk):
            text = f"with keys, gateways on {joint.wire} hear each other only if their clocks"
            yield note(joint.side.where, f"{text} differ by less than {medium.clock_s:g} s")


def _apart(wiring: Wiring) -> Iterator[Finding]:
    """Yield what dials a bus of the file with other keys than that has."""
    topology = wiring.topology
    dials = [
        (bus.on, dial.url, keys_of(topology, dial), dial)
        for name, bus in topology.buses.items()
        for dial in dials_of(topology, name)
    ]
    for gateway, url, keys, dial in dials:
        yield from _mismatch(topology, keys, listen_at(topology, url, gateway), dial)
    for joint in wiring.joints:
        medium = joint.side.medium
        if medium is not None and medium.dials:
            keys = keys_at(topology, joint.side, joint.trunk)
            yield from _mismatch(topology, keys, listen_at(topology, medium.dials, joint.gateway), joint.side)


def _mismatch(
    topology: Topology, keys: Keys, found: tuple[str, Listen] | None, end: Address | Side
) -> Iterator[Finding]:
    theirs = keys if found is None else keys_of(topology, found[1])
    if found is not None and not _agree(keys, theirs):
        text = f"signs with {_words(keys)} here, and bus {found[0]} with {_words(theirs)}"
        yield error(end.where, f"this trunk {text}: give both ends the same keys")


def _apart_on_wires(wiring: Wiring) -> Iterator[Finding]:
    """Yield trunks on one wire that have not the same keys."""
    topology = wiring.topology
    first = dict[str, Joint]()
    for joint in wiring.joints:
        medium = joint.side.medium
        if not joint.trunk or medium is None or medium.dials or medium.listens:
            continue
        other = first.setdefault(joint.wire, joint)
        ours, theirs = (keys_at(topology, one.side, True) for one in (joint, other))
        if not _agree(ours, theirs):
            text = f"signs with {_words(ours)} here, and with {_words(theirs)} at bridge {other.bridge}"
            yield error(joint.side.where, f"this trunk {text}: give all on {joint.wire} the same keys")


def _agree(one: Keys, other: Keys) -> bool:
    """Tell whether each end knows the key with which the other signs, or neither signs."""
    if not one or not other:
        return one == other
    return one[0] in other and other[0] in one


def _words(keys: Keys) -> str:
    return keys[0] if keys else "no key"
