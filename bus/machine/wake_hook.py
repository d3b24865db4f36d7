"""An event loop that looks at the time before it handles any event.

A process that was frozen (SIGSTOP, a paused virtual machine, a long stall) wakes with its sockets ready and
its queues full. Timers run after those; a guard runs before.
"""

import asyncio
import selectors
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from bus.machine.aside import in_thread

T = TypeVar("T")

Guard = Callable[[], None]


class _Selector(selectors.DefaultSelector):
    def __init__(self, on_fault: Callable[[Exception], None]) -> None:
        super().__init__()
        self.guards: tuple[Guard, ...] = ()
        self._on_fault = on_fault

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        for guard in self.guards:
            try:
                guard()
            except Exception as error:  # raised from here, it would end the loop and the process
                self._on_fault(error)
        # A guard may have closed some of them. The loop would look for their descriptors, and end.
        return [(key, events) for key, events in ready if self._is_open(key)] if self.guards else ready

    def _is_open(self, ready: selectors.SelectorKey) -> bool:
        try:
            return self.get_key(ready.fd).fileobj is ready.fileobj
        except KeyError:
            return False


class WakefulLoop(asyncio.SelectorEventLoop):
    """An event loop that calls its guards each time it wakes, before any event handler."""

    def __init__(self) -> None:
        self._waking = _Selector(self._on_fault)
        super().__init__(self._waking)

    def _on_fault(self, error: Exception) -> None:
        self.call_exception_handler({"message": "a guard failed", "exception": error})

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Run `func` in `executor`; without one, in a thread of its own that nothing ever waits for."""
        if executor is None:
            return in_thread(self, partial(func, *args))
        return super().run_in_executor(executor, func, *args)

    def guard(self, function: Guard) -> None:
        """Call `function` at each wake-up."""
        self._waking.guards += (function,)

    def unguard(self, function: Guard) -> None:
        """Stop calling `function`. No error if it is no guard."""
        self._waking.guards = tuple(g for g in self._waking.guards if g != function)


def stood_still(slept_s: float) -> str:
    """Return the text why input that waits to be read is given up."""
    return f"this process stood still for {slept_s:.1f} s, so what came meanwhile is too old"


class Standstill:
    """A watch that calls `woke(slept_s)` before a loop handles events, if it stood still for over `limit_s`.

    Something must wake the loop more often than that. Loops of other kinds are not watched.
    """

    def __init__(self, woke: Callable[[float], None]) -> None:
        self._woke, self._limit_s, self._looked_s = woke, 0.0, 0.0
        self._loop: WakefulLoop | None = None

    def watch(self, loop: AbstractEventLoop, limit_s: float) -> None:
        """Watch a loop from now on; with a limit of 0, stop watching. Idempotent."""
        self.end()
        self._limit_s = limit_s
        if limit_s and isinstance(loop, WakefulLoop):
            self._loop, self._looked_s = loop, loop.time()
            loop.guard(self._look)

    def _look(self) -> None:
        assert self._loop is not None
        now = self._loop.time()
        slept_s, self._looked_s = now - self._looked_s, now
        if slept_s > self._limit_s:
            self._woke(slept_s)

    def end(self) -> None:
        """Stop watching. Idempotent."""
        if self._loop is not None:
            self._loop.unguard(self._look)
            self._loop = None
