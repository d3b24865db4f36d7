"""The wires of a topology in memory, and the records of media whose links are on them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from appliance.simulated.wires import RealEnd, RealWire
from bridges.media.can.medium import Can
from bridges.media.medium import Medium
from bridges.media.uart.medium import Uart
from bridges.simulate import CanWire, SerialLine, SimulatedCan, SimulatedUart, SimulationError
from bridges.simulate.can import CanPort, SpokenCan
from bridges.simulate.uart import SerialEnd, SpokenUart
from bus import extras
from bus.schema import settings_of
from topologies.model import Side
from topologies.resolved.bridges import ResolvedSide
from topologies.resolved.resolve import Resolved
from topologies.wiring.segments import Joint, Wiring

CableEnd = CanPort | SerialEnd | RealEnd
MakeWire = Callable[[Medium, int], RealWire | None]
_OF_DRIVERS = frozenset({"interface", "channel", "options", "node", "port", "baud", "exclusive"})


def options_of(medium: Medium) -> dict[str, Any]:
    """Return the settings of a medium that a simulated link takes: those of real drivers are left out."""
    return {name: value for name, value in settings_of(medium).items() if name not in _OF_DRIVERS}


@dataclass
class Cable:
    """A simulated wire, what the file says of it, and the ends that gateways have on it."""

    device: str
    side: Side
    wire: CanWire | SerialLine | RealWire
    ends: dict[tuple[str, str, int], CableEnd] = field(default_factory=dict)

    @property
    def gateways(self) -> set[str]:
        return {gateway for gateway, _, _ in self.ends}

    @property
    def ends_open(self) -> bool:
        """Whether there is room for one more end."""
        if isinstance(self.wire, SerialLine):
            return self.wire.shared or len(self.wire.ends) < 2
        return True


def no_wire(medium: Medium, number: int) -> RealWire | None:
    """Return None: all wires are simulated."""
    return None


class Cables:
    """All wires of a topology. Raises `SimulationError` for a medium that is not simulated.

    `real(medium, number)` returns what stands in for a simulated wire, None where nothing does.
    """

    def __init__(self, wiring: Wiring, seed: int = 0, real: MakeWire = no_wire) -> None:
        self.all: dict[str, Cable] = {}
        self._real = real
        for joint in wiring.joints:
            if joint.side.medium is not None:
                self._join(joint, joint.side.medium, seed)

    def _join(self, joint: Joint, medium: Medium, seed: int) -> None:
        cable = self.all.get(joint.wire)
        if cable is None:
            wire = self._real(medium, len(self.all)) or _wire(medium, joint, seed + len(self.all))
            cable = self.all[joint.wire] = Cable(_device(medium), joint.side, wire)
        end = (joint.gateway, joint.bridge, joint.number)
        name = f"{joint.gateway}.{joint.bridge}.{joint.number}"
        cable.ends[end] = _end(cable.wire, name, medium)

    def names(self) -> list[str]:
        """Return the names by which `named` finds the wires."""
        devices = [cable.device for cable in self.all.values()]
        return [
            cable.device if devices.count(cable.device) == 1 else f"{min(cable.gateways)}:{cable.device}"
            for cable in self.all.values()
        ]

    def named(self, name: str) -> Cable | None:
        """Return the wire of a device's name, or of GATEWAY:DEVICE where several have it; None if none is."""
        return dict(zip(self.names(), self.all.values(), strict=True)).get(name)

    def ends(self, gateway: str) -> Iterator[CableEnd]:
        """Yield the ends that a gateway has."""
        for cable in self.all.values():
            yield from (end for (owner, _, _), end in cable.ends.items() if owner == gateway)

    def beneath(self, resolved: Resolved) -> Resolved:
        """Return the record of a gateway with the links of its media on these wires."""
        bridges = {
            name: replace(bridge, sides=tuple(self._moved(resolved.gateway, name, bridge.sides)))
            for name, bridge in resolved.bridges.items()
        }
        return replace(resolved, bridges=bridges)

    def _moved(self, gateway: str, bridge: str, sides: Sequence[ResolvedSide]) -> Iterator[ResolvedSide]:
        ends = {key: end for cable in self.all.values() for key, end in cable.ends.items()}
        for number, side in enumerate(sides):
            if side.medium is None:
                yield side
            else:
                medium = _record(side.medium.medium, ends[gateway, bridge, number])
                yield replace(side, medium=replace(side.medium, medium=medium))


def _device(medium: Medium) -> str:
    return str(medium.channel) if isinstance(medium, Can) else medium.device


def _wire(medium: Medium, joint: Joint, seed: int) -> CanWire | SerialLine:
    if isinstance(medium, Can):
        return CanWire(medium.bitrate or 500_000, medium.data_bitrate or 2_000_000, seed=seed)
    if isinstance(medium, Uart) and medium.rs485 is None:
        return SerialLine(medium.baud, seed=seed)
    raise SimulationError(
        f"bridge {joint.bridge}: {medium.label()} has no simulated wire here, only can and uart (without "
        "rs485) have; leave the side out of the file of the test, or build it of bridges.simulate"
    )


def _end(wire: CanWire | SerialLine | RealWire, name: str, medium: Medium) -> CableEnd:
    if isinstance(wire, CanWire):
        return wire.port(name, isinstance(medium, Can) and medium.fd)
    return wire.end(name)


def _record(medium: Medium, end: CableEnd) -> Medium:
    """Return the record of a medium with the same settings, whose links are on a wire of the plant."""
    if isinstance(end, RealEnd):
        return end.medium(medium)
    options = options_of(medium)

    def link(_: Medium, node: int | None = None, shed: Any = None, **more: Any) -> Any:
        if isinstance(end, SerialEnd):
            return SimulatedUart(end, shed=shed, **options, **more)
        own = node if not isinstance(medium, Can) or medium.node is None else medium.node
        return SimulatedCan(end, own or 0, shed=shed, **options, **more)

    def speaking(_: Medium, protocol: Any, shed: Any = None, **more: Any) -> Any:
        extras.check(f"{medium.key}:{medium.device}", protocol.needs())
        if isinstance(end, SerialEnd):
            return SpokenUart(end, protocol, shed=shed, **options, **more)
        return SpokenCan(end, protocol, shed=shed, **options, **more)

    kind = type(medium)
    made: Any = type(kind.__name__, (kind,), {"__slots__": (), "link": link, "speaking": speaking})
    simulated: Medium = made(**settings_of(medium))
    return simulated
