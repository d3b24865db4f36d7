"""The base of all parts: the site that they are built for, and the links that they open."""

import secrets
import zlib
from asyncio import AbstractEventLoop
from pathlib import Path
from typing import ClassVar, NamedTuple

from bus.events import Record
from bus.hub import Hub, Link
from topologies.model import Gateway, Topology


class Site(NamedTuple):
    """Everything that the parts of one process share.

    `sockets` is the directory in which the processes of one gateway meet, None if there is only this process.
    `record` gets the events of parts (`appliance.monitor`).
    """

    topology: Topology
    gateway: str
    sockets: Path | None
    record: Record

    @property
    def here(self) -> Gateway:
        """The gateway, as the topology describes it."""
        return self.topology.gateways[self.gateway]

    def origin(self, part: str) -> int:
        """Return a part's origin in envelopes. Parts with the same one would drop each other's frames."""
        if self.here.origin is None:
            return secrets.randbits(32)
        return zlib.crc32(f"{self.here.origin}/{part}".encode())

    def local_socket(self, bus: str, trunk: bool) -> str | None:
        """Return the URL at which other processes of this gateway reach a bus, None if there are none."""
        return None if self.sockets is None else f"ipc://{self.sockets / bus}{'.trunk' if trunk else ''}.sock"


class BasePart:
    """A hub and the links that are open while the part is; each link has the hub that it opens on."""

    kind: ClassVar[str]

    def __init__(self, name: str, site: Site, hub: Hub) -> None:
        self.name, self.site, self.hub = name, site, hub
        self.ends: list[tuple[Link, Hub]] = []
        self.watched: list[Link] = []  # links whose changes of state are events

    @property
    def links(self) -> list[Link]:
        return [link for link, _ in self.ends]

    def open(self, loop: AbstractEventLoop) -> None:
        for link, hub in self.ends:
            link.open(hub, loop)

    def close(self) -> None:
        for link in self.links:
            link.close()
