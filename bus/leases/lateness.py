"""The lateness of this process: late heartbeats, and times without a turn while it holds a lease."""

import logging
from typing import NamedTuple

from bus.leases.pace import Pace
from bus.machine.real_time import is_real_time
from bus.machine.stops import Turns, stopped_s, turns

log = logging.getLogger("buscoupler.failover")


class Lost(NamedTuple):
    """A lease that was lost as this process had no turn for `stood_s`; `stopped` if others stopped it."""

    stood_s: float
    stopped: bool


class Lateness:
    """The lateness of the candidate `name`, by which its `pace` chooses how long a lease must be."""

    def __init__(self, name: str, pace: Pace) -> None:
        self._name, self._pace = name, pace
        self._turns: Turns | None = None  # at the last heartbeat
        self._stood_s, self._stopped = 0.0, False  # while it holds the lease
        self._told_ms = 0  # the lease that the log has

    def beat(self, now: float, pause_s: float) -> None:
        """Note how late this heartbeat is, and say once by how much the lease grows for that.

        The next one is due after `pause_s`, whatever priority is found now.
        """
        pace = self._pace
        self.note(now)
        pace.prioritize(is_real_time())
        pace.expect(now + pause_s)
        if pace.judge(now) >= 2 * max(self._told_ms, pace.least_ms):
            self._told_ms = pace.lease_ms
            words = f"this machine or a broker is late by up to {1000 * pace.late_s:.0f} ms, so the lease is"
            log.info("%s: %s %d ms instead of %d", self._name, words, pace.lease_ms, pace.least_ms)

    def note(self, now: float) -> None:
        """Note once how late the heartbeat is that is due."""
        pace, before = self._pace, self._turns
        self._turns = turns()
        if (late_s := pace.overdue_s(now)) >= 0:
            gone_s = stopped_s(late_s, before, self._turns)
            self._stopped = self._stopped or gone_s >= pace.stop_s
            pace.late(late_s, now, gone_s)

    def stood(self, for_s: float) -> None:
        """Note that this process had no turn for so long while it held the lease."""
        self._stood_s = max(self._stood_s, for_s)

    def begin(self) -> None:
        """Begin anew: the lease has just been taken."""
        self._stood_s, self._stopped = 0.0, False

    def lost(self, heartbeat_s: float, lease_s: float) -> Lost | None:
        """Return how this process lost the lease that it held, and begin anew; None if not by lateness."""
        found = Lost(self._stood_s, self._stopped)
        self.begin()
        return found if found.stood_s + heartbeat_s >= lease_s else None
