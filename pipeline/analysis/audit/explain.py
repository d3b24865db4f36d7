"""Explanations of frames that did not add up, from how often each hub saw them. Pure Python.

Thousands of frames have a few dozen fault patterns: frames whose hubs counted the same have the same
explanation, so it is worked out once for each pattern (`pipeline.analysis.audit` finds these, and joins the
answers to the frames).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from capture.schema import BRIDGE, Direction
from pipeline.analysis.shared.places import NO_HEARERS, Hearers, Hub, Paths

IN_BRIDGE: Final = "in bridge"
AT_SENDER: Final = "at the sender"
ON_THE_WAY: Final = "on the way"
NOT_RECORDED: Final = "not recorded"
NO_BRIDGE: Final = "no bridge"
UPSTREAM: Final = "upstream"
LOST: Final = "lost"
DUPLICATE: Final = "duplicate"
NOT_CAPTURED: Final = "not captured"  # a fault, or none: a recorder had a hole there
NOBODY: Final = "nobody"  # a fault of nobody's: a side that listens had no peer
RECORDER: Final = "recorder"

Routes = Mapping[tuple[str, int], frozenset[str]]
"""The segments that frames of a home and flow reach (`pipeline.analysis.shared.expected`), by name."""


class Seen(NamedTuple):
    """A hub that saw a frame `n` times on a segment, in one direction."""

    hub: Hub
    segment: str
    dir: int
    n: int


class Fault(NamedTuple):
    """`n` copies too few or too many on `segment`, with the `hub` to blame if there is one.

    `unheard`: `hub` is a bus that did not hear what another one of its segment heard.
    """

    segment: str
    kind: str
    stage: str
    hub: Hub | None
    n: int
    unheard: bool = False


class Segment:
    """Counts of one segment: how many frames each bridge `put` there, and each hub `heard`, by name.

    Hubs of one name on several gateways are candidates for one bridge, and hear one after the other.
    `of_buses` tells whether the segment is several buses. Then two candidates may put one frame onto two of
    them, between which the trunk was cut: it is doubled if a bus heard it twice.
    """

    def __init__(self, of_buses: bool = False) -> None:
        self.put, self.heard = Counter[str](), Counter[str]()
        self._of_buses, self._putters = of_buses, set[Hub]()

    def add(self, one: Seen) -> None:
        """Count what a hub saw there."""
        counts = self.put if one.dir == Direction.TX else self.heard
        counts[one.hub[1]] += one.n
        if one.dir == Direction.TX:
            self._putters.add(one.hub)

    @property
    def delivered(self) -> int:
        """Frames that bridges put onto the segment."""
        put = self.put.total()
        by_candidates = self._of_buses and len(self._putters) > len(self.put)
        return min(put, max(self.heard.values(), default=put)) if by_candidates else put

    @property
    def entered(self) -> int:
        """Frames heard that no bridge had put there, if hubs hear what they put themselves."""
        return max(0, max(self.heard.values(), default=0) - self.delivered)

    @property
    def entered_most(self) -> int:
        """Frames heard that no bridge had put there, if hubs do not hear what they put themselves."""
        others = (count - (self.delivered - self.put[hub]) for hub, count in self.heard.items())
        return max([self.entered, *others])


def by_segment(seen: Iterable[Seen], hearers: Hearers = NO_HEARERS) -> dict[str, Segment]:
    """Group what hubs saw by segment, in the order of names: rows come in any. `hearers` names the segments
    that have some."""
    found = dict[str, Segment]()
    for one in seen:
        found.setdefault(one.segment, Segment(one.segment in hearers)).add(one)
    return dict(sorted(found.items()))


def homes(segments: Mapping[str, Segment], first: str, flow: int, routes: Routes) -> dict[str, int]:
    """Find where the frames came from, and how many.

    If all that was heard was also put there (a self-echo), that is `first`: of the homes of others of their
    kind, the segment that heard them first. If no bridge heard them at all, one sent them as it took over,
    and that is the home by which least is wrong. Where a hub may or may not have heard what it put itself,
    the number is taken with which fewer copies are wrong; else that of hubs that do not hear themselves.
    """
    found = {name: one.entered for name, one in segments.items() if one.entered}
    found = found or ({_unheard_home(segments, first, flow, routes): 1} if first else {})
    for name, one in segments.items():
        if one.entered_most > one.entered and (name, flow) in routes:
            guesses = {**found, name: one.entered_most}, found
            found = min(guesses, key=lambda home: _wrong(balance(segments, home, flow, routes)))
    return found


def _unheard_home(segments: Mapping[str, Segment], first: str, flow: int, routes: Routes) -> str:
    hubs = {hub for one in segments.values() for hub in one.heard}
    if any(hub.startswith(BRIDGE) for hub in hubs):
        return first
    known = [first, *sorted(name for name, its in routes if its == flow)]
    return min(known, key=lambda name: _wrong(balance(segments, {name: 1}, flow, routes)))


def _wrong(differences: Mapping[str, int]) -> int:
    return sum(map(abs, differences.values()))


def balance(
    segments: Mapping[str, Segment], home: Mapping[str, int], flow: int, routes: Routes
) -> dict[str, int]:
    """Subtract expected from delivered copies on each segment. Segments where that is 0 are left out."""
    differences = Counter({name: one.delivered for name, one in segments.items()})
    for name, count in home.items():
        differences.subtract(dict.fromkeys(routes.get((name, flow), ()), count))
    return {name: count for name, count in sorted(differences.items()) if count}


class Evidence:
    """Counts of one hub, of frames missing on a segment: `held` by it (`heard` of these from where a bridge
    had put them), `put` there, and `passed` onto the wires that lead there."""

    def __init__(self) -> None:
        self.held = self.heard = self.put = self.passed = 0

    @property
    def short(self) -> int:
        return max(0, self.held - self.put)


def evidence(
    seen: Iterable[Seen], target: str, segments: Mapping[str, Segment], paths: Paths
) -> dict[Hub, Evidence]:
    """Collect for each hub what it saw of a frame on its way to segment `target`."""
    found: dict[Hub, Evidence] = defaultdict(Evidence)
    wires = paths.towards(target)
    for one in seen:
        at, here = found[one.hub], one.segment == target
        if one.dir == Direction.TX:
            at.put += one.n * here
            at.passed += one.n * (one.segment in wires)
        elif not here:
            at.held += one.n
            at.heard += one.n * (segments[one.segment].delivered > 0)
    return dict(sorted(found.items()))


def surplus(target: str, count: int, found: Mapping[Hub, Evidence], is_home: bool) -> Fault:
    """Make the fault of a frame that came `count` times too often: an echo if it `is_home`."""
    putters = [hub for hub, one in found.items() if one.put]
    return Fault(target, "echo" if is_home else DUPLICATE, IN_BRIDGE, putters[-1] if putters else None, count)


def on_wires(segments: Mapping[str, Segment], target: str, paths: Paths) -> tuple[int, int]:
    """Count the frames put onto the wires that lead to a segment which nobody heard, and which others heard
    than the segment's own bridges."""
    names = {hub[1] for hub, segment in paths.carriers if segment == target}
    at_sender = on_way = 0
    for wire in (segments[name] for name in paths.towards(target) if name in segments):
        heard = min(wire.delivered, max(wire.heard.values(), default=0))
        at_sender += wire.delivered - heard
        on_way += max(0, heard - sum(wire.heard[name] for name in names))
    return at_sender, on_way


def losses(
    target: str, lost: int, found: Mapping[Hub, Evidence], segments: Mapping[str, Segment], paths: Paths
) -> list[Fault]:
    """Share out a loss, in this order: frames that a carrier of the segment held and did not put; frames sent
    towards the carriers that did not arrive; frames that no bridge took. The rest was lost upstream, and is
    reported there."""
    carriers = {hub: one for hub, one in found.items() if (hub, target) in paths.carriers}
    bridges = {hub: one for hub, one in found.items() if hub[1].startswith(BRIDGE)}
    holders = [hub for hub, one in carriers.items() if one.short]
    senders = [hub for hub, one in found.items() if one.passed]
    at_sender, on_way = on_wires(segments, target, paths)
    entered = max((one.held for hub, one in found.items() if hub not in bridges), default=0)
    taken = sum(one.held - one.heard for one in bridges.values())
    parts: list[tuple[str, int, Hub | None]] = [
        (IN_BRIDGE, sum(one.short for one in carriers.values()), holders[-1] if holders else None),
        (AT_SENDER, at_sender, senders[-1] if senders else None),
        (ON_THE_WAY, on_way, None),
        (NO_BRIDGE, entered - taken, None),
        (UPSTREAM, lost, None),
    ]
    faults, rest = [], lost
    for stage, most, hub in parts:
        count = min(rest, max(0, most))
        if count:
            faults.append(Fault(target, LOST, stage, hub, count))
        rest -= count
    return faults


def unheard(segments: Mapping[str, Segment], hearers: Hearers, entered: int) -> list[Fault]:
    """Find the buses that did not hear what others of their segment heard: a trunk between them lost it.

    Of the frames that `entered` each bus is due one copy, even if others heard more.
    """
    faults = []
    for name, hubs in sorted(hearers.items()):
        counts = segments[name].heard if name in segments else Counter[str]()
        most = min(entered, max((counts[hub] for _, hub in hubs), default=0))
        faults += [
            Fault(name, LOST, ON_THE_WAY, hub, most - counts[hub[1]], unheard=True)
            for hub in sorted(hubs)
            if counts[hub[1]] < most
        ]
    return faults


def explain(
    seen: Iterable[Seen], first: str, flow: int, routes: Routes, paths: Paths, is_one: bool = False
) -> tuple[int, list[Fault]]:
    """Count the frames that entered, and find what went wrong with them. `is_one`: it is one frame, however
    often it was heard."""
    seen = list(seen)
    segments = by_segment(seen, paths.hearers)
    home = homes(segments, first, flow, routes)
    if is_one and sum(home.values()) > 1:  # rows of what was put are missing
        home = {first if first in home else min(home): 1}
    faults = unheard(segments, paths.hearers, sum(home.values()))
    for target, difference in balance(segments, home, flow, routes).items():
        found = evidence(seen, target, segments, paths)
        if difference < 0:
            faults += losses(target, -difference, found, segments, paths)
        else:
            faults.append(surplus(target, difference, found, target in home))
    return sum(home.values()), faults
