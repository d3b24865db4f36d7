"""Search for bridges through which nothing passes, and for settings of sides that have no effect. Pure."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from bus.wire.notation import text_of
from topologies.findings import Finding, warning
from topologies.model import Candidate, Side, Topology
from topologies.wiring.durable import keepings
from topologies.wiring.filters import Tokens, begins, one_way, related, tokens
from topologies.wiring.reach import bus_at, dials_of
from topologies.wiring.segments import Joint, Wiring

_PAIRS_MAX = 1 << 16
"""The pairs of patterns that are compared; where there are more, some frame is taken to pass."""


class _Gate(NamedTuple):
    """One direction of a side: how frames begin inside the bridge that `may` cross, and those `denied`."""

    may: Sequence[Tokens]
    denied: Sequence[Tokens]


def find_idle(wiring: Wiring) -> Iterator[Finding]:
    """Yield a warning for each bridge that carries nothing, and for each setting of a side without effect."""
    bridges = dict[Candidate, list[Joint]]()
    for joint in wiring.joints:
        bridges.setdefault(joint.candidate, []).append(joint)
    can_be_late = _can_be_late(wiring.topology)
    for joints in bridges.values():
        crossing = _crossing(joints)
        if not crossing and not _is_watched(wiring.topology, joints[0].bridge):
            text = "nothing crosses this bridge: what may enter at one side may leave at no other"
            yield warning(joints[0].spec.where, text)
        for joint in joints if crossing else ():
            enters = any(joint.number == one for one, _ in crossing)
            leaves = any(joint.number == other for _, other in crossing)
            yield from _of_nothing(joint.side, enters, leaves)
        for side in (joint.side for joint in joints):
            yield from _hidden_limits(side)
            yield from _hidden_denials(side)
            if side.late and not can_be_late:
                yield warning(side.where, "late has no effect: no trunk of this file is durable")


def _crossing(joints: Sequence[Joint]) -> set[tuple[int, int]]:
    """Return the pairs of sides, by number, where some frame enters at the first and leaves at the other."""
    inward, outward = ([_gate(joint, way) for joint in joints] for way in (True, False))
    return {
        (one.number, other.number)
        for (one, enters), (other, leaves) in product(
            zip(joints, inward, strict=True), zip(joints, outward, strict=True)
        )
        if one is not other and _meet(enters, leaves)
    }


def _gate(joint: Joint, inward: bool) -> _Gate:
    side, whole = joint.side, tokens(joint.spec.pattern)
    if not inward and not side.renaming.lets_out:
        return _Gate((), ())
    names = [tokens(one) for one in side.renaming.inside(())] if side.renaming else [()]
    allow = one_way(side.allowed, inward) or [()]
    found = _longest(_longest([whole], names), allow) if len(allow) <= _PAIRS_MAX else [whole]
    return _Gate(found, one_way(side.denied, inward))


def _longest(some: Sequence[Tokens], others: Sequence[Tokens]) -> list[Tokens]:
    """Return the beginnings of frames that begin with one of `some` and with one of `others`."""
    return list({max(pair, key=len) for pair in product(some, others) if related(*pair)})


def _meet(enters: _Gate, leaves: _Gate) -> bool:
    if len(enters.may) * len(leaves.may) > _PAIRS_MAX:
        return True
    denied = (*enters.denied, *leaves.denied)
    found = _longest(enters.may, leaves.may)
    return len(found) * len(denied) > _PAIRS_MAX or any(
        not any(begins(one, start) for one in denied) for start in found
    )


def _is_watched(topology: Topology, bridge: str) -> bool:
    """Return whether a device, such as a tap, joins a bridge: it may be there for that."""
    return any(bridge in device.joins for device in topology.devices.values())


def _of_nothing(side: Side, enters: bool, leaves: bool) -> Iterator[Finding]:
    """Yield settings for frames of a direction in which none can cross the bridge."""
    inward = {"unchanged": side.unchanged is not None, "opaque": side.opaque is not None and not leaves}
    outward = {"shed": side.shed is not None, "late": side.late}
    limits = {one.direction for one in side.limits}
    inward["a limit"], outward["a limit"] = "in" in limits, "out" in limits
    for words, settings, crosses in (("enters", inward, enters), ("leaves", outward, leaves)):
        for name in () if crosses else (name for name, is_set in settings.items() if is_set):
            yield warning(side.where, f"{name} has no effect: nothing {words} the bridge here")


def _hidden_limits(side: Side) -> Iterator[Finding]:
    """Yield limits that no frame comes to: the first that fits a frame counts."""
    for place, limit in enumerate(side.limits):
        names = tokens(limit.pattern)
        for one in side.limits[:place]:
            if one.direction == limit.direction and begins(tokens(one.pattern), names):
                text = f"this limit of {text_of(limit.pattern)} has no effect: the first that fits counts"
                yield warning(limit.where, f"{text}, and that is the one of {text_of(one.pattern)}")
                break


def _hidden_denials(side: Side) -> Iterator[Finding]:
    """Yield patterns of `deny` of which `allow` lets nothing pass."""
    own = side.allow if not side.pattern else None
    for inward in (True, False):
        lets = [tokens(side.pattern)] if own is None else one_way(own, inward)
        for names in (*side.deny.both, *(side.deny.inward if inward else side.deny.outward)) if lets else ():
            if not any(related(one, tokens(names)) for one in lets):
                text = "only other patterns may cross here"
                yield warning(side.where, f"deny {text_of(names)} has no effect: {text}")


def _can_be_late(topology: Topology) -> bool:
    """Return whether a trunk is durable, here or where this file does not say."""
    for name, bus in topology.buses.items():
        if keepings(topology, name):
            return True
        far = (one.url for one in dials_of(topology, name) if one.trunk)
        if any(bus_at(topology, url, bus.on) is None for url in far):
            return True
    return False
