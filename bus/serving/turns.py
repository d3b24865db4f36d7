"""Long work divided into turns of the event loop, so that urgent work need not wait for its end."""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Hashable, Iterator

from bus.allowance import Allowance

Job = Iterator[int]
"""Work in steps. Each step yields how many units it was; a unit takes some `UNIT_S`."""

UNIT_S = 10e-6
TURN_UNITS = 64
_SHARE_UNITS = 16  # done for one host before the next
_RATE = 20_000.0  # units a second for one host
_AT_ONCE = 65_536.0  # units that a host may have before that
_PAUSE_S = 0.01  # of a host that has used up its allowance
_LINES = 4096  # that wait for one host
_HOSTS = 4096  # that are remembered, and those that wait


class _Line:
    """The jobs of one key, in their order."""

    __slots__ = ("jobs", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.jobs = deque[Job]()


class _Host:
    """The lines that wait for one host, and the allowance that it has left."""

    __slots__ = ("allowance", "lines", "waits")

    def __init__(self, allowance: Allowance | None) -> None:
        self.allowance = allowance
        self.lines = deque[_Line]()
        self.waits = False  # in the round, or for its allowance


class Turns:
    """The jobs of a service: those of one `key` in their order, keys and hosts by turns.

    One turn of the event loop does `units` at most. The rest waits for the next turn, after what has arrived
    meanwhile. A host has `rate` units a second, and `at_once` before that; the host "" has no bound. A short
    job is done before `put` returns.
    """

    def __init__(self, units: int = TURN_UNITS, rate: float = _RATE, at_once: float = _AT_ONCE) -> None:
        self._units = self._left = units
        self._rate, self._at_once = rate, at_once
        self._lines: dict[Hashable, _Line] = {}
        self._hosts: dict[str, _Host] = {}
        self._round = deque[_Host]()
        self._busy = self._expected = False

    def __len__(self) -> int:
        """Return the number of keys whose jobs are not done yet."""
        return len(self._lines)

    def open(self, loop: AbstractEventLoop) -> None:
        """Use this loop from now on."""
        self._loop = loop

    def waits(self, key: Hashable) -> bool:
        """Return whether jobs of this key are not done yet."""
        return key in self._lines

    def put(self, key: Hashable, host: str, job: Job) -> bool:
        """Do a job now or later. Return False, and do nothing, if too much waits for its host."""
        line, room = self._lines.get(key), self._host(host)
        if line is None:
            if host and len(room.lines) >= _LINES:
                return False
            line = self._lines[key] = _Line(key)
            room.lines.append(line)
        line.jobs.append(job)
        self._call(room)
        return True

    def _host(self, host: str) -> _Host:
        found = self._hosts.get(host)
        if found is None:
            now_s = self._loop.time()
            if len(self._hosts) >= _HOSTS:
                self._hosts = {name: one for name, one in self._hosts.items() if _is_in_use(one, now_s)}
            allowance = Allowance(self._rate, self._at_once, now_s) if host else None
            found = self._hosts[host] = _Host(allowance)
        return found

    def _call(self, host: _Host) -> None:
        """Enter a host for a turn, and work now if nothing else is being done."""
        if not host.waits:
            host.waits = True
            self._round.append(host)
        if not self._busy:
            self._work()

    def _turn(self) -> None:
        self._expected, self._left = False, self._units
        self._work()

    def _work(self) -> None:
        self._busy = True
        try:
            while self._round and self._left > 0:
                self._serve(self._round.popleft())
        finally:
            self._busy = False
            if not self._expected and self._left < self._units:
                self._expected = True
                self._loop.call_soon(self._turn)

    def _serve(self, host: _Host) -> None:
        """Do some jobs of a host. A host that has used up its allowance waits for that instead."""
        now_s, allowance, spent = self._loop.time(), host.allowance, 0
        if allowance is not None and allowance.left(now_s) < 1:
            self._loop.call_later(_PAUSE_S, self._again, host)
            return
        try:
            while host.lines and spent < min(_SHARE_UNITS, self._left):
                spent += self._step(host)
        finally:
            self._left -= spent
            if allowance is not None:
                allowance.take(spent, now_s)
            host.waits = bool(host.lines)
            if host.lines:
                self._round.append(host)

    def _step(self, host: _Host) -> int:
        """Do a step of the first job, and return its units. A job that fails is given up."""
        line = host.lines.popleft()
        job = line.jobs.popleft()
        units: int | None = None
        try:
            units = next(job, None)
        finally:
            if units is not None:
                line.jobs.appendleft(job)
            if line.jobs:
                host.lines.append(line)
            else:
                self._lines.pop(line.key, None)
        return units or 0

    def _again(self, host: _Host) -> None:
        if host.lines:  # not closed
            self._round.append(host)
            if not self._busy:
                self._work()

    def close(self) -> None:
        """Give up all jobs. Idempotent."""
        for host in self._hosts.values():
            host.lines.clear()
        self._lines.clear()
        self._round.clear()


def _is_in_use(host: _Host, now_s: float) -> bool:
    return host.waits or host.allowance is None or not host.allowance.full(now_s)
