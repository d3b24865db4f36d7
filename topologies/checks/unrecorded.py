"""Search for recorders of wires that have no wire to record. Pure."""

from collections.abc import Iterable, Iterator

from topologies.findings import Finding, warning
from topologies.model import Side
from topologies.wiring.segments import Wiring


def find_unrecorded(wiring: Wiring) -> Iterator[Finding]:
    """Yield devices that are to record wires, where no side of what they join has a wire to record."""
    for name, device in wiring.topology.devices.items():
        joints = (joint for joint in wiring.joints if joint.gateway == device.on)
        sides = [joint.side for joint in joints if joint.bridge in device.joins]
        if device.records_wires and not any(map(_shows, sides)):
            text = f"wire has no effect in {device.key} {name}: on {device.on} none of"
            why = "is a bridge with a side whose wire can be recorded"
            reasons = "".join(f"; {one}" for one in dict.fromkeys(_reasons(sides)))
            yield warning(device.where, f"{text} {', '.join(device.joins)} {why}{reasons}")


def _shows(side: Side) -> bool:
    """Return whether the items on the wire of a side can be recorded."""
    return side.medium is not None and side.medium.wire_items(side.speaks is not None) is not None


def _reasons(sides: Iterable[Side]) -> Iterator[str]:
    for medium in (side.medium for side in sides if side.medium is not None):
        yield f"{medium.key}: {medium.unrecorded}"
