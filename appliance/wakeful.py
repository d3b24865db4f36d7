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

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        for guard in self.guards:
            guard()
        return ready


class WakefulLoop(asyncio.SelectorEventLoop):
    """`guard(function)` has it called each time that the loop wakes, before anything else."""

    def __init__(self) -> None:
        self._waking = _Selector()
        super().__init__(self._waking)

    def guard(self, function: Guard) -> None:
        self._waking.guards += (function,)

    def unguard(self, function: Guard) -> None:
        """No error if it is not there."""
        self._waking.guards = tuple(g for g in self._waking.guards if g != function)
