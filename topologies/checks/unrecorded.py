"""Search for recorders of wires that have no wire to record, and of messages that their queue does not take.

Pure.
"""

from collections.abc import Iterable, Iterator

from topologies.findings import Finding, warning
from topologies.model import BusSpec, Side, Topology
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


def find_oversized(topology: Topology) -> Iterator[Finding]:
    """Yield devices whose queue has no room for the longest messages of a bus that they record."""
    for name, device in topology.devices.items():
        buses = [(bus, topology.buses[bus]) for bus in device.joins if bus in topology.buses]
        most = {bus: max([spec.message_bytes, *_lengths(spec)]) for bus, spec in buses}
        bus = max(most, key=most.__getitem__, default="")
        if bus and device.longest_bytes is not None and most[bus] > device.longest_bytes:
            text = (
                f"messages of bus {bus} may have {most[bus]} bytes, of which {device.key} {name} loses some"
            )
            yield warning(device.where, f"{text}: give it queue_bytes of at least {3 * most[bus]}")


def _lengths(bus: BusSpec) -> Iterator[int]:
    return (bus.limits(link)[1] for link in (*bus.listen, *bus.dial))


def _shows(side: Side) -> bool:
    """Return whether the items on the wire of a side can be recorded."""
    return side.medium is not None and side.medium.wire_items(side.speaks is not None) is not None


def _reasons(sides: Iterable[Side]) -> Iterator[str]:
    for medium in (side.medium for side in sides if side.medium is not None):
        yield f"{medium.key}: {medium.unrecorded}"
