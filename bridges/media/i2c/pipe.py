"""The part of an I2C bus on the event loop: a pipe for each target, and one object for the whole bus."""

from asyncio import TimerHandle
from collections.abc import Callable
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING

from bridges.media.device import OpenPipe, PipeContext, cancel
from bridges.media.i2c.poll import Lane, Report, TargetState
from bridges.media.shedding import Shed, fitting
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads

if TYPE_CHECKING:
    from bridges.media.i2c.run import Runner

_AWAY_S = 0.1  # pause until a target whose pipe was closed joins again


class TargetPipe(Pipe):
    """A pipe to one target. `stats` continues from one opening of the bus to the next.

    `state` is `closed` (the bus or this pipe is closed), `linking`, `up`, `stalled` (the target answers, but
    does not serve its mailbox), `absent` (it does not answer) or `stuck` (no target on the bus answers).
    `fault` describes the last error. `resets` counts resets of the mailbox link, `failures` failed accesses.
    """

    def __init__(self, link: str, address: int, shed: Shed) -> None:
        self.name, self.link, self.address, self.shed = f"{link}:{address:#04x}", link, address, shed
        self.stats = Stats()
        self._hub: Hub | None = None
        self._lane: Lane | None = None
        self._wake: Callable[[], None] = lambda: None
        self._on_close: Callable[[TargetPipe], None] = lambda _: None
        self._clock: Callable[[], float] = monotonic
        self._resets = self._failures = 0

    @property
    def state(self) -> TargetState:
        return self._lane.state if self._lane is not None else "closed"

    @property
    def fault(self) -> str:
        return self._lane.fault if self._lane is not None else ""

    @property
    def resets(self) -> int:
        return self._resets + (self._lane.controller.resets if self._lane is not None else 0)

    @property
    def failures(self) -> int:
        return self._failures + (self._lane.controller.nacks if self._lane is not None else 0)

    def open(
        self,
        hub: Hub,
        lane: Lane,
        wake: Callable[[], None],
        clock: Callable[[], float],
        on_close: Callable[["TargetPipe"], None],
    ) -> None:
        """Attach to `hub` when the bus is open. `clock` is the poller's; `close` calls `on_close`."""
        self._hub, self._lane, self._wake, self._clock = hub, lane, wake, clock
        self._on_close = on_close
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        lane = self._lane
        if lane is None:
            return self.stats.drop("closed", batch.count)
        if reason := lane.refused:
            return self.stats.drop(reason, batch.count)
        fit = fitting(payloads(batch), self.stats)
        with lane.lock:
            lane.queue.put(self._clock(), fit)
        return self._wake()

    def revise(self, shed: Shed) -> None:
        """Change to another shed policy, for all messages that wait."""
        self.shed = shed
        if self._lane is not None:
            with self._lane.lock:
                self._lane.queue.revise(shed)
            self._wake()

    def take(self, reports: list[Report]) -> None:
        """Process the poller's reports about this target, in order."""
        for report in reports:
            if report.outcome:
                self._settle(report)
            for reason, number in (report.rejected or {}).items():
                self.stats.reject(reason, number)
        messages = [report.message for report in reports if report.message is not None]
        if messages and self._hub is not None:
            self._hub.publish(from_payloads(messages), self)

    def _settle(self, report: Report) -> None:
        stats = self.stats
        stats.queued -= report.number
        stats.queued_bytes -= report.size
        if report.outcome == "sent":
            stats.sent += report.number
            stats.sent_bytes += report.size
        else:
            stats.drop(report.outcome, report.number)

    def close(self) -> None:
        """Leave the hub and drop the queued messages. Idempotent. The bus and the other targets continue.

        If the bus is open, the target soon joins again, just as other links open a closed pipe again.
        """
        hub, lane, self._hub, self._lane = self._hub, self._lane, None, None
        if hub is None or lane is None:
            return
        hub.detach(self)
        self._resets += lane.controller.resets
        self._failures += lane.controller.nacks
        self._wake = lambda: None
        if self.stats.queued:
            self.stats.drop("closed", self.stats.queued)
            self.stats.queued = self.stats.queued_bytes = 0
        self.stats.reject("unfinished", int(lane.controller.inbox.open))
        lane.closed = True
        self._on_close(self)

    def holds(self, lane: Lane) -> bool:
        """Return whether the pipe is open on `lane`. The caller ignores reports of an earlier opening."""
        return self._lane is lane


class I2cBus(OpenPipe):
    """An open bus with all its targets. It is the pipe of its link, but only the targets join the hub."""

    def __init__(
        self,
        targets: dict[int, TargetPipe],
        make_lane: Callable[[TargetPipe], Lane],
        make_runner: Callable[["I2cBus"], "Runner"],
        context: PipeContext,
    ) -> None:
        super().__init__(context)
        self._targets, self._make_lane = targets, make_lane
        self.lanes = {address: make_lane(target) for address, target in targets.items()}
        self._joining: dict[int, TimerHandle] = {}
        self._runner = make_runner(self)

    @property
    def stuck(self) -> bool:
        return self._runner.poller.stuck

    def start(self) -> None:
        for target in self._targets.values():
            self._open(target)
        self._runner.start()

    def revise(self, shed: Shed) -> bool:
        for target in self._targets.values():
            target.revise(shed)
        return True

    def _open(self, target: TargetPipe) -> None:
        lane = self.lanes[target.address]
        target.open(self._hub, lane, self._runner.wake, self._loop.time, self._left)

    def _left(self, target: TargetPipe) -> None:
        """Schedule a target to join again after its pipe was closed while the bus is open."""
        if not self._closed:
            self._joining[target.address] = self._loop.call_later(_AWAY_S, self._join, target)

    def _join(self, target: TargetPipe) -> None:
        del self._joining[target.address]
        lane = self.lanes[target.address] = self._make_lane(target)
        self._runner.poller.join(lane)
        self._open(target)
        self._runner.wake()

    def on_reports(self, reports: list[Report]) -> None:
        """Process the poller's reports, on the loop. Successive reports of one target become one batch."""
        for lane, some in groupby(reports, key=lambda report: report.lane):
            target = self._targets[lane.address]
            if target.holds(lane):
                target.take(list(some))
            else:
                target.stats.reject("closed", sum(report.message is not None for report in some))

    def gone(self, why: str) -> None:
        """End the pipe, because the adapter is lost. Idempotent."""
        self._gone(why)

    def _end(self, why: str) -> None:
        cancel(*self._joining.values())
        self._runner.stop()
        for target in self._targets.values():
            target.close()
