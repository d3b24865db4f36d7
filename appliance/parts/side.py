"""One side of a bridge: the plan of the link to its medium, its front and its names, by resolved records."""

from collections.abc import Callable
from typing import Any

from appliance.parts.bus import LIMITS
from appliance.parts.changes import Plan
from appliance.status.rows import Far
from bridges.front.settings import Front
from bridges.media import shedding
from bridges.media.medium import Medium
from bridges.policy import Policy
from bridges.side import Side
from bus.hub import Hub, Link
from bus.keys import Keyring, ring_of
from bus.schema import settings_of
from topologies.model import Shed
from topologies.resolved.bridges import ResolvedMedium, ResolvedSide
from topologies.resolved.files import paths_of

_QUEUE_BYTES = 1 << 20
_SOFT = (
    LIMITS
    | {"shed", "age_ms", "subscribe", "publish", "patterns", "mates", "names", "held_s"}
    | {"spoken_beside"}
)


def medium_plan(resolved: ResolvedMedium, policy: Policy, may_act: Callable[[float], bool]) -> Plan[Link]:
    """Plan the link of a medium."""
    medium, protocol, shed, more = resolved.medium, resolved.protocol, resolved.shed, _asked(resolved)
    settings = {
        **settings_of(medium),
        **more,
        "shed": shed,
        "node of the gateway": resolved.node,  # a CAN bus may have its own, which this must not hide
        "certificates": resolved.certificates,
        "keys": resolved.keys,
        "protocol": protocol,
        "files of the protocol": resolved.protocol_files,
        "subjects of TMQ": resolved.subjects,
    }

    def make() -> Link:
        if protocol is not None:
            asked: dict[str, Any] = {"names": resolved.names or ()} if protocol.named else {}
            asked |= {"subjects": resolved.subjects} if resolved.subjects else {}
            return medium.speaking(protocol, _shed_of(medium, shed), may_act=may_act, **asked)
        return medium_link(medium, shed, resolved.node, ring_of(paths_of(resolved.keys)), **more)

    return Plan(resolved.label, settings, make, policy, _SOFT)


def _asked(resolved: ResolvedMedium) -> dict[str, Any]:
    """Return the arguments that the link of a medium takes beside its settings."""
    asked: dict[str, Any] = {"mates": resolved.mates} if resolved.medium.selective else {}
    asked |= {} if resolved.names is None else {"names": list(resolved.names)}
    asked |= {"spoken_beside": True} if resolved.spoken_beside else {}
    return asked | ({"held_s": resolved.held_s} if resolved.held_s else {})


def medium_link(
    medium: Medium, words: Shed | None, node: int | None, keys: Keyring | None = None, **more: Any
) -> Link:
    """Return the link of one side of a bridge, not yet open. Raises `LinkError` if it can never work.

    `words` is the shed policy of the file; without them the queue is as large as the medium's. `node` is the
    gateway's node id. `keys` are for a medium that signs, and `more` is what else the medium asks for
    (`Medium.link`).
    """
    more |= {"keys": keys} if keys is not None else {}
    return medium.link(node, _shed_of(medium, words), **more)


def _shed_of(medium: Medium, words: Shed | None) -> shedding.Shed | None:
    """Return the policy of a queue, by the words of the file; None without words."""
    if words is None:
        return None
    age_s = None if words.age_ms is None else words.age_ms / 1000
    queue_bytes = words.queue_bytes or medium.queue_bytes or _QUEUE_BYTES
    return shedding.Shed(words.policy, queue_bytes, age_s, words.rate)


def door_of(side: Side, front: Front | None, old: Hub | None) -> Hub:
    """Return the hub for the link of a side: the old one, if it is of the same kind, revised."""
    if front is None:
        return side
    from bridges.front.hub import FrontHub  # late, as the links of media: few sides have one

    if not isinstance(old, FrontHub):
        return FrontHub(side, front)
    if old.front != front:
        old.revise(front)
    return old


def label_of(resolved: ResolvedSide, link: str) -> str:
    """Return the name of a side as in the file: the bus that it joins, or the name of its link."""
    if resolved.bus is None:
        return link
    return f"bus {resolved.bus.name}{' (trunk)' if resolved.trunk else ''}"


def far_of(resolved: ResolvedSide) -> Far:
    """Return who is at the far end of a side. On a medium there may be devices, also if it is a trunk."""
    return "outside" if not resolved.leads else "inside" if resolved.near else "plant"
