"""Chores: work that peers can ask for at no cost of their own, in turns that are fair and short.

Handshakes, heads of HTTP and control frames bring no message, and anybody may send them, so all of them
together have a share of the loop's time. Many small objects in one read are useful, but must not delay
others. In both queues hosts take turns, and what others do between two turns of the loop waits no longer than
one turn. A network of IPv6 is one host, in which addresses take turns.
"""

from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import Final

from bus.allowance import Allowance
from bus.machine.of_loop import OfLoop
from bus.transports.seats import network_of

TURN_S: Final = 0.002
"""The processor time that a queue takes in one turn of the loop, or one job if that takes longer."""
CHORES: Final = 0.25
"""The share of the time that all chores may take."""
BURST_S: Final = 0.1
"""The processor time that chores may take at once, before their share counts."""

_LEAST_WAIT_S: Final = 0.001

Job = Callable[[], object]
"""A short step of work."""


class FairQueue:
    """Jobs of hosts, which take turns. `share` of the time may be spent; 1 or more: all of it.

    `spent` tells the processor time of this thread, in seconds.
    """

    def __init__(
        self, loop: AbstractEventLoop, share: float, spent: Callable[[], float] = thread_time
    ) -> None:
        self._loop, self._share, self._spent = loop, share, spent
        self._networks: dict[str, dict[str, deque[Job]]] = {}  # the next one first
        self._allowance = Allowance(share, BURST_S, loop.time())
        self._left_s = TURN_S
        self._expected = False

    def __len__(self) -> int:
        """Return the number of jobs that wait."""
        return sum(len(jobs) for hosts in self._networks.values() for jobs in hosts.values())

    def put(self, host: str, job: Job, least_s: float = 0.0) -> bool:
        """Do a job now, and return True, or later. It counts for `least_s` at least."""
        job = partial(self._do, job, least_s)
        if not self._networks and self._left_s > 0 and self._wait_s() <= 0:
            job()
            return True
        self._networks.setdefault(network_of(host), {}).setdefault(host, deque()).append(job)
        self._call(0.0)
        return False

    async def turn(self, host: str, least_s: float) -> None:
        """Wait for a turn of `host` for work that takes about `least_s`."""
        turn: Future[None] = self._loop.create_future()
        if not self.put(host, partial(_begin, turn), least_s):
            await turn

    def _wait_s(self) -> float:
        """Return how long it takes until something may be spent again."""
        return 0.0 if self._share >= 1 else -self._allowance.left(self._loop.time()) / self._share

    def _do(self, job: Job, least_s: float) -> None:
        began_s = self._spent()
        try:
            job()
        finally:
            spent_s = max(least_s, self._spent() - began_s)
            self._left_s -= spent_s
            self._allowance.take(spent_s, self._loop.time())
            self._call(0.0)  # so that the next turn has its time

    def _call(self, after_s: float) -> None:
        if not self._expected:
            self._expected = True
            self._loop.call_later(after_s, self._turn) if after_s else self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._expected, self._left_s = False, TURN_S
        while self._networks and self._left_s > 0:
            if (wait_s := self._wait_s()) > 0:
                return self._call(max(wait_s, _LEAST_WAIT_S))
            self._next()()
        return self._call(0.0) if self._networks else None

    def _next(self) -> Job:
        """Take the next job of the next host, which is then the last."""
        network = next(iter(self._networks))
        hosts = self._networks.pop(network)
        host = next(iter(hosts))
        jobs = hosts.pop(host)
        job = jobs.popleft()
        if jobs:
            hosts[host] = jobs
        if hosts:
            self._networks[network] = hosts
        return job


def _begin(turn: "Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)


class Queues:
    """The two queues of a loop: of `chores`, and of `busy` peers, which send much that is small."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.chores, self.busy = FairQueue(loop, CHORES), FairQueue(loop, 1.0)


queues_of: Final = OfLoop(Queues)
"""A function that returns the queues of all peers on the loop of this thread."""
