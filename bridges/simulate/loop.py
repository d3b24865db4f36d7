"""An event loop with its own clock: it jumps to the next timer, instead of waiting, when nothing is ready."""

import asyncio
import random
import selectors
import socket
from asyncio import Future
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SimulationError(RuntimeError):
    """The simulated program waits, but nothing can happen any more."""


class _JumpingSelector(selectors.EpollSelector):
    """A selector with a clock: instead of waiting for a descriptor, it advances the clock by the timeout."""

    def __init__(self, patience_s: float) -> None:
        super().__init__()
        self.now_s = 0.0
        self._patience_s = patience_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return self._wait_for_outside()
        self.now_s += timeout
        return []

    def _wait_for_outside(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait in real time: without a timer and data, only a thread or another process can wake the loop."""
        ready = super().select(self._patience_s)
        if not ready:
            raise SimulationError(
                "the simulation would wait for ever: no timer is set and no data came "
                f"within {self._patience_s:g} s of real time; look for a task that nobody wakes"
            )
        return ready


class Owner:
    """The owner of simulated wires' sockets: closes them at the end, if they are still open then."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def close_at_end(self, *sockets: socket.socket) -> None:
        self._sockets = [sock for sock in self._sockets if sock.fileno() >= 0]
        self._sockets += sockets

    def close_sockets(self) -> None:
        for sock in self._sockets:
            sock.close()


class SimulatedLoop(asyncio.SelectorEventLoop, Owner):
    """An asyncio loop on which an idle hour takes no time. The same seed gives the same run.

    `time()` starts at 0.0 and is in seconds of the simulation. `run_in_executor` runs its function at
    once, on the loop's own thread, so that the order does not depend on a scheduler. A function that waits
    for the loop would therefore wait for ever. The loop raises `SimulationError` if no timer is set and
    nothing arrives for `patience_s` seconds of real time.
    """

    def __init__(self, patience_s: float = 10.0) -> None:
        self._jumping = _JumpingSelector(patience_s)
        Owner.__init__(self)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def close(self) -> None:
        super().close()
        self.close_sockets()

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "Future[T]":
        """Run `func` now and return a future that is done; `executor` is not used."""
        return done_at_once(self, func, *args)


def done_at_once(loop: asyncio.AbstractEventLoop, func: Callable[..., T], *args: Any) -> "Future[T]":
    """Run `func` now, whatever thread it was meant for; return a future of `loop` with its outcome."""
    future: Future[T] = loop.create_future()
    try:
        future.set_result(func(*args))
    except Exception as error:
        future.set_exception(error)
    return future


def socket_pair(
    loop: asyncio.AbstractEventLoop, kind: int = socket.SOCK_STREAM
) -> tuple[socket.socket, socket.socket]:
    """Return a wire's and a program's end, both non-blocking. A loop of ours closes them at its end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    for sock in (ours, theirs):
        sock.setblocking(False)
    if isinstance(loop, Owner):
        loop.close_at_end(ours, theirs)
    return ours, theirs


class Bell:
    """A descriptor that is readable after `ring()`, until `quiet()`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._bell, self._ear = socket_pair(loop)
        self._rung = False

    def fileno(self) -> int:
        return self._ear.fileno()

    def ring(self) -> None:
        if not self._rung:
            self._rung = bool(self._bell.send(b"\0"))

    def quiet(self) -> None:
        if self._rung:
            self._rung = not self._ear.recv(1)

    def close(self) -> None:
        self._bell.close()
        self._ear.close()


def run(main: Coroutine[Any, Any, T], seed: int = 0) -> T:
    """Run `main` on a `SimulatedLoop`. Seed the module `random` meanwhile; restore its state afterwards."""
    state = random.getstate()
    random.seed(seed)
    try:
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            return runner.run(main)
    finally:
        random.setstate(state)
