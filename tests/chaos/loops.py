"""Event loops of many programs in one thread and one virtual time: each can be frozen, and ends alone."""

import asyncio
import heapq
import os
import select
import socket
from asyncio import Future, Handle, TimerHandle
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from bridges.simulate.loop import Owner, done_at_once
from bus.machine.wake_hook import WakefulLoop
from tests.chaos.clock import clock

T = TypeVar("T")
Connect = Callable[[socket.socket, Any], Coroutine[Any, Any, None]]


class ProgramLoop(WakefulLoop, Owner):
    """The loop of a program: the gateway's own, on the virtual clock. While `frozen` it has no turn.

    `problems` are the exceptions that nobody handled. `connect` makes connections. `steps_s` is what the time
    of day of its machine is ahead, in seconds.
    """

    def __init__(self, name: str, connect: Connect) -> None:
        self.name, self.frozen, self.awake = name, False, True
        self.steps_s = 0.0
        self.due: list[float] = []
        self.problems: list[str] = []
        self._connect = connect
        Owner.__init__(self)
        super().__init__()
        self.number = int(self._waking.fileno())
        """A descriptor that is readable when one of the program's is ready."""
        self.set_exception_handler(self._on_problem)

    def _on_problem(self, _: object, context: dict[str, Any]) -> None:
        self.problems.append(f"{self.name}: {context['message']}: {context.get('exception')!r}")

    def time(self) -> float:
        return clock.now_s

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        heapq.heappush(self.due, when)
        return super().call_at(when, callback, *args, context=context)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        self.awake = True
        return super().call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "Future[T]":  # type: ignore[override]
        """Run `func` now, so that the order does not depend on threads."""
        return done_at_once(self, func, *args)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect `sock` on the simulated network: its descriptor becomes the end of a simulated wire."""
        await self._connect(sock, address)

    def turn(self) -> None:
        """Handle all that is ready now."""
        self.awake, clock.steps_s = False, self.steps_s
        while self.due and self.due[0] <= clock.now_s:
            heapq.heappop(self.due)
        self.stop()
        self.run_forever()

    def close(self) -> None:
        super().close()
        self.close_sockets()


class Scheduler:
    """Gives each loop its turn, and moves the clock when none has anything to do."""

    def __init__(self) -> None:
        self._loops: dict[int, ProgramLoop] = {}
        self._ready = select.epoll()
        self.turns = 0
        self._later: list[Callable[[], None]] = []

    def later(self, call: Callable[[], None]) -> None:
        """Make a call between two turns, soon."""
        self._later.append(call)

    def add(self, loop: ProgramLoop) -> None:
        self._loops[loop.number] = loop
        self._ready.register(loop.number, select.EPOLLIN)

    def remove(self, loop: ProgramLoop) -> None:
        """Give a loop no more turns, and close it."""
        self._ready.unregister(loop.number)
        del self._loops[loop.number]
        loop.close()

    def run(self, until_s: float) -> None:
        """Run all programs until a time."""
        while self._step(until_s):
            pass

    def settle(self, loop: ProgramLoop, turns: int = 8) -> None:
        """Give one loop some turns at once."""
        for _ in range(turns):
            loop.turn()

    def _step(self, until_s: float) -> bool:
        while self._later:
            self._later.pop(0)()
        readable = {number for number, _ in self._ready.poll(0)}
        moving = [loop for loop in self._loops.values() if not loop.frozen]
        ready = [one for one in moving if one.awake or one.number in readable or _late(one)]
        for loop in ready:
            if loop.number in self._loops and not loop.frozen:
                loop.turn()
                self.turns += 1
        if not ready:
            return self._move(min((one.due[0] for one in moving if one.due), default=until_s), until_s)
        return True

    def _move(self, next_s: float, until_s: float) -> bool:
        clock.now_s = min(next_s, until_s)
        return next_s < until_s

    def close(self) -> None:
        for loop in list(self._loops.values()):
            self.remove(loop)
        self._ready.close()


def _late(loop: ProgramLoop) -> bool:
    return bool(loop.due) and loop.due[0] <= clock.now_s


def become(sock: socket.socket, other: socket.socket) -> None:
    """Make `sock` the same open descriptor as `other`, which is closed."""
    os.dup2(other.fileno(), sock.fileno(), inheritable=False)
    other.close()


def current() -> ProgramLoop:
    """Return the loop whose turn it is."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProgramLoop)
    return loop
