"""Transit times: how long sampled batches take from one link of a hub to another.

A tap is put on each hub for one batch only, so that between two samples the data path does nothing for it.
Time begins when the hub is handed the batch. It ends when the far link has sent all that it was offered up to
then, or dropped it: a medium that sends later messages first makes it too long or too short. That is looked
at once all sends of the batch have been tried, and then at each bound of the histogram, so a count is exact
to its bucket.
"""

import time
from asyncio import AbstractEventLoop
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from bus.hub import Hub, Pipe, chain
from bus.wire.batch import Batch

BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_PIPES: Final = 16  # of other links, in one sample
_PAIRS: Final = 256  # in all


class Histogram(NamedTuple):
    """The times of one pair of links: `counts` for each bucket, the last for times beyond all bounds."""

    counts: list[int]
    sum_s: list[float]  # of one item, to add to


class _Watched(NamedTuple):
    """A pipe that was offered a batch, and the counts of its chain before."""

    link: str
    pipe: Pipe
    settled: int  # messages sent or dropped before
    sent: int

    def gained(self) -> int:
        return _settled(self.pipe) - self.settled

    def is_used(self) -> bool:
        """Return whether the pipe has sent anything since, and not only dropped."""
        return _sent(self.pipe) > self.sent


class Transit:
    """The sampler of transit times. `pairs` has a histogram for each hub, link in and link out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.pairs: dict[tuple[str, str, str], Histogram] = {}
        self._clock = clock
        self._armed: dict[Hub, Callable[[Batch, Pipe | None], None]] = {}

    def sample(self, hubs: Iterable[Hub], loop: AbstractEventLoop) -> None:
        """Measure the next batch of each hub. Hubs that are not named any more are forgotten."""
        here = set(hubs)
        for hub in [hub for hub in self._armed if hub not in here]:
            self._disarm(hub)
        for hub in here - self._armed.keys():
            tap = partial(self._begin, hub, loop)
            self._armed[hub] = tap
            hub.tap(tap)

    def close(self) -> None:
        """Take all taps off."""
        for hub in list(self._armed):
            self._disarm(hub)

    def _disarm(self, hub: Hub) -> None:
        hub.untap(self._armed.pop(hub))

    def _begin(self, hub: Hub, loop: AbstractEventLoop, _: Batch, origin: Pipe | None) -> None:
        """Note the counts of each pipe before the batch is offered."""
        self._disarm(hub)
        if origin is not None:
            watched = [_Watched(pipe.link, pipe, _settled(pipe), _sent(pipe)) for pipe in _some(hub, origin)]
            loop.call_soon(self._offered, hub.name, origin.link, watched, self._clock(), loop)

    def _offered(
        self, hub: str, one: str, watched: list[_Watched], began_s: float, loop: AbstractEventLoop
    ) -> None:
        for each in watched:
            due = each.gained() + _queued(each.pipe)
            if due:
                self._look((hub, one, each.link), each, due, began_s, 0, loop)

    def _look(
        self,
        pair: tuple[str, str, str],
        watched: _Watched,
        due: int,
        began_s: float,
        bound: int,
        loop: AbstractEventLoop,
    ) -> None:
        """Count the time if the batch has left, else look again at the next bound: number `bound` or later.

        A timer may fire a little early, so the time alone does not say which bounds are over.
        """
        took_s = self._clock() - began_s
        bound = max(bound, bisect_right(BOUNDS_S, took_s))
        is_over = bound == len(BOUNDS_S)
        if watched.gained() >= due or is_over:
            if is_over or watched.is_used():
                self._count(pair, took_s)
        else:
            at_s = loop.time() + began_s + BOUNDS_S[bound] - self._clock()
            loop.call_at(at_s, self._look, pair, watched, due, began_s, bound + 1, loop)

    def _count(self, pair: tuple[str, str, str], took_s: float) -> None:
        if pair in self.pairs or len(self.pairs) < _PAIRS:
            found = self.pairs.setdefault(pair, Histogram([0] * (len(BOUNDS_S) + 1), [0.0]))
            found.counts[bisect_left(BOUNDS_S, took_s)] += 1
            found.sum_s[0] += took_s

    def as_records(self) -> list[dict[str, Any]]:
        """Return the histograms as a status document has them."""
        return [
            {"hub": hub, "one": one, "other": other, "bounds_s": list(BOUNDS_S)}
            | {"counts": list(found.counts), "sum_s": round(found.sum_s[0], 6)}
            for (hub, one, other), found in self.pairs.items()
        ]


def _some(hub: Hub, origin: Pipe) -> Iterator[Pipe]:
    """Yield one pipe of each link but the batch's own pipe, within a bound."""
    seen = set[str]()
    for pipe in hub.pipes:
        if pipe is not origin and pipe.link not in seen:
            seen.add(pipe.link)
            yield pipe
            if len(seen) >= _PIPES:
                return


def _settled(pipe: Pipe) -> int:
    """Return the messages that a chain of pipes has sent or dropped."""
    return _sent(pipe) + sum(sum(stage.stats.dropped.values()) for stage in chain(pipe))


def _sent(pipe: Pipe) -> int:
    return list(chain(pipe))[-1].stats.sent


def _queued(pipe: Pipe) -> int:
    return sum(stage.stats.queued for stage in chain(pipe))
