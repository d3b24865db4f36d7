"""The wait from the grant of a lease to forwarding: a gateway reads what the one before it has sent."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from functools import partial

from bus.machine.wake_hook import WakefulLoop

Done = Callable[[], object]


class CatchUp:
    """A wait for a time, and then for what waits in our own sockets: who is late has much there."""

    def __init__(self) -> None:
        self._timer: TimerHandle | None = None
        self._is_read = self._asked = False
        self._overdue: Done | None = None

    @property
    def is_on(self) -> bool:
        """Whether the wait goes on."""
        return self._timer is not None

    def begin(self, loop: AbstractEventLoop, least_s: float, most_s: float, done: Done) -> None:
        """Wait for `least_s`, and until all is read that came by now or `most_s` are over; then call `done`.

        On loops that cannot tell what is unread, wait for `least_s`.
        """
        self.cancel()
        self._is_read = not isinstance(loop, WakefulLoop)
        self._timer = loop.call_later(least_s, partial(self._go_on, loop, most_s - least_s, done))
        if isinstance(loop, WakefulLoop) and not self._asked:
            self._asked = True  # what an earlier wait asked is told to this one
            loop.call_when_all_read(partial(self._note_read, loop))

    def _note_read(self, loop: AbstractEventLoop) -> None:
        self._asked, self._is_read = False, True
        if self._overdue is not None:
            self._end_in(loop, 0.0, self._overdue)

    def _go_on(self, loop: AbstractEventLoop, left_s: float, done: Done) -> None:
        if self._is_read:
            return self._end(done)
        self._overdue = done
        return self._end_in(loop, max(0.0, left_s), done)

    def _end_in(self, loop: AbstractEventLoop, left_s: float, done: Done) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(left_s, partial(self._end, done))

    def _end(self, done: Done) -> None:
        self.cancel()
        done()

    def cancel(self) -> None:
        """Wait no more. Idempotent."""
        self._overdue = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
