"""An event loop that looks at the time before it hands out what has happened.

A process that was frozen (SIGSTOP, a paused virtual machine, a long stall) wakes with its sockets ready and
its queues full. Timers run after those; a guard runs before.
"""

import asyncio
import selectors
from collections.abc import Callable

Guard = Callable[[], None]


class _Selector(selectors.DefaultSelector):
    guards: tuple[Guard, ...] = ()
    on_fault: Callable[[Exception], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        for guard in self.guards:
            try:
                guard()
            except Exception as error:  # out of here it would end the loop, and the process
                self.on_fault(error)
        return ready


class WakefulLoop(asyncio.SelectorEventLoop):
    """`guard(function)` has it called each time that the loop wakes, before anything else."""

    def __init__(self) -> None:
        self._waking = _Selector()
        self._waking.on_fault = self._on_fault
        super().__init__(self._waking)

    def _on_fault(self, error: Exception) -> None:
        self.call_exception_handler({"message": "a guard failed", "exception": error})

    def guard(self, function: Guard) -> None:
        self._waking.guards += (function,)

    def unguard(self, function: Guard) -> None:
        """No error if it is not there."""
        self._waking.guards = tuple(g for g in self._waking.guards if g != function)
