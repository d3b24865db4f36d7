"""Courses of topologies: what the recorders of a gateway told of its hubs, and when that changed. Pure.

A recorder tells of those hubs alone at which it records. So a gateway with several recorders, in one process
or in more, has courses beside each other: what one of them does not tell of has not gone. The topologies of
one run are of one course, and so are those that tell of the same hub.
"""

from collections.abc import Iterable
from operator import attrgetter

from pipeline.analysis.shared.inventory import Version

Course = list[Version]
"""One topology after the other: each has all that was told until then and still held."""


def courses(versions: Iterable[Version]) -> list[Course]:
    """Divide topologies into courses, by the hubs and runs that they have in common."""
    ordered = sorted(versions, key=attrgetter("from_ns"))
    leaders = dict[object, object]()
    for one in ordered:
        for hub in one.hubs:
            leaders[_leader(leaders, (one.gateway, hub))] = _leader(leaders, (one.gateway, one.boot))
    groups = dict[object, list[Version]]()
    for one in ordered:
        groups.setdefault(_leader(leaders, (one.gateway, one.boot)), []).append(one)
    return [_course(group) for group in groups.values()]


def _leader(leaders: dict[object, object], name: object) -> object:
    while (other := leaders.setdefault(name, name)) != name:
        leaders[name] = name = leaders[other]
    return name


def _course(group: Iterable[Version]) -> Course:
    holding, found = list[Version](), Course()
    for one in group:
        holding = [*(other for other in holding if not _is_over(other, one)), one]
        hubs = {name: hub for other in holding for name, hub in other.hubs.items()}
        if not found or found[-1].hubs != hubs:
            found.append(one._replace(hubs=hubs))
    return found


def _is_over(one: Version, later: Version) -> bool:
    """Return whether a topology holds no more: its run told another, or ended before a run at the same hubs.
    What a run told last holds after its end: a bridge that was killed should be there."""
    has_ended = one.until_ns < later.from_ns and one.hubs.keys() & later.hubs.keys()
    return one.boot == later.boot or bool(has_ended)
