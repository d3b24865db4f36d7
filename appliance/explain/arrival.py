"""One arrival of a marked frame at a part: what its ledgers counted because of it, exit by exit.

Each ledger is read before the frame is offered and after. If the frame came in a batch with others, the
counts include theirs; but whether a bridge hands the frame to a pipe is seen even then.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.explain.hop import Exit, Hop, gained
from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from bridges.durable.end import End
from bridges.side import Port
from bus.hub import Link, Pipe, chain, counts_of
from bus.ledger import Stats
from bus.patch import is_patch
from bus.watch.watched import WatchedHub

EXITS_MAX: Final = 256  # pipes that one arrival is followed to
UNKNOWN: Final = ("for a reason that no ledger counts",)
Part = BusPart | BridgePart


class NamedLink(NamedTuple):
    """A link by its name in the topology. `inside` and `bus` say where it leads, as in `Exit`."""

    name: str
    inside: bool = False
    bus: str = ""


def link_of(part: Part, pipe: Pipe | None) -> NamedLink:
    """Return the link of a pipe of a part."""
    if pipe is None:
        return NamedLink("the gateway itself", True)
    side, inner = (pipe.side, pipe.inner) if isinstance(pipe, Port) else (part.hub, pipe)
    for entry in part.entries:
        if entry.hub is side and entry.link.name == inner.link:
            return NamedLink(entry.place, entry.inside, entry.bus)
    if is_patch(inner) and not inner.link.startswith("device "):  # a device names its patches by its title
        return NamedLink(f"bridge {inner.link}", True)
    return NamedLink(inner.link or inner.name)


class _Offer:
    """The offer of the frame to one pipe, and its outcome so far.

    A bridge offers the frame to a port, which hands it on to its pipe, at once or later, or drops it.
    """

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self._last = pipe, pipe.inner if isinstance(pipe, Port) else pipe
        self._is_handed = self._last is pipe
        self._filtered = dict(pipe.stats.dropped)
        self._before, self._due = counts_of(self._last), -1
        self.at_ns: int | None = None
        self.stopped: tuple[str, ...] = ()
        self.remarks: tuple[str, ...] = ()
        self.done = False

    def hand(self) -> None:
        """Note that the port is about to hand on the frame."""
        self._is_handed, self._before = True, counts_of(self._last)

    def look(self, now_ns: int) -> None:
        """Settle the outcome, if the frame has left by now or was dropped."""
        if not self._is_handed:
            self.stopped = gained(self.pipe.stats.dropped, self._filtered)
            self.done = bool(self.stopped) and not self.pipe.stats.queued
            return
        now = counts_of(self._last)
        gain = now.since(self._before)
        gone = gain.sent + sum(gain.dropped.values())
        if self._due < 0:
            self._due = gone + now.queued
        if gone >= self._due:
            self._settle(gain, now_ns)

    def _settle(self, gain: Stats, now_ns: int) -> None:
        self.done, dropped = True, gained(gain.dropped, {})
        if not gain.sent:
            self.stopped = dropped
            return
        self.at_ns = now_ns
        if isinstance(self._last, End):
            waits = self._last.files.queued
            self.remarks = (
                f"kept for {self._last.gateway} until acknowledged",
                f"{waits:,} messages wait there",
            )
        if dropped:
            others = gain.offered - 1
            self.remarks += (f"or stopped, as some of the {others} with it were: {', '.join(dropped)}",)


class Arrival:
    """An arrival of the frame at a part, from `origin`. The frame has entered once `enter` is called."""

    def __init__(self, part: Part, origin: Pipe | None, now_ns: int) -> None:
        self.part, self.origin, self.at_ns = part, origin, now_ns
        self.entered = False
        self._by = link_of(part, origin)
        self._rejected = {} if origin is None else dict(counts_of(origin).rejected)
        self._offers: list[_Offer] = []
        self._missed = 0
        self._stopped: tuple[str, ...] = ()
        self.remarks: list[str] = []

    def enter(self) -> None:
        """Note the counts of each pipe, just before the frame is offered to it."""
        self.entered = True
        others = [pipe for pipe in self.part.hub.pipes if pipe is not self.origin]
        self._offers = [_Offer(pipe) for pipe in others[:EXITS_MAX]]
        self._missed = max(0, len(others) - EXITS_MAX)

    def handed(self, port: Pipe | None) -> bool:
        """Note that a bridge hands the frame to a pipe.

        Return whether this arrival was offered to that pipe.
        """
        for one in self._offers:
            if one.pipe is port and not one.done:
                one.hand()
                return True
        return False

    def look(self, now_ns: int) -> bool:
        """Settle all offers that have an outcome by now. Return whether the frame still waits anywhere.

        Call it after all sends have been tried, and again while the frame waits.
        """
        if self.origin is not None and not self.entered and not self._stopped:
            self._stopped = gained(counts_of(self.origin).rejected, self._rejected) or UNKNOWN
        for one in self._offers:
            if not one.done:
                one.look(now_ns)
        return any(not one.done for one in self._offers)

    def hop(self) -> Hop:
        """Return the record of this arrival, as far as it is known by now."""
        stopped = () if self.entered else self._stopped
        exits = tuple(self._exits()) if self.entered else ()
        exits = tuple(one._replace(remarks=(*one.remarks, *self._renaming(one.to))) for one in exits)
        remarks = [*self.remarks, *([f"{self._missed} more pipes got it"] if self._missed else [])]
        gateway, by = self.part.site.gateway, self._by
        remarks += self._renaming(by.name)
        return Hop(self.part.title, gateway, by.name, self.at_ns, by.bus, stopped, exits, tuple(remarks))

    def _renaming(self, place: str) -> list[str]:
        """Return in words how patterns change at a side of a bridge."""
        legs = self.part.legs if isinstance(self.part, BridgePart) else []
        sides = (leg.resolved.side for leg in legs if leg.end.plan.place == place)
        return [word for side in sides for word in side.renaming.words()]

    def _exits(self) -> Iterator[Exit]:
        """Yield an exit for each link: links with pipes first, then links that have none."""
        found: dict[NamedLink, list[_Offer]] = {}
        for one in self._offers:
            found.setdefault(link_of(self.part, one.pipe), []).append(one)
        yield from (_joined(link, offers) for link, offers in found.items())
        named = {link.name for link in found} | (set() if self._is_among_peers() else {self._by.name})
        cuts = self.part.hub.cuts if isinstance(self.part.hub, WatchedHub) else ()
        cut = {link_of(self.part, one.pipe).name for one in cuts}
        for entry in self.part.entries:
            if entry.place not in named:
                stopped = ("loop",) if entry.place in cut else _idle(entry.link)
                yield Exit(entry.place, None, 0, entry.inside, entry.bus, stopped)

    def _is_among_peers(self) -> bool:
        """Return whether the link of arrival may have other peers than the sender."""
        return self.origin is not None and any(one.accepted for one in chain(self.origin))


def _joined(link: NamedLink, offers: list[_Offer]) -> Exit:
    """Join the offers to all pipes of a link into one exit."""
    sent = [one.at_ns for one in offers if one.at_ns is not None]
    waits, stops = sum(not one.done for one in offers), [one for one in offers if one.done and one.stopped]
    reasons = tuple(dict.fromkeys(reason for one in stops for reason in one.stopped))
    remarks = [remark for one in offers for remark in one.remarks]
    if waits:
        remarks.append(f"still waits at {waits} of {len(offers)}")
    if stops and len(stops) < len(offers):
        remarks.append(f"stopped at {len(stops)} of {len(offers)}: {', '.join(reasons)}")
    stopped = reasons if len(stops) == len(offers) else ()
    return Exit(link.name, max(sent, default=None), len(sent), link.inside, link.bus, stopped, tuple(remarks))


def _idle(link: Link) -> tuple[str, ...]:
    """Say why a link without pipes takes nothing."""
    if link.state == "up":
        return ("no peers",)
    return (f"{link.state}: {link.fault}" if link.fault else link.state,)
