"""Check of promised rates, and of what devices repeat, against the media. Their records give the worst wire
time of a frame or an item."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from heapq import nlargest

from bridges.protocols.protocol import Protocol
from bus.key_types import Names
from topologies.findings import Finding, error, warning
from topologies.model import BridgeSpec, Candidate, Rate, Side, Topology
from topologies.wiring.filters import Tokens, begins, one_way, related, tokens
from topologies.wiring.keys import keys_at
from topologies.wiring.segments import Joint, Wiring

JoinPlace = tuple[Candidate, int]  # the best candidate for a bridge, and the place of a side in its `join`

FULL = 0.7  # share of its capacity above which the queue to a medium grows long


def frame_bytes(rate: Rate, spec: BridgeSpec) -> int:
    """Return the number of bytes in one TMQ frame of a promised rate."""
    count = max(len(rate.pattern), len(spec.pattern)) if rate.tokens is None else rate.tokens
    return 4 + 4 * count + rate.data_bytes


def find_overloads(wiring: Wiring) -> list[Finding]:
    """Return errors for media that cannot carry the rates and state no policy; warnings if nearly full."""
    topology = wiring.topology
    users: dict[str, dict[JoinPlace, Joint]] = defaultdict(dict)
    findings = []
    for joint in wiring.joints:
        if not joint.spec.rates:
            continue
        if joint.side.medium and (why := joint.side.medium.unjudged()):
            findings.append(warning(joint.side.where, f"rates are promised, but {why}"))
        else:
            # Of the candidates for a bridge one forwards at a time: the one with the slowest medium counts.
            place = wiring.candidates[joint.bridge][0], joint.number
            there = users[joint.wire]
            there[place] = max(there.get(place, joint), joint, key=partial(_share, topology))
    findings += [f for name, there in users.items() if (f := _judge(wiring, name, [*there.values()]))]
    findings += [one for joint in wiring.joints for one in _too_long(joint)]
    return findings + _strays(topology) + list(_crowded(wiring))


def _crowded(wiring: Wiring) -> Iterator[Finding]:
    """Yield a warning for each wire that the items which devices repeat nearly fill, by their cycle times."""
    seen = list[tuple[str, Protocol]]()
    for joint in wiring.joints:
        medium, protocol = joint.side.medium, joint.side.speaks
        if medium is None or protocol is None or (joint.wire, protocol) in seen:
            continue
        seen.append((joint.wire, protocol))
        shares = {
            one.name: (medium.item_seconds(one.item) or 0.0) / one.period_s for one in protocol.cycles()
        }
        if (share := sum(shares.values())) > FULL:
            most = ", ".join(
                f"{name} {shares[name]:.0%}" for name in nlargest(3, shares, key=shares.__getitem__)
            )
            text = f"{joint.wire}: {_full(share, protocol.asks)} ({most})"
            yield warning(protocol.where, f"{text}: {_advice(share, protocol.asks)}")


def _full(share: float, asks: bool) -> str:
    """Return how full a line is of what is asked, or what devices say by themselves."""
    if asks:
        return f"at their poll_ms, requests and answers fill {share:.0%} of the line"
    return f"by their cycle times, messages fill {share:.0%} of the line"


def _advice(share: float, asks: bool) -> str:
    if asks:
        late = "devices that think are late" if share <= 1 else "it cannot keep this pace"
        return f"{late}: lengthen poll_ms, or raise the rate of the line"
    return "bursts will wait" if share <= 1 else "it cannot keep this pace: is the bit rate right?"


def _share(topology: Topology, joint: Joint) -> float:
    medium = joint.side.medium
    if medium is None:
        return 0.0
    crossing = [r for r in joint.spec.rates if _crosses(joint.spec, joint.side, r)]
    more = (medium.seal_bytes if keys_at(topology, joint.side, joint.trunk) else 0) + _renamed_bytes(
        joint.side
    )
    names = [_on_wire(joint.side, max(r.pattern, joint.spec.pattern, key=len)) for r in crossing]
    sizes = [frame_bytes(r, joint.spec) + more for r in crossing]
    times = [medium.seconds_of(*one, joint.trunk) or 0.0 for one in zip(names, sizes, strict=True)]
    times = [_spoken_s(joint.side, r) or time for r, time in zip(crossing, times, strict=True)]
    return sum(r.frames_per_s * time for r, time in zip(crossing, times, strict=True))


def _spoken_s(side: Side, rate: Rate) -> float:
    """Return the time of a frame as the protocol of a side writes it; 0 if nobody knows."""
    if side.speaks is None or side.medium is None:
        return 0.0
    exchange = side.speaks.exchange(rate.data_bytes)
    return (side.medium.item_seconds(exchange) or 0.0) if exchange is not None else 0.0


def _too_long(joint: Joint) -> Iterator[Finding]:
    """Yield an error for each promised rate whose frames leave by a side with a protocol that drops them."""
    speaks = joint.side.speaks
    if speaks is None:
        return
    for rate in joint.spec.rates:
        pattern = tokens(_on_wire(joint.side, max(rate.pattern, joint.spec.pattern, key=len)))
        leaves = speaks.way.outward is None or any(
            related(tokens(one), pattern) for one in speaks.way.outward
        )
        if rate.data_bytes > speaks.data_bytes_max and leaves and _may_pass(joint.side, pattern, False):
            most = f"{speaks.key} drops those above {speaks.data_bytes_max}: send less in one, or filter"
            yield error(rate.where, f"frames with {rate.data_bytes} bytes of data are promised, and {most}")


def _on_wire(side: Side, names: Names) -> Names:
    """Return the pattern that frames of a pattern in the bridge have on the wire of a side."""
    renaming = side.renaming
    return next(iter(renaming.outside(names)), names) if renaming else names


def _renamed_bytes(side: Side) -> int:
    """Return how many bytes longer a frame is on the wire than in the bridge, by `prefix` and `strip`."""
    there = side.strip if isinstance(side.strip, int) else len(side.strip)
    return 4 * (there - len(side.prefix))


def _crosses(spec: BridgeSpec, side: Side, rate: Rate) -> bool:
    """Return whether frames of a rate may cross a side; True in case of doubt."""
    pattern = max(tokens(rate.pattern), tokens(spec.pattern), key=len)
    return any(_may_pass(side, pattern, inward) for inward in (True, False))


def _may_pass(side: Side, pattern: Tokens, inward: bool) -> bool:
    allow, deny = one_way(side.allowed, inward), one_way(side.denied, inward)
    allowed = not allow or any(related(one, pattern) for one in allow)
    return allowed and not any(begins(one, pattern) for one in deny)


def _judge(wiring: Wiring, name: str, joined: list[Joint]) -> Finding | None:
    """Return a finding for a wire that is too full. All links say what they say by themselves: also those of
    candidates that do not forward."""
    media = [joint.side.medium for joint in wiring.joints if joint.wire == name]
    place, share = joined[0].side.where, sum(_share(wiring.topology, joint) for joint in joined)
    share += sum(medium.own_share() for medium in media if medium is not None)
    text = f"{name} is promised {share:.0%} of what it can carry"
    if share <= FULL or all(joint.side.shed for joint in joined):
        return None
    if share <= 1:
        return warning(place, f"{text}: bursts will wait")
    return error(place, f"{text}: lower the rate, filter, or give it a shed policy")


def _strays(topology: Topology) -> list[Finding]:
    return [
        warning(rate.where, "no frame of this pattern crosses the bridge, whose own pattern differs")
        for spec in topology.bridges.values()
        for rate in spec.rates
        if not related(tokens(rate.pattern), tokens(spec.pattern))
    ]
