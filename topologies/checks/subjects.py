"""Search for links of one wire that do not agree on the Cyphal subjects of patterns."""

from collections.abc import Iterator

from bridges.media.medium import Medium
from bus.key_types import Names
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern
from topologies.findings import Finding, error, warning
from topologies.wiring.segments import Joint, Wiring

Side = tuple[Joint, Medium]


def find_subjects(wiring: Wiring) -> Iterator[Finding]:
    """Yield what is wrong with the subjects of media: each by itself, and beside others of its wire."""
    for joint in wiring.joints:
        if joint.side.medium is not None:
            for problem in joint.side.medium.problems():
                yield (error if problem.is_error else warning)(problem.where, problem.text)
    for sides in wires_with_subjects(wiring).values():
        yield from _disagreeing(sides)
        yield from _ignorant(sides)


def wires_with_subjects(wiring: Wiring) -> dict[str, list[Side]]:
    """Return, by wire, all sides of TMQ on those on which a pattern has a subject of its own."""
    found = dict[str, list[Side]]()
    for joint in wiring.joints:
        if joint.side.medium is not None and joint.side.speaks is None:
            found.setdefault(joint.wire, []).append((joint, joint.side.medium))
    return {
        wire: sides for wire, sides in found.items() if any(medium.pattern_subjects for _, medium in sides)
    }


def _disagreeing(sides: list[Side]) -> Iterator[Finding]:
    """Yield an error for each pattern and each number that means something else to another side."""
    patterns, numbers = dict[Pattern, tuple[int, str]](), dict[int, tuple[Pattern, str]]()
    for joint, medium in sides:
        owner = f"bridge {joint.bridge} on {joint.gateway}"
        for names, one in medium.pattern_subjects.items():
            if one.number is None:
                continue
            pattern, shown = Pattern(*names), text_of(names)
            number, whose = patterns.setdefault(pattern, (one.number, owner))
            other, another = numbers.setdefault(one.number, (pattern, owner))
            if number != one.number:
                yield error(one.where, f"{shown} is subject {number} to {whose} on this wire: write the same")
            elif other != pattern:
                taken = f"{text_of(other.names)} to {another}"
                yield error(one.where, f"{shown}: subject {one.number} is {taken} on this wire")
            elif any(one.number in media.subjects_of_tmq[:1] for _, media in sides):
                yield error(one.where, f"{shown}: {one.number} is the subject of TMQ on this wire")


def _ignorant(sides: list[Side]) -> Iterator[Finding]:
    """Yield a warning for each side that does not hear a pattern, as it does not know its subject."""
    known: dict[Pattern, Names] = {
        Pattern(*names): names for _, medium in sides for names in medium.pattern_subjects
    }
    for _, medium in sides:
        own = {Pattern(*names) for names in medium.pattern_subjects}
        missing = [text_of(names) for pattern, names in known.items() if pattern not in own]
        if missing:
            some = ", ".join(missing[:4]) + (", ..." if len(missing) > 4 else "")
            text = f"it does not hear {some}, whose frames have subjects of their own on this wire"
            yield warning(medium.where, f"{text}: write the same subjects")
