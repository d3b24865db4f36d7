"""The loop of a command: it runs one coroutine, and a signal at any moment ends it in order."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from appliance.process.interrupts import STOPS, Stopped, handled

T = TypeVar("T")


def run_loop(
    work: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run a coroutine on a loop of its own. Return its result.

    The first signal of `STOPS` cancels the coroutine, whatever moment it falls into, and then `Stopped` is
    raised. A second one does not wait for what is being closed: it raises at once. The coroutine may take
    the signals itself meanwhile, by `interrupts.handled` or `serve.Stop`. An ignored signal stays ignored.
    """
    stopping = _Stopping()
    heeded = [number for number in STOPS if signal.getsignal(number) != signal.SIG_IGN]
    with handled(stopping.on_signal, heeded), asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            return runner.run(stopping.over(work))
        except asyncio.CancelledError:
            if stopping.number:
                raise Stopped(stopping.number) from None
            raise


class _Stopping:
    """The cancellation of a coroutine by signals. `number` is the first signal, 0 before it."""

    def __init__(self) -> None:
        self.number = 0
        self._task: asyncio.Task[Any] | None = None

    async def over(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, unless a signal has come before its loop."""
        if self.number:
            work.close()
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        return await work

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.number:
            raise Stopped(number)
        self.number = number
        if self._task is not None and not self._task.done():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
