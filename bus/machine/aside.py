"""Work that may block, in threads beside the event loop, with a bound of its time.

A thread that hangs in the kernel, as on a network file system without its server, cannot be ended. So these
threads are daemons: neither other work, nor the loop, nor the end of the process waits for them.
"""

import asyncio
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from bus.errors import BusError
from bus.machine.touch import touched

T = TypeVar("T")
LIMIT_S: Final = 5.0
THREADS_MAX: Final = 256
"""The threads that may work or hang at a time; more work is refused then."""
_LOOKS: Final = 20
_alive: set[threading.Thread] = set()


class NoAnswer(BusError, TimeoutError):
    """Work that did not end in time; its text names the file that it waits for."""


def in_thread(loop: AbstractEventLoop, call: Callable[[], T]) -> "asyncio.Future[T]":
    """Run `call` in a daemon thread of its own; return a future of `loop` with its outcome.

    If no thread can be had, that is the outcome, as `NoAnswer`: nothing is raised here.
    """
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def ended(result: T | None, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(settle, result, error)

    try:
        _start(call, ended)
    except NoAnswer as refusal:
        future.set_exception(refusal)
    return future


def _start(call: Callable[[], T], ended: Callable[[T | None, BaseException | None], None]) -> None:
    def run() -> None:
        try:
            result, error = call(), None
        except BaseException as raised:  # raised again where the result is asked for
            result, error = None, raised
        _alive.discard(threading.current_thread())
        ended(result, error)

    if len(_alive) >= THREADS_MAX:
        raise NoAnswer(f"{THREADS_MAX} threads do not come to an end")
    thread = threading.Thread(target=run, name="aside", daemon=True)
    _alive.add(thread)
    try:
        thread.start()
    except RuntimeError as error:  # the system gives this process no more threads
        _alive.discard(thread)
        raise NoAnswer(f"{error}: the system gives no more to this process") from error


class _Traced:
    """A call that remembers its thread, so that one can ask what it waits for."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._thread: int | None = None

    def __call__(self) -> Any:
        self._thread = threading.get_ident()
        return self._call()

    def check(self, limit_s: float) -> None:
        """Raise `NoAnswer` if the thread waits for one file, or one answer, for `limit_s`."""
        touch = touched(self._thread)
        if touch is not None and time.monotonic() - touch.since_s >= limit_s:
            raise NoAnswer(f"{touch.what}: did not answer within {limit_s:g} s")


async def aside(call: Callable[[], T], limit_s: float = LIMIT_S) -> T:
    """Run `call` in a thread, and return its result. Raises its errors.

    Raises `NoAnswer` if one file or look-up (`touch.touching`) takes `limit_s`; work may take longer.
    """
    traced = _Traced(call)
    future: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(None, traced)
    try:
        while not future.done():
            await asyncio.wait({future}, timeout=limit_s / _LOOKS)
            if not future.done():
                traced.check(limit_s)
    except BaseException:
        future.cancel()
        raise
    return future.result()


def within(call: Callable[[], T], limit_s: float = LIMIT_S) -> T:
    """Do as `aside` where no event loop runs."""
    traced, done = _Traced(call), threading.Event()
    outcome = list[tuple[T | None, BaseException | None]]()

    def ended(result: T | None, error: BaseException | None) -> None:
        outcome.append((result, error))
        done.set()

    _start(traced, ended)
    while not done.wait(limit_s / _LOOKS):
        traced.check(limit_s)
    result, error = outcome[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
