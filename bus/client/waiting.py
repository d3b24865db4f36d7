"""The waiting of the application's socket: for a message, for peers, and at its close for sent messages."""

import asyncio
import select
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from bus.transports.on_the_way import of_process_bytes

if TYPE_CHECKING:
    from bus.transports.nng_socket import NngSocket

UNCOUNTED_S = 0.1  # for transports that do not count the messages they have written


class Readable:
    """A descriptor to wait for: by `poll` in a thread (Ctrl-C ends it), by a reader on an asyncio loop."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._waiting = 0

    def wait(self, timeout_s: float) -> None:
        """Block until the descriptor is readable, at most `timeout_s` seconds (at least 1 ms)."""
        self._poll.poll(max(1, round(timeout_s * 1000)))

    async def await_one(self, limit_s: float) -> None:
        """Wait until the descriptor is readable or closed, at most `limit_s` seconds.

        The caller checks which.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._loop, self._woken = loop, asyncio.Event()
            loop.add_reader(self._fd, self._woken.set)
        self._waiting += 1
        self._woken.clear()
        timer = loop.call_later(limit_s, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
            if self._waiting:  # after close() nobody waits, and the descriptor may belong to another file
                self._leave(1)

    def _leave(self, count: int) -> None:
        self._waiting -= count
        if not self._waiting:
            self._loop.remove_reader(self._fd)

    def close(self) -> None:
        """Wake every task that waits. The descriptor itself stays open."""
        if self._waiting:
            self._leave(self._waiting)
            self._woken.set()


class Changes:
    """Wakes the threads and the tasks that wait for a condition, at each change that `tell` reports."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._wakers: set[Callable[[], object]] = set()

    def tell(self) -> None:
        """Let all that wait look again. Any thread may call it."""
        with self._changed:
            self._changed.notify_all()
            for wake in self._wakers:
                with suppress(RuntimeError):  # its loop has closed
                    wake()

    def wait(self, holds: Callable[[], bool], limit_s: float | None) -> bool:
        """Block until `holds()`, at most `limit_s` seconds. Return whether it does."""
        with self._changed:
            return self._changed.wait_for(holds, limit_s)

    async def await_one(self, holds: Callable[[], bool], limit_s: float | None) -> bool:
        """Do as `wait`, for asyncio: without a thread, which would keep the program from ending."""
        woken = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, woken.set)
        with self._changed:
            self._wakers.add(wake)
        try:
            async with asyncio.timeout(limit_s):
                while not holds():
                    await woken.wait()
                    woken.clear()
        except TimeoutError:
            return holds()
        finally:
            with self._changed:
                self._wakers.discard(wake)
        return True


def flush(nng: "NngSocket", owed: Mapping[int, int], sent_at: float, linger_s: float) -> None:
    """Wait at most `linger_s` seconds until each peer's machine has its number of `owed` messages.

    NNG discards its queues on close, and the kernel what is on the way if anything of the peer's is unread.
    WebSocket and inproc do not count the messages they have written; they get 0.1 s after the last message
    instead.
    """
    end = time.monotonic() + linger_s
    while time.monotonic() < end and not (_settled(nng, owed, sent_at) and _arrived(nng, owed)):
        time.sleep(0.002)


def _arrived(nng: "NngSocket", owed: Mapping[int, int]) -> bool:
    peers = nng.peers.copy()
    return not of_process_bytes({peers[peer] for peer in owed if peer in peers})


def _settled(nng: "NngSocket", owed: Mapping[int, int], sent_at: float) -> bool:
    waiting = [(peer, count) for peer, count in tuple(owed.items()) if peer in nng.peers]
    if not waiting:
        return True
    written = nng.transmitted()
    quiet = time.monotonic() - sent_at > UNCOUNTED_S
    return all(written[peer] >= count if peer in written else quiet for peer, count in waiting)
