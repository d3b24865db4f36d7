"""The tap of a topology: a recorder, and where it listens in buses and bridges of its process."""

from asyncio import AbstractEventLoop
from pathlib import Path

from appliance.parts import BridgePart, BusPart, local_socket
from bridges.bridge import Port
from bus.hub import Hub, Link, Pipe, State
from bus.patch import is_patch
from capture.schema import Direction
from devices.tap.recorder import Locate, Options, Recorder
from topologies.model import DeviceSpec, Topology
from topologies.segments import Joint, Segments

_DAY_S = 86_400


class TapPart:
    """A device of a topology. Open it before what it taps, and close it after, or the ends are missing.

    `tapped` are the parts that it taps, of those that run in this process.
    """

    def __init__(
        self,
        name: str,
        spec: DeviceSpec,
        topology: Topology,
        gateway: str,
        tapped: "list[BusPart | BridgePart]",
        sockets: Path | None = None,
    ) -> None:
        self.name, self.spec, self.tapped = name, spec, tapped
        self.hub = Hub(name)  # nothing passes through a tap
        self.recorder = Recorder(name, gateway, Path(spec.directory), options_of(spec))
        self.links: list[Link] = [_RecorderLink(self.recorder, spec.queue_bytes)]
        self._topology, self._gateway, self._sockets = topology, gateway, sockets

    def open(self, loop: AbstractEventLoop) -> None:
        """Raises `LinkError` where a package is missing."""
        self.recorder.open(loop)
        for part in self.tapped:
            if isinstance(part, BusPart):
                locate = bus_locator(part.name, self._sockets)
                self.recorder.watch(part.hub, f"bus {part.name}", locate)
            else:
                self._watch_bridge(part)

    def _watch_bridge(self, part: BridgePart) -> None:
        name, wires = f"bridge {part.name}", wires_of(part, self._topology, self._gateway)
        self.recorder.watch(part.hub, name, bridge_locator(wires, Direction.RX))
        tap = self.recorder.tap(name, bridge_locator(wires, Direction.TX))
        part.hub.tap_sent(tap)

    def close(self) -> None:
        self.recorder.close()


class _RecorderLink:
    """Shows a recorder as a link, for `top` and for events."""

    condition = ""

    def __init__(self, recorder: Recorder, queue_bytes: int) -> None:
        self._recorder, self.queue_bytes = recorder, queue_bytes
        self.name = self.url = f"{recorder.name}: capture to {recorder.directory}"

    @property
    def state(self) -> State:
        return self._recorder.state

    @property
    def fault(self) -> str:
        return self._recorder.fault

    @property
    def losses(self) -> int:
        return self._recorder.losses

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None: ...
    def close(self) -> None: ...


def options_of(spec: DeviceSpec) -> Options:
    return Options(
        ring_bytes=spec.queue_bytes,
        file_bytes=spec.file_bytes,
        file_s=spec.file_s,
        keep_bytes=spec.keep_bytes,
        keep_s=(spec.keep_days or 0) * _DAY_S,
        pattern=spec.pattern,
        idle=spec.yields,
    )


def bus_locator(name: str, sockets: Path | None = None) -> Locate:
    """On a bus all pipes are one segment; what a bridge of this gateway brings is put onto it."""
    bridges = tuple(local_socket(sockets, name, trunk) for trunk in (False, True)) if sockets else ()

    def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
        if pipe is None:
            return f"bus {name}", "", Direction.TX
        behind = pipe.inner if isinstance(pipe, Port) else pipe
        ours = is_patch(behind) or (bool(bridges) and behind.name.startswith(bridges))
        return f"bus {name}", behind.name, Direction.TX if ours else Direction.RX

    return locate


def bridge_locator(wires: dict[str, str], direction: Direction) -> Locate:
    """On a bridge each side is a segment; `wires` by the side's name."""

    def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
        if not isinstance(pipe, Port):
            return "", "" if pipe is None else pipe.name, direction
        return wires.get(pipe.side.name, pipe.side.name), pipe.inner.name, direction

    return locate


def wires_of(part: BridgePart, topology: Topology, gateway: str) -> dict[str, str]:
    """The name of the segment behind each side, the same on all gateways that share it."""
    segments = Segments(topology)
    sides = zip(part.spec.join, part.hub.sides, strict=True)
    return {side.name: segments.of(Joint(part.name, part.spec, spec, gateway)) for spec, side in sides}
