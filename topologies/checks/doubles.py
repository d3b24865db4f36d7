"""Search for values that two devices give one pattern on a bus: nobody there could tell them apart."""

from collections.abc import Iterator

from bus.key_types import Names
from bus.wire.notation import text_of
from topologies.findings import Finding, warning
from topologies.model import Candidate, Filter
from topologies.quantities import of_side
from topologies.wiring.segments import Joint, Wiring


def find_doubles(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides with values of patterns that a device elsewhere has too. May read files of protocols.

    Gateways that stand in for each other, and sides on one wire, have one device. Sides with filters of their
    own, and bridges that give patterns other names on the bus, are left out.
    """
    first: dict[tuple[str, Names], Joint] = {}
    buses = _buses(wiring)
    for joint in wiring.joints:
        met = dict[Names, Joint]()
        for pattern in _values(joint):
            for bus in buses.get(joint.candidate, ()):
                other = first.setdefault((bus, pattern), joint)
                if not _is_one(wiring, joint, other):
                    met.setdefault(pattern, other)
        if met:
            yield _finding(joint, met)


def _values(joint: Joint) -> Iterator[Names]:
    """Yield the patterns of what comes from the devices of a side."""
    side, speaks = joint.side, joint.side.speaks
    if speaks is None or side.pattern or Filter() != side.allow or Filter() != side.deny:
        return
    yield from (one.pattern for one in of_side(side) if speaks.asks or not one.writable)


def _buses(wiring: Wiring) -> dict[Candidate, set[str]]:
    """Return the wires of the buses that each bridge joins on a gateway under the patterns that it has."""
    found: dict[Candidate, set[str]] = {}
    for joint in wiring.joints:
        if joint.side.bus is not None and not joint.side.renaming:
            found.setdefault(joint.candidate, set()).add(joint.wire)
    return found


def _is_one(wiring: Wiring, joint: Joint, other: Joint) -> bool:
    """Return whether two joints have one device: one side, one wire, or one stands in for the other."""
    if joint.wire == other.wire or (joint.bridge, joint.number) == (other.bridge, other.number):
        return True
    return joint.bridge != other.bridge and other.candidate in wiring.candidates[joint.bridge]


def _finding(joint: Joint, met: dict[Names, Joint]) -> Finding:
    pattern, other = next(iter(met.items()))
    more = f" and {len(met) - 1} more" if len(met) > 1 else ""
    place = f"bridge {other.bridge} (line {other.side.where.line})"
    text = f"{text_of(pattern)}{more} can come from {place} too, and nobody could tell them apart"
    return warning(joint.side.where, f"{text}: give each device a root or pattern of its own")
