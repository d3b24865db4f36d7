"""The time that messages may wait on a trunk: where trunks form a ring, no longer than keys are remembered.

A copy that was held up for longer than that would pass as a new message (docs/wire/envelope.md).
"""

from collections import Counter

from topologies.wiring.graph import blocks
from topologies.wiring.segments import Edge, Wiring

RING_AGE_S = 4.0
"""The default on a ring: less than the 5 s for which `bridges.rules.Seen` remembers every key."""


def ringed(wiring: Wiring) -> frozenset[str]:
    """Return the parts, such as "bus hall", from which a trunk leads to a place that another way reaches too.

    All candidates of a bridge count at once, because copies of a frame can be held up over a takeover. A
    trunk that is looked for by beacon may lead anywhere, so it counts too.
    """
    block_of = blocks([edge[:2] for edge in wiring.edges])
    links_in = Counter(block_of)
    return frozenset(
        part
        for edge, block in zip(wiring.edges, block_of, strict=True)
        if edge.trunk and (links_in[block] > 1 or _leads_anywhere(edge))
        for part in (edge.one, edge.other)
    )


def _leads_anywhere(edge: Edge) -> bool:
    """Return whether a link can close a ring by itself: it leads back, or to an address found by beacon."""
    return edge.one == edge.other or edge.other.startswith("url beacon:")


def age_s(part: str, trunk: bool, age_ms: int | None, rings: frozenset[str]) -> float:
    """Return for how long a message may wait at a trunk of `part`, in seconds; 0: for as long as it takes.

    `age_ms` is what the file says, if it does; `rings` are those of `ringed`.
    """
    if age_ms is not None:
        return age_ms / 1000
    return RING_AGE_S if trunk and part in rings else 0.0
