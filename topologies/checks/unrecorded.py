"""Search for recorders of wires that have no wire to record. Pure."""

from collections.abc import Iterator

from topologies.findings import Finding, warning
from topologies.model import Side
from topologies.wiring.segments import Wiring

_WHY = "is a bridge with a protocol on a side (registers of I2C and TMQ are not recorded)"


def find_unrecorded(wiring: Wiring) -> Iterator[Finding]:
    """Yield devices that are to record wires, where no side of what they join shows its items."""
    shown = {(joint.bridge, joint.gateway) for joint in wiring.joints if _shows(joint.side)}
    for name, device in wiring.topology.devices.items():
        if device.records_wires and not any((part, device.on) in shown for part in device.joins):
            text = f"wire has no effect in {device.key} {name}: on {device.on} none of"
            yield warning(device.where, f"{text} {', '.join(device.joins)} {_WHY}")


def _shows(side: Side) -> bool:
    """Return whether the items of a side can be recorded."""
    return side.speaks is not None and side.medium is not None and side.medium.shows_items
