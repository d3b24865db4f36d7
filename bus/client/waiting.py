"""How the application's socket waits: for a message, and at the end for what it sent to leave."""

import asyncio
import select
import time
from asyncio import Future
from collections.abc import Mapping

from bus.transports.nng_socket import NngSocket

UNTOLD_S = 0.1  # for transports that do not count what they have written


class Readable:
    """Waiting for a descriptor: `poll` in a thread (Ctrl-C ends it), a reader on an asyncio loop."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._waiting: set[Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait(self, timeout_s: float) -> None:
        self._poll.poll(max(1, round(timeout_s * 1000)))

    async def await_one(self, limit_s: float) -> None:
        """Until it is readable, or `limit_s` is over, or it was closed: the caller looks again."""
        self._loop = loop = asyncio.get_running_loop()
        future: Future[None] = loop.create_future()
        if not self._waiting:
            loop.add_reader(self._fd, self._wake)
        self._waiting.add(future)
        timer = loop.call_later(limit_s, _finish, future)
        try:
            await future
        finally:
            timer.cancel()
            self._forget(future)

    def _forget(self, future: "Future[None]") -> None:
        # After close() the set is empty, and the descriptor may be somebody else's.
        if future in self._waiting:
            self._waiting.remove(future)
            if not self._waiting and self._loop is not None:
                self._loop.remove_reader(self._fd)

    def _wake(self) -> None:
        for future in self._waiting:
            _finish(future)

    def close(self) -> None:
        if self._waiting and self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._wake()
            self._waiting.clear()


def _finish(future: "Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def flush(nng: NngSocket, owed: Mapping[int, int], sent_at: float, linger_s: float) -> None:
    """Wait until each peer's transport has written what it is owed, at most `linger_s` seconds.

    NNG forgets its queues on close. WebSocket and inproc do not count what they have written; they
    get a tenth of a second after the last message instead.
    """
    end = time.monotonic() + linger_s
    while time.monotonic() < end and not _settled(nng, owed, sent_at):
        time.sleep(0.002)


def _settled(nng: NngSocket, owed: Mapping[int, int], sent_at: float) -> bool:
    waiting = [(peer, count) for peer, count in tuple(owed.items()) if peer in nng.peers]
    if not waiting:
        return True
    written = nng.transmitted()
    quiet = time.monotonic() - sent_at > UNTOLD_S
    return all(written[peer] >= count if peer in written else quiet for peer, count in waiting)
