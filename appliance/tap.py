"""The tap of a topology: a recorder, and where it listens in buses and bridges of its process."""

from asyncio import AbstractEventLoop
from collections.abc import Sequence
from pathlib import Path

from appliance.parts import BridgePart, BusPart
from appliance.site import BasePart, Site
from bridges.bridge import Bridge, Port
from bus.hub import Hub, Pipe, State, Tap
from bus.patch import is_patch
from capture.schema import Direction
from devices.tap.recorder import Locate, LocateLink, Options, Recorder
from topologies.model import DeviceSpec
from topologies.names import known

_DAY_S = 86_400


class TapPart(BasePart):
    """A tap that records the parts `tapped`. Open it before them and close it after them, to miss nothing."""

    kind = "device"

    def __init__(self, name: str, site: Site, tapped: "Sequence[BusPart | BridgePart]") -> None:
        super().__init__(name, site, Hub(name))  # nothing passes through a tap
        self._spec, self._tapped = site.topology.devices[name], tapped
        directory, names = Path(self._spec.directory), known(site.topology)
        self.recorder = Recorder(name, site.gateway, directory, options_of(self._spec), names)
        self.ends = [(_RecorderLink(self.recorder, self._spec.queue_bytes), self.hub)]
        self.watched = self.links
        self._sent: list[tuple[Bridge, Tap]] = []

    def stays(self, site: Site, tapped: "Sequence[BusPart | BridgePart]") -> bool:
        """Return whether `site` describes the same tap, and all parts that it records stay."""
        return site.topology.devices[self.name] == self._spec and tapped == self._tapped

    def open(self, loop: AbstractEventLoop) -> None:
        """Start recording. Raises `LinkError` if a package is missing."""
        super().open(loop)
        for part in self._tapped:
            if isinstance(part, BusPart):
                self.recorder.watch(part.hub, f"bus {part.name}", bus_locator(part))
            else:
                self._watch_bridge(part)

    def _watch_bridge(self, part: BridgePart) -> None:
        name, wires = f"bridge {part.name}", {side.name: seat.segment for seat, side in part.sides}
        self.recorder.watch(part.hub, name, bridge_locator(wires, Direction.RX), link_locator(wires))
        tap = self.recorder.tap(name, bridge_locator(wires, Direction.TX))
        part.hub.tap_sent(tap)
        self._sent.append((part.hub, tap))

    def close(self) -> None:
        super().close()
        for bridge, tap in self._sent:
            bridge.untap_sent(tap)


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

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        self._recorder.open(loop)

    def close(self) -> None:
        self._recorder.close()


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


def bus_locator(part: BusPart) -> Locate:
    """Locate pipes of a bus: all are one segment, onto which the bridges of this gateway send."""
    name, urls = part.name, [part.site.local_socket(part.name, trunk) for trunk in (False, True)]
    bridges = tuple(url for url in urls if url is not None)

    def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
        if pipe is None:
            return f"bus {name}", "", Direction.TX
        behind = pipe.inner if isinstance(pipe, Port) else pipe
        ours = is_patch(behind) or behind.name.startswith(bridges)
        return f"bus {name}", behind.name, Direction.TX if ours else Direction.RX

    return locate


def link_locator(wires: dict[str, str]) -> LocateLink:
    """Locate links of a bridge: their names begin with those of their sides."""

    def locate(name: str) -> tuple[str, str]:
        side, _, link = name.partition("/")
        return wires.get(side, side), link or side

    return locate


def bridge_locator(wires: dict[str, str], direction: Direction) -> Locate:
    """Locate pipes of a bridge: each side is on a segment, which `wires` has by the side's name."""

    def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
        if not isinstance(pipe, Port):
            return "", "" if pipe is None else pipe.name, direction
        return wires.get(pipe.side.name, pipe.side.name), pipe.inner.name, direction

    return locate
