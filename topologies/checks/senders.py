"""Search for sides where what the gateways send could come back in as new: one identifier has one sender.

A wire without sources, such as CAN, does not say who sent a frame. Own frames are told where the driver marks
them, and only in the process that sent them.
"""

from collections.abc import Iterator
from itertools import permutations

from bridges.protocols.protocol import Claim
from topologies.findings import Finding, error
from topologies.wiring.segments import Joint, Wiring


def find_echoes(wiring: Wiring) -> Iterator[Finding]:
    """Yield the sides that would take what they, or others of the same topology, have sent."""
    wires: dict[str, list[tuple[Joint, Claim]]] = {}
    for joint in wiring.joints:
        claim = None if joint.side.speaks is None else joint.side.speaks.claim
        if claim is not None:
            wires.setdefault(joint.wire, []).append((joint, claim))
    for sides in wires.values():
        yield from _within(sides)
        yield from _between(sides)
    yield from _overheard(wiring)


def _overheard(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides of a shared pair of wires where another gateway takes the bytes that one writes as new."""
    wires: dict[str, list[Joint]] = {}
    for joint in wiring.joints:
        medium, speaks = joint.side.medium, joint.side.speaks
        if medium is not None and medium.shared and speaks is not None and "bytes" in medium.items:
            wires.setdefault(joint.wire, []).append(joint)
    for wire, joints in wires.items():
        gateways = sorted({joint.gateway for joint in joints})
        for joint in joints if len(gateways) > 1 else ():
            speaks = joint.side.speaks
            if speaks is not None and not speaks.asks and speaks.way.outward != ():
                text = f"what {joint.gateway} writes on {wire} comes in at {', '.join(gateways)} as new"
                advice = "leave send out, or run this side on one gateway"
                yield error(
                    speaks.where, f"{text}: all hear each other there, and bytes name no sender: {advice}"
                )


def _within(sides: list[tuple[Joint, Claim]]) -> Iterator[Finding]:
    gateways = sorted({joint.gateway for joint, _ in sides})
    for joint, claim in sides:
        medium = joint.side.medium
        if medium is None or not (met := claim.overlap()):
            continue
        if len(gateways) > 1:
            yield _finding(joint, met, f"{', '.join(gateways)} are on this wire, and none tells who sent it")
        elif not medium.knows_own:
            yield _finding(joint, met, f"nothing marks our own frames on {medium.label()}")


def _between(sides: list[tuple[Joint, Claim]]) -> Iterator[Finding]:
    for (joint, claim), (other, sent) in permutations(sides, 2):
        if joint.gateway == other.gateway and (met := claim.hears(sent)):
            yield _finding(joint, met, f"the side in line {other.side.where.line} sends on the same channel")


def _finding(joint: Joint, met: str, why: str) -> Finding:
    speaks = joint.side.speaks
    assert speaks is not None
    advice = "list in receive and send what comes in and what leaves, each identifier once"
    return error(speaks.where, f"{met} leaves and comes in, so it would come back as new: {why}: {advice}")
