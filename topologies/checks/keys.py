"""The keys of trunks: which are in force where, and those that have no effect or cannot match. Pure."""

from collections.abc import Iterator

from bus.urls import split_url
from topologies.findings import Finding, error, note, warning
from topologies.model import Address, Listen, Side, Topology
from topologies.wiring.reach import dials_of, listen_at
from topologies.wiring.segments import Joint, joints

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


def find_unkeyed(topology: Topology) -> Iterator[Finding]:
    """Yield keys without effect, and the ends of a trunk that have not the same."""
    yield from _idle(topology)
    yield from _unsigned(topology)
    yield from _apart(topology)
    yield from _apart_on_wires(topology)
    yield from _timed(topology)


def _idle(topology: Topology) -> Iterator[Finding]:
    """Yield the keys of the file if nothing is signed with them."""
    addresses = [address for bus in topology.buses.values() for address in (*bus.listen, *bus.dial)]
    used = any(address.keys is None and keys_of(topology, address) for address in addresses)
    sides = [joint for joint in joints(topology) if joint.side.keys is None]
    used = used or any(keys_at(topology, joint.side, joint.trunk) for joint in sides)
    if topology.keys and not used and not topology.brokers:
        yield warning(topology.where, "keys have no effect: no address or side is a trunk that signs")


def _unsigned(topology: Topology) -> Iterator[Finding]:
    """Yield trunks on media that cannot sign, where the file has keys."""
    for joint in joints(topology):
        medium = joint.side.medium
        if topology.keys and joint.trunk and medium is not None and not medium.signs:
            text = f"keys have no effect on this trunk: nothing is signed on {medium.key}"
            yield warning(joint.side.where, f"{text}, so whoever reaches the wire can forge messages")


def _timed(topology: Topology) -> Iterator[Finding]:
    """Yield notes on sides that need clocks: what has no handshake is judged by its time."""
    for joint in joints(topology):
        medium = joint.side.medium
        if medium and medium.clock_s and keys_at(topology, joint.side, joint.trunk):
            text = f"with keys, gateways on {joint.wire} hear each other only if their clocks"
            yield note(joint.side.where, f"{text} differ by less than {medium.clock_s:g} s")


def _apart(topology: Topology) -> Iterator[Finding]:
    """Yield what dials a bus of the file with other keys than that has."""
    dials = [
        (bus.on, dial.url, keys_of(topology, dial), dial)
        for name, bus in topology.buses.items()
        for dial in dials_of(topology, name)
    ]
    for gateway, url, keys, dial in dials:
        yield from _mismatch(topology, keys, listen_at(topology, url, gateway), dial)
    for joint in joints(topology):
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


def _apart_on_wires(topology: Topology) -> Iterator[Finding]:
    """Yield trunks on one wire that have not the same keys."""
    first = dict[str, Joint]()
    for joint in joints(topology):
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
