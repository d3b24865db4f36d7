"""The runner of a service: one event loop until a signal asks for a stop; then it drains and closes."""

import asyncio
import contextlib
import gc
import resource
import sys
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from appliance.process import notify
from appliance.process.interrupts import STOPS
from appliance.process.running import run_loop
from bus.hub import Hub
from bus.machine.busy_poll import default_us
from bus.machine.real_time import RealTime
from bus.machine.wake_hook import WakefulLoop
from bus.transports.parting import parted

DRAIN_S = 1.0
_DRAIN_LOOK_S = 0.01
_HEAP_BYTES: Final = 1 << 20
SWITCH_S: Final = 0.001
"""The longest that a thread which computes, as for the status page, keeps the loop from running."""


class Stop(asyncio.Event):
    """A request to stop, set by each signal of `STOPS`. `number` is the first such signal, 0 before it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.number = 0
        for number in STOPS:
            loop.add_signal_handler(number, self._ask, number)

    def _ask(self, number: int) -> None:
        self.number = self.number or number
        self.set()


class Service(Protocol):
    """Anything that a process runs. It opens without blocking, closes at once, and knows its hubs."""

    def open(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def close(self) -> None: ...
    def hubs(self) -> Iterable[Hub]: ...


class Served(Service, Protocol):
    """A service with local sockets, at which other processes ask it."""

    async def opened(self) -> None:
        """Wait until the local sockets are open, or have failed."""


def serve(
    service: Served,
    announce: Callable[[], None],
    farewell: Callable[[], Callable[[], int]] = lambda: int,
    limit_s: float | None = None,
    real_time: bool = False,
    busy_poll_us: int | None = None,
) -> int:
    """Run a service: open, announce, wait for a signal of `STOPS`, drain within a bound, close.

    The service manager is told. `farewell` is called before the service closes. What it returns is called
    after that, says the last words and returns the exit status; by default that is 0. With `limit_s` the
    service stops by itself after that time. `real_time`: its loop has real-time priority once it runs, if the
    system allows that. Where events follow each other closely, the loop looks for the next for up to
    `busy_poll_us` microseconds before it sleeps; by default as long as fits the machine.

    Raises `LinkError` for a service that can never open.
    """
    # As many open files as the system allows: the usual soft limit, 1024, is too low for a bus.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before_s = sys.getswitchinterval()
    limit_us = default_us() if busy_poll_us is None else busy_poll_us
    sys.setswitchinterval(SWITCH_S)
    try:
        return run_loop(
            _serve(service, announce, farewell, limit_s, real_time), lambda: WakefulLoop(limit_us)
        )
    finally:
        sys.setswitchinterval(before_s)


async def _serve(
    service: Served,
    announce: Callable[[], None],
    farewell: Callable[[], Callable[[], int]],
    limit_s: float | None,
    real_time: bool,
) -> int:
    loop = asyncio.get_running_loop()
    stop = Stop(loop)
    service.open(loop)
    heart = notify.Heart(loop)
    priority = RealTime(loop) if real_time else None
    try:
        announce()
        await service.opened()
        settle_garbage()
        keep_heap()
        notify.tell(notify.READY)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), limit_s)
        notify.tell(notify.STOPPING)
        await drain(service)
        say = farewell()
    finally:
        if priority is not None:
            priority.close()
        heart.close()
        service.close()
        await parted(loop)
        gc.unfreeze()
    return say()


def settle_garbage() -> None:
    """Keep what the start has made out of later collections, each of which stops the loop.

    It lives about as long as the process. With 500 bridges a full collection in a reload stood 73 ms.
    """
    gc.collect()
    gc.freeze()


def keep_heap() -> None:
    """Have glibc keep up to twice `_HEAP_BYTES` that were freed for the next batch, as `mallopt(3)` has it.

    It takes the largest block that was freed for a measure of what comes again. Else it gives the batches of
    a full bus back to the kernel, which clears 300 new pages for each: a third of what a frame then costs.
    """
    bytes(_HEAP_BYTES)


async def drain(service: Service, limit_s: float = DRAIN_S) -> None:
    """Wait until no hub of the service has queued messages, but no longer than `limit_s`."""
    deadline = asyncio.get_running_loop().time() + limit_s
    while asyncio.get_running_loop().time() < deadline and _queued(service):
        await asyncio.sleep(_DRAIN_LOOK_S)


def _queued(service: Service) -> int:
    return sum(account.stats.queued for hub in service.hubs() for account in hub.accounts().values())
