"""Search for values that two devices give one pattern on a bus: nobody there could tell them apart."""

from collections.abc import Iterator

from bus.key_types import Names
from bus.wire.notation import text_of
from topologies.findings import Finding, warning
from topologies.model import Filter
from topologies.quantities import of_side
from topologies.wiring.segments import Joint, Wiring


def find_doubles(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides with values of patterns that a device elsewhere has too. May read files of protocols.

    Gateways that stand in for each other, and sides on one wire, have one device. Sides with filters of their
    own, and bridges that give patterns other names on the bus, are left out.
    """
    first: dict[tuple[str, Names], Joint] = {}
    for joint in wiring.joints:
        buses, met = _buses(wiring, joint), dict[Names, Joint]()
        for pattern in _values(joint):
            for bus in buses:
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


def _buses(wiring: Wiring, joint: Joint) -> set[str]:
    """Return the wires of the buses that a joint's bridge joins there under the patterns that it has."""
    beside = (one for one in wiring.joints if one.candidate == joint.candidate)
    return {one.wire for one in beside if one.side.bus is not None and not one.side.renaming}


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
