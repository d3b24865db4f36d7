"""The description of a bus or a bridge that a recorder keeps: who may run it, and what passes there."""

from collections.abc import Iterator
from typing import Any

from appliance.parts.bus import BusPart
from appliance.parts.device import Joined
from capture.schema import ANY
from topologies.model import Side
from topologies.wiring.filters import tokens


def described(part: Joined) -> dict[str, Any]:
    """Say who may run a part and what passes there, as a recorder takes it."""
    if isinstance(part, BusPart):
        trunks = list(part.resolved.trunks)
        return {"gateways": [part.spec.on], **({"trunks": trunks} if trunks else {})}
    sides = [_described_side(leg.resolved.segment, leg.resolved.side) for leg in part.legs]
    pattern = list(tokens(part.resolved.pattern))
    return {"gateways": list(part.resolved.on), "pattern": pattern, "sides": sides}


def _described_side(segment: str, side: Side) -> dict[str, Any]:
    found: dict[str, Any] = {"segment": segment, **dict(_front(side))}
    if side.medium is not None and (side.medium.listens or any(side.medium.lets_in())):
        found["listens"] = True
    for name, lists in (("allow", side.allowed), ("deny", side.denied)):
        every = {name: lists.both, f"{name}_in": lists.inward, f"{name}_out": lists.outward}
        found |= {key: [list(tokens(names)) for names in some] for key, some in every.items() if some}
    return found


def _front(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield what stands between the wire of a side and the bridge: a protocol, other names, fewer frames."""
    front, protocol = side.front, side.speaks
    if protocol is not None:
        yield "protocol", protocol.key
        yield from (("same", protocol.same),) if protocol.same else ()
        if protocol.judge is not None:  # it lets some of a pattern pass, by the token after it
            every = dict.fromkeys((*side.allowed.inward, *side.allowed.outward))
            yield "deep", [[*tokens(names), ANY] for names in every]
    if front.renaming or front.opaque is not None:
        yield "renamed", True
    if (strip := front.renaming.strip) and isinstance(strip, int):
        yield "strip", strip
    if front.renaming:
        yield "names", [[list(one), list(other)] for one, other in front.renaming.pairs()]
    if front.opaque is not None:
        yield "opaque", list(tokens(front.opaque))
    if front.refresh_s is not None:
        yield "refresh_ms", round(front.refresh_s * 1000)
    if front.limits:
        yield "limited", True
