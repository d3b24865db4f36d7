"""A tap or log of a topology: a recorder, and where it listens in buses and bridges of its process."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from appliance.parts.changes import Change, of_settings
from appliance.parts.described import described
from appliance.parts.device import DevicePart, Joined
from appliance.parts.site import Revision, Site
from appliance.status.rows import LinkRow
from bridges.items import Items
from bridges.media.wire import WireTap, wire_of
from bridges.side import Port
from bus.hub import Hub, Link, Pipe, State
from bus.patch import is_patch
from capture.schema import Direction
from devices.tap.device import RecorderSpec
from devices.tap.recorder import Options, Recorder
from devices.tap.ring import RecordPlace
from devices.tap.watch import Locate, LocateLink
from topologies.resolved.resolve import ResolvedDevice

_DAY_S = 86_400
Seen = tuple[Hub, dict[str, str], dict[str, "Listened"]]
"""The subject of a watch: the hub of a part, the segments of its sides by their names, and their wires."""


class Listened(NamedTuple):
    """The wire of a side: its taps, its link, and the items there."""

    wire: WireTap
    link: str
    items: Items


class TapPart(DevicePart):
    """A recorder of the parts `joined`. Open it before them and close it after them, to miss nothing."""

    def __init__(self, resolved: ResolvedDevice, site: Site, joined: Sequence[Joined]) -> None:
        super().__init__(resolved, site, joined)  # nothing passes through its hub
        self._link = self._make(resolved)
        self._failure = ""
        self._seen: dict[str, Seen] = {}
        self._sent: dict[str, list[Callable[[], None]]] = {}

    def _make(self, resolved: ResolvedDevice) -> "_RecorderLink":
        spec = spec_of(resolved)
        directory, names = Path(spec.directory), resolved.names
        recorder = Recorder(self.name, resolved.gateway, directory, options_of(spec), names)
        return _RecorderLink(recorder, spec.ring_bytes)

    @property
    def recorder(self) -> Recorder:
        return self._link.recorder

    @property
    def recorders(self) -> list[Recorder]:
        return [self.recorder]

    @property
    def links(self) -> list[Link]:
        return [self._link]

    @property
    def rows(self) -> list[LinkRow]:
        return [LinkRow(self.hub, self._link.name, self._link, (), self._failure, far="inside")]

    @property
    def watched(self) -> list[LinkRow]:
        return self.rows

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        """Start recording. Fails if a package is missing."""
        self.forgive()
        failed = self.attempt("", self._link, self.hub, loop)
        self._failure = failed[0].detail if failed else ""
        self._follow()
        return failed

    def revise(self, resolved: ResolvedDevice, joined: Sequence[Joined]) -> Revision:
        """Return the change to the tap as `resolved` has it. Other settings take another recorder."""
        spec, old = spec_of(resolved), spec_of(self.resolved)
        names = self.differing(resolved)
        if [part.title for part in self.joined] != [part.title for part in joined]:
            names = list(dict.fromkeys([spec.key, *names]))
        anew = options_of(spec) != options_of(old) or spec.directory != old.directory
        link = self._make(resolved) if anew else self._link
        return Revision(
            of_settings(self.title, names),
            lambda: self._take(resolved, joined),
            lambda loop: self._go_on(link, loop),
        )

    def _go_on(self, link: "_RecorderLink", loop: AbstractEventLoop) -> list[Change]:
        """Go over to what the parts are now: to other hubs, other sides, another recorder."""
        if link is self._link:
            self.recorder.know(self.resolved.names)
            self._follow()
            return []
        self.close()
        self._link = link
        return self.start(loop)

    def _follow(self) -> None:
        """Watch each part anew whose hub or segments have changed; leave parts that have gone."""
        wires = spec_of(self.resolved).records_wires
        now = {part.title: (part, _seen(part, wires)) for part in self.joined}
        for title, seen in list(self._seen.items()):
            if title not in now or now[title][1] != seen:
                self._leave(title)
        for title, (part, seen) in now.items():
            if title not in self._seen:
                self._watch(part, seen)
        self.recorder.describe({part.title: described(part) for part in self.joined})

    def _leave(self, title: str) -> None:
        self.recorder.unwatch(self._seen.pop(title)[0])
        if title in self._sent:
            _do_all(self._sent.pop(title))

    def _watch(self, part: Joined, seen: Seen) -> None:
        self._seen[part.title] = seen
        if isinstance(part, BusPart):
            return self.recorder.watch(part.hub, part.title, bus_locator(part))
        self.recorder.watch(
            part.hub, part.title, bridge_locator(seen[1], Direction.RX), link_locator(seen[1])
        )
        tap = self.recorder.tap(part.title, bridge_locator(seen[1], Direction.TX))
        came = self.recorder.came(part.title, seen[1])
        hear = partial(self.recorder.tell, part.title)
        part.hub.tap_sent(tap)
        part.hub.tap_came(came)
        part.tap_events(hear)
        hub = part.hub
        undo = [partial(hub.untap_sent, tap), partial(hub.untap_came, came), partial(part.untap_events, hear)]
        self._sent[part.title] = [*undo, *self._listen(part.title, seen)]
        return None

    def _listen(self, title: str, seen: Seen) -> Iterator[Callable[[], None]]:
        """Record the wires of sides; yield what ends that."""
        for side, (wire, link, items) in seen[2].items():
            record = self.recorder.wire(RecordPlace(title, seen[1][side], link, 0, reason=items))
            wire.tap(record)
            yield partial(wire.untap, record)

    def close(self) -> None:
        super().close()
        for tapped in self._sent.values():
            _do_all(tapped)
        self._sent, self._seen = {}, {}


def _do_all(actions: Iterable[Callable[[], None]]) -> None:
    for action in actions:
        action()


def spec_of(resolved: ResolvedDevice) -> RecorderSpec:
    """Return the record of a recorder."""
    spec = resolved.spec
    assert isinstance(spec, RecorderSpec)
    return spec


def _seen(part: Joined, wires: bool) -> Seen:
    if isinstance(part, BusPart):
        return part.hub, {}, {}
    segments = {leg.side.name: leg.resolved.segment for leg in part.legs}
    return part.hub, segments, dict(_wires(part)) if wires else {}


def _wires(part: BridgePart) -> Iterator[tuple[str, Listened]]:
    """Yield the wires that can be recorded, by the names of their sides."""
    for leg in part.legs:
        medium, wire = leg.resolved.medium, wire_of(leg.end.link)
        items = None if medium is None else medium.medium.wire_items(medium.protocol is not None)
        if wire is not None and items is not None:
            yield leg.side.name, Listened(wire, leg.end.link.name, items)


class _RecorderLink:
    """Shows a recorder as a link, for `top` and for events."""

    condition = ""

    def __init__(self, recorder: Recorder, queue_bytes: int) -> None:
        self.recorder, self.queue_bytes = recorder, queue_bytes
        self.name = self.url = f"{recorder.name}: capture to {recorder.directory}"

    @property
    def state(self) -> State:
        return self.recorder.state

    @property
    def fault(self) -> str:
        return self.recorder.fault

    @property
    def losses(self) -> int:
        return self.recorder.losses

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        self.recorder.open(loop)

    def revise(self, other: Link) -> bool:
        """Return False: another recorder goes on."""
        return False

    def close(self) -> None:
        self.recorder.close()


def options_of(spec: RecorderSpec) -> Options:
    """Return the options of the recorder of a tap."""
    return Options(
        ring_bytes=spec.ring_bytes,
        file_bytes=spec.file_bytes,
        file_s=spec.file_s,
        keep_bytes=spec.keep_bytes,
        keep_s=(spec.keep_days or 0) * _DAY_S,
        pattern=spec.recorded,
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
