"""Search for faults of the protocols that the devices of sides speak: their files, who may send, who asks."""

from collections.abc import Iterator

from bridges.protocols.protocol import Protocol
from topologies.findings import Finding, error, warning
from topologies.wiring.segments import Wiring


def find_unspoken(wiring: Wiring) -> Iterator[Finding]:
    """Yield what is wrong with the protocols of all sides."""
    seen = list[Protocol]()
    for protocol in (joint.side.speaks for joint in wiring.joints if joint.side.speaks is not None):
        if any(protocol == one and protocol.where == one.where for one in seen):
            continue
        seen.append(protocol)
        for problem in protocol.problems():
            make = error if problem.is_error else warning
            yield make(problem.where or protocol.where, problem.text)
