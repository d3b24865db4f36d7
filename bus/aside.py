"""Work that may block, in threads beside the event loop, with a bound of its time.

A thread that hangs in the kernel, as on a network file system without its server, cannot be ended. So these
threads are daemons: neither the loop nor the end of the process waits for them.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from bus.errors import BusError
from bus.files import touched

T = TypeVar("T")
LIMIT_S: Final = 5.0
HUNG_MAX: Final = 16
"""So many threads may hang at a time; more work is refused then."""
_hung: set["_Work[Any]"] = set()


class NoAnswer(BusError, TimeoutError):
    """Work that did not end in time; its text names the file that it waits for."""


class _Work(Generic[T]):
    """A call in a thread of its own. `ended` is set at its end, with its result or its error."""

    def __init__(self, call: Callable[[], T], what: str, on_end: Callable[[], object]) -> None:
        self._call, self._what, self._on_end = call, what, on_end
        self._result: T
        self._error: BaseException | None = None
        self.ended = threading.Event()
        if len(_hung) >= HUNG_MAX:
            raise NoAnswer(f"{what}: {HUNG_MAX} earlier attempts have not ended yet")
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # raised again where the result is asked for
            self._error = error
        self.ended.set()
        _hung.discard(self)
        with suppress(RuntimeError):  # the loop has closed
            self._on_end()

    def result(self) -> T:
        """Return the result, or raise the error of the call, which has ended."""
        if self._error is not None:
            raise self._error
        return self._result

    def give_up(self, limit_s: float) -> NoAnswer:
        """Leave the thread behind. Return what to raise."""
        _hung.add(self)
        if self.ended.is_set():
            _hung.discard(self)
        where = touched(self._thread.ident) or self._what
        return NoAnswer(f"{where}: did not answer within {limit_s:g} s")


async def aside(call: Callable[[], T], what: str, limit_s: float | None = LIMIT_S) -> T:
    """Run `call` in a thread, and return its result. Raises its errors, and `NoAnswer` after `limit_s`."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    work = _Work(call, what, lambda: loop.call_soon_threadsafe(ended.set))
    try:
        async with asyncio.timeout(limit_s):
            await ended.wait()
    except TimeoutError:
        raise work.give_up(limit_s or 0.0) from None
    return work.result()


def within(call: Callable[[], T], what: str, limit_s: float = LIMIT_S) -> T:
    """Do as `aside` where no event loop runs."""
    work = _Work(call, what, lambda: None)
    if not work.ended.wait(limit_s):
        raise work.give_up(limit_s)
    return work.result()
