"""The order of senders on a trunk that several appliances share: all but the first hold each frame back."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple

from topologies.model import Candidate
from topologies.wiring.graph import blocks
from topologies.wiring.segments import Joint, Wiring


class Rank(NamedTuple):
    """The number of appliances that send before this one: `mates` for the same bridge, and `others`."""

    mates: int = 0
    others: int = 0


class Ranks:
    """The ranks of sides, by the order of bridges in the file and of candidates for one of them.

    Only bridges that are also connected by another way count: others never send the same frames. On a wire,
    these are the bridges whose links to it are of one block.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._place = {name: place for place, name in enumerate(wiring.topology.bridges)}
        self._block: dict[tuple[str, str], Hashable] = {}
        self._ahead: dict[tuple[str, Hashable], list[int]] = {}
        self._connect()

    def _connect(self) -> None:
        """Note the first place in the file of each group of bridges that shares a wire and another way."""
        found = zip(self._wiring.edges, blocks([edge[:2] for edge in self._wiring.edges]), strict=True)
        places = defaultdict[tuple[str, Hashable], dict[Candidate, int]](dict)
        for edge, block in found:
            if edge.joint is not None:
                bridge, wire = edge.joint.bridge, edge.joint.wire
                self._block[bridge, wire] = block
                groups, leader = places[wire, block], self._wiring.candidates[bridge][0]
                groups[leader] = min(groups.get(leader, self._place[bridge]), self._place[bridge])
        self._ahead = {key: sorted(groups.values()) for key, groups in places.items()}

    def of(self, joint: Joint) -> Rank:
        """Return the rank of a side: 0 except on a trunk that several appliances share."""
        medium = joint.side.medium
        if not joint.trunk or medium is None or not medium.shared:
            return Rank()
        mates = self._wiring.candidates[joint.bridge]
        ahead = self._ahead[joint.wire, self._block[joint.bridge, joint.wire]]
        others = bisect_left(ahead, self._place[mates[0].bridge])
        return Rank(mates.index(joint.candidate), others)
