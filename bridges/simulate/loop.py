"""An event loop with its own clock: when nothing is ready it jumps to the next timer instead of waiting."""

import asyncio
import random
import selectors
import socket
from asyncio import Future
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SimulationError(RuntimeError):
    """Nothing can happen any more, and the simulated program still waits."""


class _JumpingSelector(selectors.EpollSelector):
    """Descriptors first; where none is ready, the clock goes on by what would have been waited."""

    def __init__(self, patience_s: float) -> None:
        super().__init__()
        self.now_s = 0.0
        self._patience_s = patience_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return self._wait_for_somebody_else()
        self.now_s += timeout
        return []

    def _wait_for_somebody_else(self) -> list[tuple[selectors.SelectorKey, int]]:
        """No timer and nothing to read: only a thread or another process can still wake us."""
        ready = super().select(self._patience_s)
        if not ready:
            raise SimulationError("everybody waits and no timer is set: this would wait for ever")
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on which an idle hour takes no time, and which does the same again for the same seed.

    `time()` starts at 0.0 and is in seconds of the simulation. `run_in_executor` runs its function at
    once, on the loop's own thread, so that no scheduler decides what comes first; a function that waits
    for the loop would therefore wait for ever. When no timer is set and nothing arrives for `patience_s`
    of real time, the loop raises `SimulationError`.
    """

    def __init__(self, patience_s: float = 10.0) -> None:
        self._jumping = _JumpingSelector(patience_s)
        self._sockets: list[socket.socket] = []
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def close_at_end(self, *sockets: socket.socket) -> None:
        """Close these with the loop, if nobody has done it before."""
        self._sockets = [sock for sock in self._sockets if sock.fileno() >= 0]
        self._sockets += sockets

    def close(self) -> None:
        super().close()
        for sock in self._sockets:
            sock.close()

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "Future[T]":
        """A future that is done already; `executor` is not used."""
        future: Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def socket_pair(
    loop: asyncio.AbstractEventLoop, kind: int = socket.SOCK_STREAM
) -> tuple[socket.socket, socket.socket]:
    """A wire's end and a program's end, not blocking. A simulated loop closes both when it ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    for sock in (ours, theirs):
        sock.setblocking(False)
    if isinstance(loop, SimulatedLoop):
        loop.close_at_end(ours, theirs)
    return ours, theirs


def run(main: Coroutine[Any, Any, T], seed: int = 0) -> T:
    """Run `main` on a `SimulatedLoop`; `random`'s own functions are seeded for as long, then put back."""
    state = random.getstate()
    random.seed(seed)
    try:
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            return runner.run(main)
    finally:
        random.setstate(state)
