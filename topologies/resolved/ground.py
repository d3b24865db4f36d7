"""The facts from which the records of all parts of one gateway are worked out: each is found once."""

import zlib
from typing import NamedTuple

from topologies.model import Gateway, Topology
from topologies.wiring.rings import age_s
from topologies.wiring.segments import Wiring


class Ground(NamedTuple):
    """The facts that the records of one gateway's parts have in common.

    `rings` are the parts whose trunks form rings, and `names` all names of tokens that the topology knows.
    """

    wiring: Wiring
    gateway: str
    rings: frozenset[str]
    names: tuple[str, ...]

    @property
    def topology(self) -> Topology:
        return self.wiring.topology

    @property
    def here(self) -> Gateway:
        """The gateway, as the topology describes it."""
        return self.topology.gateways[self.gateway]

    def age_s(self, part: str, trunk: bool, age_ms: int | None = None) -> float:
        """Return for how many seconds a message may wait on a link of `part`; 0: for as long as it takes."""
        return age_s(part, trunk, age_ms, self.rings)

    def origin(self, part: str) -> int | None:
        """Return the origin of `part` in envelopes; None if the part is to draw one.

        Parts with the same origin would drop each other's frames.
        """
        return None if self.here.origin is None else zlib.crc32(f"{self.here.origin}/{part}".encode())
