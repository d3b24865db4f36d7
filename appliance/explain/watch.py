"""A watch for a marked frame on all parts of one process, by taps on their hubs while it lasts."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic_ns
from typing import Final

from appliance.explain.arrival import Arrival, Part
from appliance.explain.hop import Hop
from appliance.parts.site import Entry
from bridges.bridge import Bridge
from bridges.side import Side
from bus.hub import Hub, Pipe, Tap, chain
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads

ARRIVALS_MAX: Final = 64  # arrivals that one process keeps: plain links may make a loop
LOOK_S: Final = 0.001  # between two looks at frames that wait


class _Visitor(Pipe):
    """A peer that connects for one moment to send the frame, as any peer of a link may."""

    accepted = True

    def __init__(self, link: str) -> None:
        self.name, self.link, self.stats = f"{link}#trace", link, Stats()

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.drop("peer gone", batch.count)

    def close(self) -> None:
        pass


class Watch:
    """A watch for `mark` in all messages that come to `parts`. Times are of the system's monotonic clock.

    `more`: there were more arrivals than `ARRIVALS_MAX`. Call `close` in the end.
    """

    def __init__(
        self,
        mark: bytes,
        parts: Iterable[Part],
        loop: AbstractEventLoop,
        clock_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        self.mark, self.more = mark, False
        self._loop, self._clock_ns = loop, clock_ns
        self._arrivals: list[Arrival] = []
        self._timer: TimerHandle | None = None
        self._undo: list[Callable[[], None]] = []
        for part in parts:
            self._follow(part)

    def _follow(self, part: Part) -> None:
        self._tap(part.hub, partial(self._passes, part))
        if isinstance(part.hub, Bridge):
            for side in part.hub.sides:
                self._tap(side, partial(self._comes, part, side))
            sent: Tap = partial(self._leaves, part)
            part.hub.tap_sent(sent)
            self._undo.append(partial(part.hub.untap_sent, sent))

    def _tap(self, hub: Hub, tap: Tap) -> None:
        hub.tap(tap)
        self._undo.append(partial(hub.untap, tap))

    def close(self) -> None:
        """Take all taps off. The arrivals so far stay. Idempotent."""
        while self._undo:
            self._undo.pop()()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def hops(self) -> tuple[Hop, ...]:
        """Return a hop for each arrival in order, as far as it is known by now."""
        self._look()
        return tuple(arrival.hop() for arrival in self._arrivals)

    def send(self, part: Part, entry: Entry, frame: bytes) -> None:
        """Publish the frame as if it had just come in by a link, from the only peer there or a new one."""
        batch = from_payloads([frame])
        pipes = [one for one in entry.door.pipes if one.link == entry.link.name]
        if len(pipes) == 1 and not any(one.accepted for one in chain(pipes[0])):
            return self._come(part, entry, batch, pipes[0])
        visitor = _Visitor(entry.link.name)
        entry.door.attach(visitor)
        self._come(part, entry, batch, visitor)
        return entry.door.detach(visitor)

    def _come(self, part: Part, entry: Entry, batch: Batch, pipe: Pipe) -> None:
        """Publish a batch from a pipe. Stages behind the outermost count it here, as their hubs would."""
        arrival = self._see(part, _origin(entry.hub, pipe))
        if arrival is not None and entry.link.state != "up":
            arrival.remarks.append(f"the link is {entry.link.state}, so nothing else comes in by it")
        for stage in list(chain(pipe))[1:]:
            stage.stats.receive(batch)
        entry.door.publish(batch, pipe)
        self._look()

    def _see(self, part: Part, origin: Pipe | None) -> Arrival | None:
        """Begin to follow an arrival. Return None if there are too many."""
        if len(self._arrivals) >= ARRIVALS_MAX:
            self.more = True
            return None
        made = Arrival(part, origin, self._clock_ns())
        self._arrivals.append(made)
        self._loop.call_soon(self._look)
        return made

    def _waiting(self, part: Part, origin: Pipe | None) -> Arrival | None:
        """Return the last arrival at a part, if it is from `origin` and has not entered yet."""
        last = next((arrival for arrival in reversed(self._arrivals) if arrival.part is part), None)
        return last if last is not None and last.origin is origin and not last.entered else None

    def _comes(self, part: Part, side: Side, batch: Batch, pipe: Pipe | None) -> None:
        """See a batch that comes to a side, before any rule."""
        if self.mark in batch.keep():
            origin = None if pipe is None else _origin(side, pipe)
            if self._waiting(part, origin) is None:
                self._see(part, origin)

    def _passes(self, part: Part, batch: Batch, origin: Pipe | None) -> None:
        """See a batch that a hub is about to send to its pipes."""
        if self.mark in batch.keep():
            arrival = self._waiting(part, origin) or self._see(part, origin)
            if arrival is not None:
                arrival.enter()

    def _leaves(self, part: Part, batch: Batch, port: Pipe | None) -> None:
        """See a batch that a bridge hands to a pipe, after all rules."""
        if self.mark in batch.keep():
            mine = (arrival for arrival in reversed(self._arrivals) if arrival.part is part)
            any(arrival.handed(port) for arrival in mine)

    def _look(self) -> None:
        """Settle all arrivals, and do so again soon while the frame still waits somewhere."""
        now_ns = self._clock_ns()
        waits = [arrival for arrival in self._arrivals if arrival.look(now_ns)]
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if waits and self._undo:
            self._timer = self._loop.call_later(LOOK_S, self._look)


def _origin(hub: Hub, pipe: Pipe) -> Pipe:
    """Return a pipe as the part's hub knows it: behind a side of a bridge, that is its port."""
    if not isinstance(hub, Side):
        return pipe
    return next((port for port in hub.ports if any(one is pipe for one in chain(port))), pipe)
