"""The base of all parts: the site that they are built for, and the links that they open."""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from appliance.parts.changes import Change
from appliance.status.view import Beside
from bus.announcements import Announcement, Hear
from bus.errors import LinkError
from bus.events import RecordEvent
from bus.hub import Hub, Link
from bus.transports.peers import Peer
from bus.vacancy import NO_DEVICE

if TYPE_CHECKING:
    from appliance.status.rows import LinkRow
    from bus.leases.candidacy import Candidacy
    from bus.report import Reporter
    from bus.tmq.wire import Address
    from devices.tap.recorder import Recorder


def unheard(frame: bytes) -> Announcement | str:
    """Reject an announcement: nobody here listens."""
    return "malformed"


class Site(NamedTuple):
    """The surroundings that all parts of one process share, for as long as it runs.

    `sockets` is the directory in which the processes of one gateway meet, None if there is only this process.
    `record` gets the events of parts (`appliance.monitor`). `clock` is the loop's, in seconds. `hear` judges
    announcements of other gateways, and returns what one says, or why it is rejected.
    """

    gateway: str
    sockets: Path | None
    record: RecordEvent
    clock: Callable[[], float] = time.monotonic
    hear: Hear = unheard

    def local_socket(self, bus: str, trunk: bool) -> str | None:
        """Return the URL at which other processes of this gateway reach a bus, None if there are none."""
        return None if self.sockets is None else f"ipc://{self.sockets / bus}{'.trunk' if trunk else ''}.sock"


class Entry(NamedTuple):
    """A link of a part, by which messages come in and go out: its pipes are on `hub`.

    `peers` is the list of its address, if it has one. `inside`: it leads to parts of the same gateway only.
    `bus` is the bus of the file that it leads to otherwise, "" if it leads to none. `front` is the hub that
    the link is opened on, where something stands in front of `hub`.
    """

    place: str
    hub: Hub
    link: Link
    peers: tuple[Peer, ...] = ()
    inside: bool = False
    bus: str = ""
    front: Hub | None = None

    @property
    def door(self) -> Hub:
        """The hub that messages come to by the link."""
        return self.front or self.hub


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Revision:
    """A change of a running part that is ready to be made, between two batches.

    First `close()` what goes, in all parts, then `open(loop)` what comes: that returns what failed. Instead
    of both, `fates()` says by the end of a change whether its link would stay; that spoils the part.
    """

    changes: list[Change]
    close: Callable[[], None] = nothing
    open: Callable[[AbstractEventLoop], list[Change]] = lambda _: []
    fates: Callable[[], dict[str, bool]] = dict

    def foreseen(self) -> list[Change]:
        """Return the changes with what becomes of each link. This spoils the part."""
        fates = self.fates()
        return [
            change._replace(stays=fates.get(change.end)) if change.verb == "changed" else change
            for change in self.changes
        ]


UNTOUCHED = Revision([])
"""The revision of a part in which nothing differs."""


class BasePart:
    """A hub, and the links that are open while the part is."""

    kind: ClassVar[str]
    candidacy: "Candidacy | None" = None
    """The candidacy of a bridge that several gateways may run, one at a time."""
    beside: Beside | None = None
    """The role of this gateway in a bridge that several gateways run at once."""

    def __init__(self, name: str, site: Site, hub: Hub) -> None:
        self.name, self.title = name, f"{self.kind} {name}"
        self.site, self.hub = site, hub
        self._drawn = SystemRandom().getrandbits(32)
        self._missing: list[tuple[Hub, str]] = []  # links that could not be opened, and their hubs

    @property
    def hubs(self) -> list[Hub]:
        return [self.hub]

    @property
    def links(self) -> list[Link]:
        return []

    @property
    def id(self) -> str:
        """The id of the part in the picture of the topology."""
        return self.title

    @property
    def rows(self) -> "list[LinkRow]":
        """The rows of the part's links in a status, also of links that could not be opened."""
        return []

    @property
    def recorders(self) -> "list[Recorder]":
        """The recorders of the part."""
        return []

    @property
    def services(self) -> "list[Reporter]":
        """The services of the part that have something to report."""
        return []

    @property
    def watched(self) -> "list[LinkRow]":
        """The rows of links whose changes of state are events."""
        return []

    def origin(self, given: int | None) -> int:
        """Return the part's origin in envelopes: the given one, or else a random one that the part keeps."""
        return self._drawn if given is None else given

    def announce(self, frame: bytes, told: "set[Address]") -> None:
        """Send an announcement of this gateway by the trunks of the part, and to brokers not yet `told`."""

    def open(self, loop: AbstractEventLoop) -> None:
        """Open everything. Raises `LinkError` if something cannot be opened; close the part then."""
        failed = self.start(loop)
        if failed:
            raise LinkError(failed[0].detail)

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        """Open what can be opened. Return what cannot; it is tried again at the next change."""
        raise NotImplementedError

    def close(self) -> None:
        for link in self.links:
            link.close()

    def attempt(self, place: str, link: Link, hub: Hub, loop: AbstractEventLoop) -> list[Change]:
        """Open a link on a hub. Return why it failed, if it did. `place` is the plan's.

        What a link that failed is due is dropped there until `forgive`.
        """
        try:
            link.open(hub, loop)
        except LinkError as error:
            link.close()
            self.miss(hub, link.name)
            return [Change("failed", self.title, place, str(error))]
        return []

    def miss(self, hub: Hub, link: str) -> None:
        """Have a hub drop and count what is due to a link that could not be opened."""
        hub.enlist(link, NO_DEVICE)
        self._missing.append((hub, link))

    def forgive(self) -> None:
        """Stop counting for links that could not be opened: they are tried again, or wanted no more."""
        for hub, link in self._missing:
            hub.strike(link)
        self._missing = []
