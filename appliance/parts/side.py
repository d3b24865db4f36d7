"""One side of a bridge: the plan of the link to its medium, its rules and its front, by resolved records."""

from collections.abc import Callable
from typing import Any

from appliance.parts.bus import LIMITS
from appliance.parts.changes import Plan
from appliance.status.rows import Far
from bridges.front.settings import Front
from bridges.holdoff import STEP_S
from bridges.media import shedding
from bridges.media.medium import Medium
from bridges.policy import Policy
from bridges.side import Side
from bus.hub import Hub, Link
from bus.keys import Keyring, ring_of
from bus.schema import settings_of
from topologies.model import Shed
from topologies.model import Side as SideSpec
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
        "node": resolved.node,
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

    label = medium.label() if protocol is None else f"{medium.label()} {protocol.label()}"
    return Plan(label, settings, make, policy, _SOFT)


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


def door_of(side: Side, front: Front, old: Hub | None) -> Hub:
    """Return the hub for the link of a side: the old one, if it is of the same kind, revised."""
    if not front:
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


def policy_of(resolved: ResolvedSide) -> Policy:
    """Return the rules of a side, from its own settings and from its medium."""
    side, allowed, denied = resolved.side, resolved.side.allowed, resolved.side.denied
    return Policy(
        resolved.trunk,
        allow=allowed.both,
        deny=denied.both,
        allow_in=allowed.inward,
        deny_in=denied.inward,
        allow_out=allowed.outward,
        deny_out=(*denied.outward, *resolved.keeps),
        opaque=side.medium is None or side.medium.opaque,
        hold_s=STEP_S * sum(resolved.rank),
        hold_always=bool(resolved.rank.others),
        deaf=_is_deaf(side),
        replay_s=replay_s(side),
        judge=side.judge,
        stops_in_doubt=side.speaks is not None and not side.speaks.asks and side.speaks.stops_in_doubt,
        anew=side.speaks is not None and side.speaks.anew,
        answers=side.speaks is not None and side.speaks.asks,
        late=side.late if side.medium is not None else not resolved.trunk,
    )


def replay_s(side: SideSpec) -> float | None:
    """Return how young a frame must be at a takeover to be sent there; None for as old as the window has it.

    A command must not come late. The age of `shed` counts, or else of the medium, where one is given, and the
    age of the protocol, which has a default.
    """
    medium_ms = None if side.medium is None else side.medium.replay_ms
    ages = [medium_ms if side.shed is None or side.shed.age_ms is None else side.shed.age_ms]
    if side.speaks is not None:
        ages.append(side.speaks.age_ms if side.speaks.replay and not side.speaks.asks else 0)
    return min((age / 1000 for age in ages if age is not None), default=None)


def _is_deaf(side: SideSpec) -> bool:
    """Return whether a standby cannot know there what the active bridge has sent."""
    speaks, medium = side.speaks, side.medium
    return medium is not None and (medium.deaf or (speaks is not None and speaks.deaf))
