"""Runners of a poller: a thread for an adapter that blocks, the event loop for one that does not."""

import contextlib
import os
import select
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from bridges.media.arrivals import Arrivals
from bridges.media.i2c.alert import Alert
from bridges.media.i2c.poll import AdapterGoneError, Poller, Report
from bus.errors import words_of

_REPORTS_MAX = 1024  # the thread pauses if more reports wait for the loop
_DELIVER = 256
_LATE_S = 0.05


MakePoller = Callable[[Callable[[Report], None]], Poller]


class Runner:
    """The base class of both runners. It runs the poller from `start` to `stop` and releases the adapter."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        make_poller: MakePoller,
        alert: Alert | None,
        on_reports: Callable[[list[Report]], None],
        on_gone: Callable[[str], None],
        release: Callable[[], None],
    ) -> None:
        self._loop, self._alert = loop, alert
        self._on_gone, self._release = on_gone, release
        self._reports = Arrivals[Report](loop, on_reports, _DELIVER)
        self.poller = make_poller(self._reports.append)
        self._stopped = False

    def start(self) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        """Start a round of the poller soon, because there is a message to send."""
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError


class LoopRunner(Runner):
    """A runner on the event loop, with its clock, for adapters in memory."""

    _timer: TimerHandle | None = None

    def start(self) -> None:
        if self._alert is not None:
            self._loop.add_reader(self._alert.fileno(), self._on_alert)
        self.wake()

    def wake(self) -> None:
        if not self._stopped:
            self._at(self._loop.time())

    def _at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._run)

    def _on_alert(self) -> None:
        if self.poller.watches_alert:
            self._run()
        elif self._alert is not None:
            with contextlib.suppress(OSError):
                self._alert.is_asserted()

    def _run(self) -> None:
        try:
            due_s = self.poller.round()
        except AdapterGoneError as error:
            return self._on_gone(f"lost: {words_of(error)}")
        self._at(due_s)
        self._reports.flush()
        return None

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._alert is not None:
            self._loop.remove_reader(self._alert.fileno())
        self._release()


class ThreadRunner(Runner):
    """A runner in a thread, for adapters that block. The thread makes all calls and releases the adapter.

    `bus_lock` prevents two threads from using the bus: that of the previous opening may still be in a call.
    """

    def __init__(self, bus_lock: Lock, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._bus_lock = bus_lock
        self._bell, self._bell_lock = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC), Lock()
        self._thread = Thread(target=self._run, name="i2c", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        with self._bell_lock:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def stop(self) -> None:
        self._stopped = True
        self.wake()

    def _run(self) -> None:
        try:
            self._rounds()
        except AdapterGoneError as error:
            self._reports.call(self._gone, f"lost: {words_of(error)}")
        finally:
            self._end()

    def _rounds(self) -> None:
        while not self._stopped:
            if len(self._reports) > _REPORTS_MAX:
                self._wait(_LATE_S)
                continue
            with self._bus_lock:
                if self._stopped:
                    return
                due_s = self.poller.round()
            self._reports.announce()
            self._wait(due_s - self._loop.time())

    def _wait(self, seconds: float) -> None:
        if seconds <= 0:
            return
        waiting = select.poll()
        waiting.register(self._bell, select.POLLIN)
        if self._alert is not None and self.poller.watches_alert:
            waiting.register(self._alert.fileno(), select.POLLIN)
        waiting.poll(max(1, round(seconds * 1000)))
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)

    def _end(self) -> None:
        with self._bell_lock:
            os.close(self._bell)
            self._bell = -1
        self._release()

    def _gone(self, why: str) -> None:
        self._reports.flush()
        self._on_gone(why)
