"""The publishing of events and log lines of a process, on its own buses or on those of other processes."""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from appliance.parts.bus import BusPart
from appliance.parts.site import Site
from bus.hub import Hub, Link
from bus.ledger import Stats
from bus.transports.links import bus_link
from bus.wire.batch import from_payloads

WAITING: Final = 64
"""Frames that wait for the other process; more are dropped and counted."""
_QUIET_S: Final = 2.0


class _Far:
    """A bus of another process. It is dialled only to publish, because a peer hears everything."""

    def __init__(self, bus: str, url: str, clock: Callable[[], float]) -> None:
        self.hub = Hub(f"said on {bus}")
        self._url, self._clock = url, clock
        self._lost = Stats()
        self.hub.keep(url, self._lost)
        self._link: Link | None = None
        self._waiting: deque[bytes] = deque(maxlen=WAITING)
        self._said_s = 0.0

    def publish(self, frames: Iterable[bytes]) -> None:
        """Publish frames at once, or as soon as the other process answers. Too many push out the oldest."""
        for frame in frames:
            if len(self._waiting) == WAITING:
                self._lost.offered += 1
                self._lost.drop("queue full")
            self._waiting.append(frame)

    def tick(self, loop: AbstractEventLoop) -> None:
        """Dial, publish, or hang up. Call it a few times a second."""
        if self._waiting:
            self._said_s = self._clock()
            self._pass_on(loop)
        elif self._link is not None and self._clock() - self._said_s > _QUIET_S:
            self.close()

    def _pass_on(self, loop: AbstractEventLoop) -> None:
        if self._link is None:
            self._link = bus_link(self._url, "dial")
            self._link.open(self.hub, loop)
        elif self._link.state == "up":
            self.hub.publish(from_payloads(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


class Publisher:
    """Publishes the frames of one process, by bus. `follow` sets the buses that there are now."""

    def __init__(self, site: Site, clock: Callable[[], float]) -> None:
        self._site, self._clock = site, clock
        self._near: dict[str, BusPart] = {}
        self._far: dict[str, _Far] = {}

    @property
    def hubs(self) -> list[Hub]:
        """The hubs of its own: those of buses that run in other processes."""
        return [far.hub for far in self._far.values()]

    def follow(self, parts: Mapping[str, object], buses: Iterable[str]) -> None:
        """Publish on `buses` from now on, where `parts` are those of this process by title."""
        wanted = dict.fromkeys(buses)
        found = {name: parts.get(f"{BusPart.kind} {name}") for name in wanted}
        self._near = {name: part for name, part in found.items() if isinstance(part, BusPart)}
        urls = {name: self._site.local_socket(name, False) for name in wanted if name not in self._near}
        for name in self._far.keys() - urls.keys():
            self._far.pop(name).close()
        for name, url in urls.items():
            if url is not None and name not in self._far:
                self._far[name] = _Far(name, url, self._clock)

    def publish(self, buses: Sequence[str], frames: Sequence[bytes]) -> None:
        """Publish frames on some of the buses, at once or as soon as their process answers."""
        for name in buses if frames else ():
            if name in self._near:
                self._near[name].plain.publish(from_payloads(frames))
            elif name in self._far:
                self._far[name].publish(frames)

    def tick(self, loop: AbstractEventLoop) -> None:
        """Pass on frames that wait. Call it a few times a second."""
        for far in self._far.values():
            far.tick(loop)

    def close(self) -> None:
        for far in self._far.values():
            far.close()
        self._far.clear()
