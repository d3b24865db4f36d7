"""Real-time priority of the thread that runs the event loop: it has its turn at once on a busy machine.

A loop that works without a pause would leave its core to nobody else. So the kernel tells when it has worked
for `GREEDY_S` without waiting (RLIMIT_RTTIME, getrlimit(2)), and it has ordinary priority for `REST_S` then.
"""

import logging
import os
import resource
import signal
from asyncio import AbstractEventLoop, TimerHandle
from types import FrameType
from typing import Final

from bus.errors import words_of

PRIORITY: Final = 1
"""The lowest of the real-time priorities (SCHED_RR, sched(7)): above all ordinary processes is enough."""
GREEDY_S: Final = 0.2
REST_S: Final = 1.0
_FLAG: Final = os.SCHED_RESET_ON_FORK  # threads and child processes have ordinary priority
log = logging.getLogger("buscoupler")


def is_real_time() -> bool:
    """Return whether the main thread of this process has real-time priority."""
    return os.sched_getscheduler(os.getpid()) & ~_FLAG in (os.SCHED_FIFO, os.SCHED_RR)


class RealTime:
    """Real-time priority for the calling thread, which must be the main thread and runs `loop`."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: TimerHandle | None = None
        self._told = False
        self._before = signal.signal(signal.SIGXCPU, self._on_greedy)
        self._take()

    def close(self) -> None:
        """Go back to ordinary priority."""
        if self._timer is not None:
            self._timer.cancel()
        _give()
        signal.signal(signal.SIGXCPU, self._before)

    def _take(self) -> None:
        """Take real-time priority; log once why the system refuses."""
        self._timer = None
        try:
            _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
            # Each time: with each signal the kernel raises the limit by a second.
            resource.setrlimit(resource.RLIMIT_RTTIME, (int(1e6 * GREEDY_S), hard))
            os.sched_setscheduler(0, os.SCHED_RR | _FLAG, os.sched_param(PRIORITY))
        except (OSError, ValueError) as error:
            advice = "allow it (LimitRTPRIO=1 in the unit, as `buscoupler install` writes), or leave it out"
            log.warning("no real-time priority: %s: %s", words_of(error), advice)

    def _on_greedy(self, number: int, frame: FrameType | None) -> None:
        """Let other processes work: the loop has not waited for `GREEDY_S`. Called between two byte codes."""
        _give()
        if self._timer is None:
            self._timer = self._loop.call_later(REST_S, self._take)
        if not self._told:
            self._told = True
            log.info("the event loop was busy for %g s, so it has ordinary priority for a while", GREEDY_S)


def _give() -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER | _FLAG, os.sched_param(0))
