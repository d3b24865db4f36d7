"""The case of a suspect at a hub: its trial, what is held for it, and the steps that are due."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Protocol

from bus.hub import Pipe
from bus.watch.held import Held
from bus.watch.loops import Content
from bus.watch.trials import HELD_BYTES, Ask, Release, Rules, Trial, Verdict
from bus.wire.batch import Batch, payloads
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped


class Timer(Protocol):
    """A call that is due later, as event loops have it."""

    def cancel(self) -> object:
        """Call it off."""


CallLater = Callable[[float, Callable[[], None]], Timer | None]


class Court(Protocol):
    """The hub of a case, as the case sees it."""

    clock: Callable[[], float]
    call_later: CallLater
    chance: Random

    def without_numbers(self, batch: Batch, gone: Sequence[int]) -> Batch | None:
        """Return a batch without some messages; None if none are left."""

    def owned(self, batch: Batch) -> Batch:
        """Return a batch that stays as it is when its decoder reads on."""

    def note_waiting(self, pipe: Pipe, count: int) -> None:
        """Note that so many messages more of a pipe wait; fewer where `count` is negative."""

    def pass_on(self, batch: Batch, origin: Pipe | None) -> None:
        """Send a batch to all pipes but its own."""

    def ask(self, like: bytes, ways: Sequence[Pipe]) -> None:
        """Send a canary that resembles a message by each way."""

    def others(self, ways: Sequence[Pipe]) -> Sequence[Pipe]:
        """Return all other ways."""

    def end(self, case: "Case", verdict: Verdict) -> None:
        """End a case, of which nothing is held any more."""


class Case:
    """A suspect at a hub. Messages of its ways wait in order until the trial is over."""

    def __init__(self, court: Court, suspect: Content[Pipe], message: bytes, rules: Rules[Pipe]) -> None:
        self.suspect, self.message = suspect, message
        self.trial = Trial[Pipe](rules, court.clock(), court.chance.choice)
        self._court, self._held = court, Held()
        self._is_moving = self._is_over = False
        self._timer: Timer | None = None
        self._set_timer()

    def is_it(self, message: bytes) -> bool:
        """Tell whether a message, with or without an envelope, is the suspect."""
        return (message[ENVELOPE_BYTES:] if is_enveloped(message) else message) == self.message

    def holds(self, batch: Batch, origin: Pipe) -> bool:
        """Hold a batch back if it is of a way of the suspect. Return whether it is held."""
        if origin.is_leaf or self._is_over:
            return False
        found = sum(map(self.is_it, payloads(batch))) if self.message in batch.keep() else 0
        if found:
            self.trial.heard(origin, found, self._court.clock())
        elif origin not in self.trial.held:
            return False
        self._held.put(origin, self._court.owned(batch))
        self._court.note_waiting(origin, batch.count)
        if self._held.bytes > HELD_BYTES:
            self.trial.overflow()
        self.move()
        return True

    def move(self) -> None:
        """Do the steps of the trial that are due."""
        if self._is_moving or self._is_over:
            return
        self._is_moving = True
        while not self._is_over and (step := self.trial.next(self._court.clock())) is not None:
            if isinstance(step, Release):
                take = (
                    self._held.take if step.everything else partial(self._held.take_first, split=self._split)
                )
                self._forward(step.way, take(step.way))
            elif isinstance(step, Ask):
                one_way = self.suspect.ways is None
                self._court.ask(self.message, self._court.others(step.ways) if one_way else step.ways)
            else:
                self.let_go(step)
        self._is_moving = False
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_over:
            delay_s = max(0.0, self.trial.due_s - self._court.clock())
            self._timer = self._court.call_later(delay_s, self.move)

    def _split(self, batch: Batch) -> tuple[Batch, Batch | None] | None:
        """Return a batch up to its first copy of the suspect, and the rest of it."""
        at = next((number for number, one in enumerate(payloads(batch)) if self.is_it(one)), None)
        if at is None:
            return None
        head = self._court.without_numbers(batch, range(at + 1, batch.count))
        assert head is not None
        return head, self._court.without_numbers(batch, range(at + 1))

    def _forward(self, origin: Pipe, batches: Iterable[Batch]) -> None:
        """Pass on what was held of a pipe."""
        for batch in batches:
            self._court.note_waiting(origin, -batch.count)
            self._court.pass_on(batch, origin)

    def leave(self, pipe: Pipe) -> None:
        """Pass on what is held of a pipe that goes."""
        self.trial.leave(pipe)
        self._forward(pipe, self._held.take(pipe))

    def let_go(self, verdict: Verdict) -> None:
        """End the trial: all that is held goes on in its order."""
        self._is_over = True
        for pipe in self._held.pipes():
            self._forward(pipe, self._held.take(pipe))
        self._close(verdict)

    def prove(self, cut: Pipe | None = None) -> None:
        """End the trial: no copy of the suspect goes on, and nothing that a pipe brought which is cut."""
        self._is_over = True
        for pipe in self._held.pipes():
            for batch in self._held.take(pipe):
                self._court.note_waiting(pipe, -batch.count)
                kept = None if pipe is cut else self._innocent(batch)
                pipe.stats.reject("loop", batch.count - (kept.count if kept else 0))
                if kept is not None:
                    self._court.pass_on(kept, pipe)
        self._close("proved")

    def _innocent(self, batch: Batch) -> Batch | None:
        copies = [number for number, one in enumerate(payloads(batch)) if self.is_it(one)]
        return self._court.without_numbers(batch, copies) if copies else batch

    def _close(self, verdict: Verdict) -> None:
        self._set_timer()
        self._court.end(self, verdict)
