"""The poller of one I2C bus: it gives its targets turns and detects a stuck bus (docs/wire/i2c.md).

It calls the adapter in the thread that runs it (`bridges.media.i2c.run`). It informs the event loop with
`Report`s.
"""

import errno
import logging
from collections import deque
from collections.abc import Callable, Iterable
from math import inf
from threading import Lock
from typing import Literal, NamedTuple

from bridges.media.i2c.adapter import Adapter, Trouble, trouble
from bridges.media.i2c.alert import Alert
from bridges.media.i2c.mailbox_controller import Access, Controller
from bridges.media.i2c.mailbox_segments import Timing
from bridges.media.shedding import ShedQueue
from bus.errors import words_of

log = logging.getLogger("buscoupler.bridges")

TargetState = Literal["closed", "linking", "up", "stalled", "absent", "stuck"]

UNSERVED = "answers, but serves no mailbox: another device at this address, or a program that stands still?"
_TURN_ACCESSES = 4  # a poll, a second one in case of doubt, a read, a write
_STUCK_ERRORS = 3
_STUCK_MIN_S, _STUCK_MAX_S = 0.1, 5.0
_PRESENT_S = 1.0  # between checks that the adapter is still present


class AdapterGoneError(OSError):
    """The error for an adapter that was removed."""


class Report(NamedTuple):
    """An event of one target, which has one of three forms.

    It is a message from the target; or the `outcome` of `number` messages to it, with `size` bytes in all; or
    counts of transfers from it that gave no message, by reason (`rejected`).
    """

    lane: "Lane"
    message: bytes | None = None
    outcome: str = ""
    number: int = 0
    size: int = 0
    rejected: dict[str, int] | None = None


class Lane:
    """The poller's state of one target. Hold `lock` while changing `queue`.

    The loop puts messages into `queue`. Only the loop updates the counts; it gets a report of each message
    that leaves. `refused` is the reason why messages to the target are dropped, "" if they are not. `closed`
    is True when the loop has closed the target's pipe.
    """

    def __init__(self, address: int, timing: Timing, queue: ShedQueue) -> None:
        self.address, self.queue, self.lock = address, queue, Lock()
        self._rejected: dict[str, int] = {}
        self.controller = Controller(timing, self._rejected)
        self.state: TargetState = "linking"
        self.fault = self.refused = ""
        self.closed = False
        self._in_flight = 0

    def turn(
        self, adapter: Adapter, clock: Callable[[], float], report: Callable[[Report], None]
    ) -> Trouble | None:
        """Make a few accesses at most. Return the trouble of the last one, or None if none was due."""
        went: Trouble | None = None
        for _ in range(_TURN_ACCESSES):
            access = self.controller.next(clock())
            if access is None:
                break
            went, message = self._make(adapter, access, clock)
            if message is not None:
                report(Report(self, message))
            self._settle(report)
            self._load(clock(), report)
            if went or self.controller.resting:
                break
        return went

    def _make(
        self, adapter: Adapter, access: Access, clock: Callable[[], float]
    ) -> tuple[Trouble, bytes | None]:
        try:
            data = perform(adapter, self.address, access)
        except Exception as error:  # a driver may raise any exception
            self.fault = words_of(error)
            self.controller.failed(clock())
            return trouble(error, adapter), None
        return "", self.controller.done(clock(), data)

    def _settle(self, report: Callable[[Report], None]) -> None:
        outcome = self.controller.outcome
        if outcome is not None:
            self.controller.outcome = None
            report(Report(self, None, outcome, 1, self._in_flight))
        if self._rejected:
            report(Report(self, rejected=dict(self._rejected)))
            self._rejected.clear()

    def _load(self, now: float, report: Callable[[Report], None]) -> None:
        if not self.queue or not self.controller.ready or self.state == "stuck":
            return
        with self.lock:
            taken = self.queue.take(now, settle=self._dropped(report))
        if taken is not None:
            self._in_flight = len(taken[1])
            self.controller.send(now, taken[1])

    def _dropped(self, report: Callable[[Report], None]) -> Callable[[int, str], None]:
        return lambda size, reason: report(Report(self, None, reason, 1, size))

    def wake(self, now: float) -> None:
        """Poll soon if `queue` has a message that the rate allows and the target can take it."""
        if self._may_send() and self.queue.ready(now):
            self.controller.wake(now)

    def _may_send(self) -> bool:
        return self.controller.state == "up" and self.controller.ready

    def due_s(self, now: float) -> float:
        """Return the time of the target's next turn."""
        ready_s = self.queue.ready_s()
        return min(self.controller.due_s, ready_s if ready_s > now and self._may_send() else inf)

    def shed(self, report: Callable[[Report], None]) -> None:
        """Drop waiting messages if the target is `refused`, because they would arrive late."""
        if self.refused and self.queue:
            with self.lock:
                self.queue.clear(self.refused, self._dropped(report))


def perform(adapter: Adapter, address: int, access: Access) -> bytes:
    """Make one access on the bus. Return the bytes read, or none for a write."""
    if access.size:
        return bytes(adapter.read_i2c_block_data(address, access.register, access.size))
    adapter.write_i2c_block_data(address, access.register, list(access.data))
    return b""


class Poller:
    """The poller of all targets of a bus. Each target that is due gets one turn in a round.

    `stuck` means that every access fails on every address, and not by a missing acknowledgement. Without an
    alert line idle targets are polled every `idle_s`; with one, every `rest_s` while it is not asserted.
    """

    def __init__(
        self,
        name: str,
        adapter: Adapter,
        lanes: Iterable[Lane],
        clock: Callable[[], float],
        report: Callable[[Report], None],
        alert: Alert | None = None,
    ) -> None:
        self.name, self.lanes = name, list(lanes)
        self.stuck = False
        self._adapter, self._clock, self._report, self._alert = adapter, clock, report, alert
        self._joining: deque[Lane] = deque()
        self._asserted = False
        self._errors = 0
        self._failing: set[int] = set()
        self._stuck_s = self._probe_s = self._pause_s = 0.0
        self._look_s = clock()

    @property
    def watches_alert(self) -> bool:
        """Whether to wait for a change of the alert line. While it is asserted, targets are polled anyway."""
        return self._alert is not None and not self._asserted

    def round(self) -> float:
        """Give each due target a turn. Return the time of the next round. Raises `AdapterGoneError`."""
        self._look_at_adapter()
        self._look_at_alert()
        self._look_at_lanes()
        if self.stuck:
            self._probe()
        else:
            for lane in self.lanes:
                lane.wake(self._clock())
                self._turn(lane)
        now = self._clock()
        for lane in self.lanes:
            lane.refused = self._refusal(lane, now)
            lane.shed(self._report)
        if self.stuck and self.lanes:
            return self._probe_s
        return min((lane.due_s(now) for lane in self.lanes), default=now + 1)

    def join(self, lane: Lane) -> None:
        """Add a target from the next round on. May be called from any thread."""
        self._joining.append(lane)

    def _look_at_lanes(self) -> None:
        self.lanes = [lane for lane in self.lanes if not lane.closed]
        while self._joining:
            lane = self._joining.popleft()
            lane.state = "stuck" if self.stuck else lane.state
            self.lanes.append(lane)

    def _refusal(self, lane: Lane, now: float) -> str:
        if lane.state == "stuck":
            return "stuck" if now - self._stuck_s >= lane.controller.timing.stall_s else ""
        return lane.state if lane.state in ("absent", "stalled") else ""

    def _look_at_adapter(self) -> None:
        """Check that the adapter is present: an unbound one still answers until all users have closed it."""
        now = self._clock()
        if now < self._look_s:
            return
        self._look_s = now + _PRESENT_S
        if not self._adapter.present():
            raise AdapterGoneError(errno.ESHUTDOWN, "the adapter is gone")

    def _look_at_alert(self) -> None:
        if self._alert is None:
            return
        before, now = self._asserted, self._clock()
        try:
            self._asserted = self._alert.is_asserted()
        except OSError as error:
            log.error("%s: lost the alert line, polling continues without it: %s", self.name, error)
            self._alert, self._asserted = None, True
        for lane in self.lanes:
            timing = lane.controller.timing
            lane.controller.idle_s = timing.idle_s if self._asserted else timing.rest_s
            if self._asserted and not before:
                lane.controller.wake(now)

    def _turn(self, lane: Lane) -> None:
        went = lane.turn(self._adapter, self._clock, self._report)
        if went == "gone":
            raise AdapterGoneError(errno.ESHUTDOWN, f"the adapter is gone: {lane.fault}")
        if went is not None:
            self._judge(lane, went)
        if not self.stuck:
            self._enter(lane, lane.controller.state)
            if lane.state == "up":
                lane.fault = ""

    def _enter(self, lane: Lane, state: TargetState) -> None:
        """Set the state of a target. Log when it begins or ends to be one that serves no mailbox."""
        before, lane.state = lane.state, state
        if before != state and state == "stalled":
            log.warning("%s: %#04x %s", self.name, lane.address, UNSERVED)
        elif before == "stalled" and state == "up":
            log.info("%s: %#04x serves its mailbox again", self.name, lane.address)

    def _judge(self, lane: Lane, went: Trouble) -> None:
        """Decide whether the bus is stuck: errors on every address, and no answer or NACK in between."""
        if went != "bus":
            self._errors = 0
            self._failing.clear()
            if self.stuck:
                self._free()
            return
        self._errors += 1
        self._failing.add(lane.address)
        if (
            not self.stuck
            and self._errors >= _STUCK_ERRORS
            and all(one.address in self._failing for one in self.lanes)
        ):
            self._seize(lane.fault)

    def _seize(self, fault: str) -> None:
        log.warning("%s: stuck (SDA or SCL held low?): %s", self.name, fault)
        self.stuck = True
        self._pause_s = _STUCK_MIN_S
        self._stuck_s = self._clock()
        self._probe_s = self._stuck_s + self._pause_s
        for lane in self.lanes:
            lane.state, lane.fault = "stuck", fault

    def _free(self) -> None:
        log.info("%s: no longer stuck", self.name)
        self.stuck = False
        for lane in self.lanes:
            lane.state = lane.controller.state
            lane.controller.wake(self._clock())

    def _probe(self) -> None:
        """Try one target after growing pauses, each time the next one."""
        now = self._clock()
        if now < self._probe_s or not self.lanes:
            return
        self._pause_s = min(2 * self._pause_s, _STUCK_MAX_S)
        self._probe_s = now + self._pause_s
        self.lanes.append(self.lanes.pop(0))
        self.lanes[0].controller.wake(now)
        self._turn(self.lanes[0])
