"""An event loop that looks at the time before it handles any event.

A process that was frozen (SIGSTOP, a paused virtual machine, a long stall) wakes with its sockets ready and
its queues full. Timers run after those; a guard runs before.
"""

import asyncio
import os
import select
import selectors
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bus.machine.aside import in_thread
from bus.machine.busy_poll import BusyPoll
from bus.machine.hosts import Turns

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")

Guard = Callable[[], None]

_MOST: Final = 64  # events of one wake-up that are handled as they come; beyond, hosts take turns
_TURN_S: Final = 0.004  # the time for readers in one wake-up
_SHORT_S: Final = 0.001
_FD_SETSIZE: Final = 1024  # the descriptors that select() takes


class _Selector(selectors.EpollSelector):
    """A selector that calls guards and readers itself, and tells the loop of all other events.

    A reader that is called here costs a third of one that passes through asyncio's handles and queue. The
    loop's timers and calls have their turn after `_TURN_S`. Where more is ready, hosts take turns.
    """

    def __init__(
        self, on_fault: Callable[[str, BaseException], None], time: Callable[[], float], busy_poll_us: int
    ) -> None:
        super().__init__()
        self._time = time
        self.guards: tuple[Guard, ...] = ()
        self.all_read: list[Callable[[], object]] = []
        self.readers: dict[int, Callable[[], object]] = {}
        self.busy = BusyPoll(busy_poll_us)
        self._on_fault = on_fault
        self._fresh: set[int] = set()
        self._turns = Turns()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))

    def close(self) -> None:
        self._epoll.close()
        super().close()

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self._keys[key.fd] = key
        self._fresh.add(key.fd)
        self.readers.pop(key.fd, None)
        return key

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._keys.pop(key.fd, None)
        self.readers.pop(key.fd, None)
        return key

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
        before = self.get_key(fileobj)
        if before.data[0] is not data[0]:
            self.readers.pop(before.fd, None)
        del self._keys[before.fd]  # it is registered no more if that fails
        key = super().modify(fileobj, events, data)
        self._keys[key.fd] = key
        return key

    def get_key(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        """Return the key of a descriptor. Raises `KeyError`, without words: asyncio asks for each new one."""
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return super().get_key(fileobj) if number < 0 else self._keys[number]

    def hush(self, fileobj: "FileDescriptorLike") -> None:
        self._epoll.modify(fileobj, 0)

    def heed(self, fileobj: "FileDescriptorLike") -> None:
        try:
            key = self.get_key(fileobj)
        except KeyError:
            return
        events = select.EPOLLIN if key.events & selectors.EVENT_READ else 0
        events |= select.EPOLLOUT if key.events & selectors.EVENT_WRITE else 0
        self._epoll.modify(key.fd, events)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready, fresh, others = self._poll(timeout), self._fresh, list[tuple[int, int]]()
        are_many = len(ready) == _MOST or bool(self._turns.waiting)
        if are_many:  # there may be more, of other hosts
            ready = self._epoll.poll(0, max(_MOST, len(self._keys)))
        fresh.clear()
        for guard in self.guards:
            self._call("a guard failed", guard)
        if are_many:
            return self._known(self._in_turns(ready))
        end_s = self._time() + _TURN_S if len(ready) > 1 else 0.0
        for number, events in ready:
            reader = self.readers.get(number) if events == select.EPOLLIN else None
            if reader is None:
                others.append((number, events))
            elif number not in fresh:
                self._read(reader)
                if end_s and self._time() > end_s:
                    self._put_off(ready, number)
                    break
        return self._known(others) if others else []

    def _read(self, reader: Callable[[], object]) -> None:
        try:
            reader()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._on_fault("a reader failed", error)

    def _put_off(self, ready: list[tuple[int, int]], last: int) -> None:
        """Have what comes after the `last` descriptor wait for the next wake-up: hosts take turns in it."""
        numbers = [number for number, _ in ready]
        for number in numbers[numbers.index(last) + 1 :]:
            self._turns.put(number)

    def _in_turns(self, ready: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Call readers for the time of a turn, and return events that have none. Hosts take turns."""
        turns, waiting, others = self._turns, dict(ready), list[tuple[int, int]]()
        for number in waiting:
            turns.put(number)
        end_s = self._time() + _TURN_S
        while turns.waiting and len(others) < _MOST and self._time() <= end_s:
            number = turns.take()
            events = waiting.pop(number, 0)  # 0: it waits no more
            reader = self.readers.get(number) if events == select.EPOLLIN else None
            if reader is None and events:
                others.append((number, events))
            elif reader is not None and number not in self._fresh:
                self._read(reader)
        return others

    def _poll(self, timeout: float | None) -> list[tuple[int, int]]:
        """Return the events there are, or wait for some until `timeout` is over."""
        if self.all_read:
            if ready := self._epoll.poll(0, _MOST):
                return ready
            self._tell_all_read()
            return self._epoll.poll(0, _MOST)  # what was told may have asked for a turn
        if timeout is not None and timeout <= 0:
            return self._epoll.poll(0, _MOST)
        return self.busy.wait(self._sleep, timeout)

    def _sleep(self, timeout: float | None) -> list[tuple[int, int]]:
        """Wait for events. epoll would round a short time up to a whole millisecond."""
        if timeout is not None and 0 < timeout < _SHORT_S and self._epoll.fileno() < _FD_SETSIZE:
            if not select.select((self._epoll,), (), (), timeout)[0]:
                return []
            timeout = 0
        return self._epoll.poll(timeout, _MOST)

    def _tell_all_read(self) -> None:
        calls, self.all_read = self.all_read, []
        for call in calls:
            self._call("a call when all was read failed", call)

    def _call(self, what: str, function: Callable[[], object]) -> None:
        try:
            function()
        except Exception as error:  # raised from here, it would end the loop and the process
            self._on_fault(what, error)

    def _known(self, ready: list[tuple[int, int]]) -> list[tuple[selectors.SelectorKey, int]]:
        """Return events as the loop knows them, without those of descriptors that were closed meanwhile."""
        found = []
        for number, events in ready:
            with suppress(KeyError):
                key = self.get_key(number)
                mask = selectors.EVENT_WRITE if events & ~select.EPOLLIN else 0
                mask |= selectors.EVENT_READ if events & ~select.EPOLLOUT else 0
                if number not in self._fresh:  # else the event was of another socket that had this number
                    found.append((key, mask & key.events))
        return found


class WakefulLoop(asyncio.SelectorEventLoop):
    """An event loop that calls its guards each time it wakes, before any event handler.

    It calls readers at once, and timers below a millisecond to the microsecond. Where events follow each
    other closely, it looks for the next for up to `busy_poll_us` microseconds before it sleeps.
    """

    def __init__(self, busy_poll_us: int = 0) -> None:
        self._busy_poll_us = busy_poll_us
        self._waking = _Selector(self._on_fault, self.time, busy_poll_us)
        super().__init__(self._waking)

    def add_reader(  # type: ignore[override]
        self, fd: "FileDescriptorLike", callback: Callable[..., object], *args: Any
    ) -> None:
        """Call `callback(*args)` whenever `fd` is readable."""
        super().add_reader(fd, callback, *args)
        number = self._waking.get_key(fd).fd
        self._waking.readers[number] = partial(callback, *args) if args else callback

    def remove_reader(self, fd: "FileDescriptorLike") -> bool:
        """Stop watching whether `fd` is readable. Return whether it was watched."""
        with suppress(KeyError):
            self._waking.readers.pop(self._waking.get_key(fd).fd, None)
        return super().remove_reader(fd)

    def _on_fault(self, what: str, error: BaseException) -> None:
        self.call_exception_handler({"message": what, "exception": error})

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Run `func` in `executor`; without one, in a thread of its own that nothing ever waits for."""
        if executor is None:
            return in_thread(self, partial(func, *args))
        return super().run_in_executor(executor, func, *args)

    def hush(self, fd: "FileDescriptorLike") -> None:
        """Watch a descriptor no more until `heed`; its reader stays. A change of its writer ends that too."""
        self._waking.hush(fd)

    def heed(self, fd: "FileDescriptorLike") -> None:
        """Watch a descriptor again after `hush`."""
        self._waking.heed(fd)

    def poll_busily(self, limit_us: int | None) -> None:
        """Look for events for up to `limit_us` microseconds from now on; None: as at the start."""
        self._waking.busy.revise(self._busy_poll_us if limit_us is None else limit_us)

    def expect_no_answer(self) -> None:
        """Sleep the next time without looking: what came last is of a stream one way."""
        self._waking.busy.expect_no_answer()

    def guard(self, function: Guard) -> None:
        """Call `function` at each wake-up."""
        self._waking.guards += (function,)

    def call_when_all_read(self, function: Callable[[], object]) -> None:
        """Call `function` once, as soon as no descriptor has anything that waits to be read or written."""
        self._waking.all_read.append(function)

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
