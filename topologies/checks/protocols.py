"""Search for faults of the protocols that the devices of sides speak: their files, who may send, who asks."""

from collections.abc import Iterator

from topologies.findings import Finding, error, warning
from topologies.wiring.segments import Wiring


def find_unspoken(wiring: Wiring) -> Iterator[Finding]:
    """Yield what is wrong with the protocols of all sides."""
    for side in dict.fromkeys(joint.side for joint in wiring.joints if joint.side.speaks is not None):
        assert side.speaks is not None
        for problem in side.speaks.problems():
            make = error if problem.is_error else warning
            yield make(problem.where or side.speaks.where, problem.text)
