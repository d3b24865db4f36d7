"""From the words of a topology to the links of its media."""

from bridges.media import shedding
from bridges.media.medium import Medium
from bus.hub import Link
from topologies.model import Gateway, Shed

_QUEUE_BYTES = 1 << 20


def medium_link(medium: Medium, shed: Shed | None, gateway: Gateway) -> Link:
    """Return the link of one side of a bridge, not yet open. Raises `LinkError` if it can never work."""
    policy = None if shed is None else _policy(shed, medium.queue_bytes)
    return medium.link(gateway.node, policy)


def _policy(words: Shed, queue_bytes: int | None) -> shedding.Shed:
    """Return a side's words as a policy. The queue is as large as the medium's if they do not say."""
    age_s = None if words.age_ms is None else words.age_ms / 1000
    return shedding.Shed(words.policy, words.queue_bytes or queue_bytes or _QUEUE_BYTES, age_s, words.rate)
