"""The site of a part: the topology, gateway and process that it is built for."""

import secrets
import zlib
from pathlib import Path
from typing import NamedTuple

from bus.leases.candidacy import Record
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
