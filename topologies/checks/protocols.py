"""Search for faults of the protocols that the devices of sides speak: their files, who may send, who asks."""

from collections.abc import Iterator

from bridges.protocols.protocol import Protocol, Way
from bus.key_types import Patterns
from bus.schema import Where
from bus.wire.notation import names_in, text_of
from topologies.findings import Finding, error, note, warning
from topologies.model.bridges import Side, meeting
from topologies.wiring.segments import Joint, Wiring


def find_unspoken(wiring: Wiring) -> Iterator[Finding]:
    """Yield what is wrong with the protocols of all sides."""
    seen = list[Protocol]()
    for protocol in (joint.side.speaks for joint in wiring.joints if joint.side.speaks is not None):
        if any(protocol == one and protocol.where == one.where for one in seen):
            continue
        seen.append(protocol)
        for problem in protocol.problems():
            make = error if problem.is_error else note if problem.is_note else warning
            yield make(problem.where or protocol.where, problem.text)
    yield from _uncarried(wiring)
    yield from _unheard(wiring)
    for side in (joint.side for joint in wiring.joints):
        if side.speaks is not None:
            yield from _renamed_nothing(side, side.speaks.way)
            yield from _limited_nothing(side)
    yield from _two_masters(wiring)


def _uncarried(wiring: Wiring) -> Iterator[Finding]:
    """Yield items that a protocol sends and its medium cannot."""
    for side in (joint.side for joint in wiring.joints):
        if side.speaks is not None and side.medium is not None:
            for name, item in side.speaks.leaving():
                if why := side.medium.refuses(item):
                    yield error(side.speaks.where, f"{name} {why}")


def _unheard(wiring: Wiring) -> Iterator[Finding]:
    """Yield sides whose own patterns leave nothing of what the protocol reads or sends."""
    for side in (joint.side for joint in wiring.joints if joint.side.speaks is not None):
        way, own = side.way, (side.pattern,) if side.pattern else side.allow.both
        assert way is not None  # a protocol has one
        yield from _apart(side.where, "enters", (*own, *side.allow.inward), way.inward)
        yield from _apart(side.where, "leaves", (*own, *side.allow.outward), way.outward)


def _renamed_nothing(side: Side, way: Way) -> Iterator[Finding]:
    """Yield names that a side changes, and that its protocol does not have."""
    known = _known(way.inward, way.outward)
    strip = side.strip
    if not known or isinstance(strip, int):
        return
    hint = ", and prefix comes in front of the new name" if side.prefix else ""
    for old in ((*strip, *names_in(one)) for one in side.rename):
        if not meeting((old,), known):
            text = f"rename: {text_of(old)} is no name on the wire: the protocol has"
            yield warning(side.where, f"{text} {_listed(known)}{hint}")


def _limited_nothing(side: Side) -> Iterator[Finding]:
    """Yield limits of what neither enters nor leaves under such a name."""
    way = side.way
    assert way is not None  # a protocol has one
    for limit in side.limits:
        known = _known(way.outward if limit.direction == "out" else way.inward)
        if known and limit.pattern and not meeting((limit.pattern,), known):
            text = f"limits: nothing of {text_of(limit.pattern)} passes: the names in the bridge are"
            yield warning(side.where, f"{text} {_listed(known)}")


def _known(*ways: Patterns | None) -> Patterns:
    """Return all patterns of some ways; none if one of them has any pattern."""
    return () if None in ways else tuple(dict.fromkeys(one for some in ways for one in some or ()))


def _listed(patterns: Patterns) -> str:
    return " and ".join(map(text_of, patterns[:4])) + (" ..." if len(patterns) > 4 else "")


def _apart(where: Where, verb: str, own: Patterns, ways: Patterns | None) -> Iterator[Finding]:
    if own and ways and not meeting(own, ways):
        text = f"nothing {verb} here: the protocol has {_listed(ways)}, and this side lets only"
        yield warning(where, f"{text} {' and '.join(map(text_of, own))} pass")


def _two_masters(wiring: Wiring) -> Iterator[Finding]:
    """Yield an error for each bridge that asks devices which another one asks already."""
    asking: dict[str, Joint] = {}
    for joint in wiring.joints:
        if joint.side.speaks is None or not joint.side.speaks.asks:
            continue
        first = asking.setdefault(line := _line(joint), joint)
        group, others = wiring.candidates[joint.bridge], wiring.candidates[first.bridge]
        if group != others or (joint.bridge == first.bridge and joint.number != first.number):
            names = f"bridge {first.bridge} (line {first.side.where.line})"
            text = f"{names} asks the devices on {line} already, and a device has one that asks it"
            yield error(
                joint.side.where, f"{text}: write both tables into one side, or give both bridges one group"
            )


def _line(joint: Joint) -> str:
    """Return the name of the wire on which the devices of a side are, the same on all machines."""
    medium = joint.side.medium
    assert medium is not None  # a bus has no protocol
    if medium.remote and joint.side.segment is None:
        return f"{medium.key} {medium.device}"
    return joint.wire
