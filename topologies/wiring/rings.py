"""How long messages may wait on a trunk: where trunks form a ring, no longer than keys are remembered.

A copy that was held up for longer than that would pass as a new message (docs/wire/envelope.md).
"""

from topologies.model import Topology
from topologies.wiring.segments import Edge, edges_of, joints, reached

RING_AGE_S = 4.0
"""By default, on a ring: less than the 5 s for which `bridges.rules.Seen` remembers every key."""


def ringed(topology: Topology) -> frozenset[str]:
    """Return the parts, such as "bus hall", from which a trunk leads to a place that another way reaches too.

    All candidates of a bridge count at once, because copies of a frame can be held up over a takeover. A
    trunk that is looked for by beacon may lead anywhere, so it counts too.
    """
    edges = list(edges_of(topology, {joint.candidate for joint in joints(topology)}))
    return frozenset(
        part
        for number, edge in enumerate(edges)
        if edge.trunk and (_leads_anywhere(edge) or _has_other_way(edges, number))
        for part in (edge.one, edge.other)
    )


def _leads_anywhere(edge: Edge) -> bool:
    return edge.other.startswith("url beacon:")


def _has_other_way(edges: list[Edge], number: int) -> bool:
    others = edges[:number] + edges[number + 1 :]
    steps = (step for edge in others for step in ((edge.one, edge.other), (edge.other, edge.one)))
    return edges[number].other in reached(edges[number].one, steps)


def age_s(part: str, trunk: bool, age_ms: int | None, rings: frozenset[str]) -> float:
    """Return for how long a message may wait at a trunk of `part`, in seconds; 0: for as long as it takes.

    `age_ms` is what the file says, if it does; `rings` are those of `ringed`.
    """
    if age_ms is not None:
        return age_ms / 1000
    return RING_AGE_S if trunk and part in rings else 0.0
