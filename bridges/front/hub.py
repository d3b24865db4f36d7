"""The front as a hub between a link and a side: it has a stage for each pipe, and does what the file asks."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bridges.front.rewriting import Refuse, Turns, rewritten
from bridges.front.settings import Front, Limit
from bridges.front.thinning import LIMIT, UNCHANGED, Judge, Limits, Memory, passing
from bridges.front.wrapping import Wrapping
from bus.hub import Hub, Pipe, without
from bus.ledger import Stats
from bus.vacancy import Filter
from bus.wire.batch import Batch, from_payloads, payloads

if TYPE_CHECKING:
    from bridges.side import Side

Step = Callable[[Batch, Refuse], Batch | None]
"""A function that returns the messages of a batch that go on, and counts the others."""


class FrontPipe(Pipe):
    """A stage in front of `inner`, which changes what leaves. Its `sent` counts what it handed on."""

    inner: Pipe

    def __init__(self, inner: Pipe, front: "FrontHub") -> None:
        self.name, self.link, self.inner, self.stats = inner.name, inner.link, inner, Stats()
        self._front, self.answers = front, inner.answers
        self.revise()

    def revise(self) -> None:
        """Do what the present settings ask, from the next batch on."""
        self._limits, self._names = self._front.exits()

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        passed = _through(self._limits, batch, self.stats.drop)
        if self.answers and (rest := _lacking(batch, passed)):
            self.turn_away(rest, LIMIT)
        out = None if passed is None else _through(self._names, passed, self.stats.drop)
        if out is None:
            return None
        self.stats.sent += out.count
        self.stats.sent_bytes += len(out.data)
        return self.inner.send(out)

    def turn_away(self, messages: Sequence[bytes], reason: str) -> None:
        """Tell the pipe inside of these messages by the patterns that they have on the wire."""
        out = _through(self._names, from_payloads(messages), lambda *_: None)
        if out is not None:
            self.inner.turn_away(payloads(out), reason)

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages; return them with the patterns that they have inside the bridge."""
        messages = self.inner.purge(reason)
        back = self._front.named(from_payloads(messages)) if messages else None
        return [] if back is None else payloads(back)

    def close(self) -> None:
        self.inner.close()


class FrontHub(Hub):
    """A hub between a link and `side`. It attaches a `FrontPipe` to the side for each pipe of the link.

    The accounts of the bridge include these pipes; this hub has none of its own.
    """

    __slots__ = ("_in", "_named", "_stages", "_vacant", "front", "side")

    def __init__(self, side: "Side", front: Front) -> None:
        super().__init__(side.name)
        self.side = side
        self._stages: dict[int, FrontPipe] = {}
        self.revise(front)

    def revise(self, front: Front) -> None:
        """Do what other settings ask, from the next batch on."""
        self.front = front
        self._named = self._naming(front)
        self._in, self._vacant = [*self._named, *self._thinning(front)], self.exits()
        for stage in self._stages.values():
            stage.revise()

    def _naming(self, front: Front) -> list[Step]:
        """Return the steps that give messages the patterns that they have inside the bridge."""
        steps: list[Step] = []
        if front.renaming:
            turns = Turns(front.renaming.entering, front.renaming.reach)
            steps.append(lambda batch, refuse: rewritten(batch, turns, refuse))
        if front.opaque is not None:
            steps.append(Wrapping(front.opaque).wrapped)
        return steps

    def _thinning(self, front: Front) -> list[Step]:
        limiting = self._limiting([limit for limit in front.limits if not limit.outward])
        if front.refresh_s is None:
            return limiting
        memory = Memory(front.refresh_s)
        return [self._step(memory, UNCHANGED), *(_forgetting(memory, limited) for limited in limiting)]

    def _limiting(self, limits: list[Limit]) -> list[Step]:
        return [self._step(Limits(limits), LIMIT)] if limits else []

    def _step(self, judge: Judge, reason: str) -> Step:
        return lambda batch, refuse: passing(batch, judge, self.side.bridge.clock(), reason, refuse)

    def exits(self) -> tuple[list[Step], list[Step]]:
        """Return new steps for what leaves by one pipe: limits, and what comes behind them."""
        front, steps = self.front, list[Step]()
        limits = self._limiting([limit for limit in front.limits if limit.outward])
        if front.opaque is not None:
            steps.append(Wrapping(front.opaque).unwrapped)
        if front.renaming:
            turns = Turns(front.renaming.leaving, front.renaming.reach)
            steps.append(lambda batch, refuse: rewritten(batch, turns, refuse))
        return limits, steps

    def named(self, batch: Batch) -> Batch | None:
        """Return messages of the wire as they are called inside the bridge, without those that are not."""
        return _through(self._named, batch, lambda *_: None)

    def attach(self, pipe: Pipe) -> None:
        self.pipes += (pipe,)
        stage = self._stages[id(pipe)] = FrontPipe(pipe, self)
        self.side.attach(stage)

    def detach(self, pipe: Pipe) -> None:
        """Detach a pipe and its stage. It is no error if the pipe is not attached."""
        self.pipes = without(self.pipes, pipe)
        stage = self._stages.pop(id(pipe), None)
        if stage is not None:
            self.side.detach(stage)

    def row(self, link: str) -> str:
        return self.side.row(link)

    def enlist(self, link: str, reason: str, filter: Filter | None = None) -> None:
        """Enlist a link at the side. Without a pipe it drops by `reason` only what would leave here.

        `filter` sees what that is, and also what is above a limit.
        """
        self.side.enlist(link, reason, partial(self._missed, filter))

    def _missed(self, filter: Filter | None, batch: Batch, stats: Stats) -> int:
        limits, names = self._vacant
        passed = _through(limits, batch, stats.drop)
        if filter is not None and (rest := _lacking(batch, passed)):
            named = _through(names, from_payloads(rest), lambda *_: None)
            if named is not None:
                filter(named, Stats())
        out = None if passed is None else _through(names, passed, stats.drop)
        if out is None or filter is None:
            return 0 if out is None else out.count
        return filter(out, stats)

    def strike(self, link: str) -> None:
        self.side.strike(link)

    def keep(self, link: str, stats: Stats) -> None:
        self.side.keep(link, stats)

    def fold(self, link: str, stats: Stats) -> None:
        self.side.fold(link, stats)

    def welcome(self, pipe: Pipe) -> None:
        self.side.welcome(self._stages[id(pipe)])

    def give(self, pipe: Pipe, batch: Batch) -> None:
        """Send a batch to one pipe only, as far as the side lets it out."""
        self.side.give(self._stages[id(pipe)], batch)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Publish what enters, as it is called inside the bridge.

        For each pipe: received by it = received by its stage + rejected by that, in messages.
        """
        stage = self._stages.get(id(origin))
        if stage is not None and origin is not None:
            origin.stats.receive(batch)
        stats = self.side.stats if stage is None else stage.stats
        out = _through(self._in, batch, stats.reject)
        if out is not None:
            self.side.publish(out, origin if stage is None else stage)


def _lacking(batch: Batch, passed: Batch | None) -> list[bytes]:
    """Return the messages that did not pass; the others are in the same order."""
    if passed is not None and passed.count == batch.count:
        return []
    gone, rest = list[bytes](), iter([] if passed is None else payloads(passed))
    awaited = next(rest, None)
    for message in payloads(batch):
        if message == awaited:
            awaited = next(rest, None)
        else:
            gone.append(message)
    return gone


def _forgetting(memory: Memory, limited: Step) -> Step:
    """Return a step after which `memory` knows nothing of what was above a limit: the next one is news."""

    def step(batch: Batch, refuse: Refuse) -> Batch | None:
        passed = limited(batch, refuse)
        if gone := _lacking(batch, passed):
            memory.forget(from_payloads(gone))
        return passed

    return step


def _through(steps: list[Step], batch: Batch, refuse: Refuse) -> Batch | None:
    """Return what is left of a batch after all steps."""
    out: Batch | None = batch
    for step in steps:
        if out is None:
            break
        out = step(out, refuse)
    return out
