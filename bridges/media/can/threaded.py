"""Sending to a CAN bus from a thread, for drivers that may block."""

import errno
from asyncio import Future
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bridges.items import CanFrame
from bridges.media.can.outbound import TRANSIENT, Outbound
from bridges.media.can.python_can import BusPort
from bus.errors import words_of

_BLOCKED_S = 1.0  # the longest wait for one frame, in a driver that blocks


class ThreadSender(Outbound):
    """A sender for drivers that may block: it sends one message at a time, in a worker thread."""

    _port: BusPort

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="can send")
        self._size = 0  # of the message that the thread is sending, in bytes; 0 if it is the voice's own
        self._busy = False

    def pump(self) -> None:
        if self._busy or self.held or self._closed:
            return
        now_s = self._loop.time()
        found = self._next(now_s)
        if found is None:
            return
        self._busy, self._size = True, len(found.message)
        self._note_own(found.frames, now_s)
        future = self._loop.run_in_executor(self._worker, _send_all, self._port, found.frames)
        future.add_done_callback(self._done)

    def _done(self, future: "Future[None]") -> None:
        error = None if future.cancelled() else future.exception()
        if self._closed or future.cancelled():
            return None
        self._settle("" if error is None else "stalled")
        if error is not None and getattr(error, "errno", errno.EAGAIN) not in TRANSIENT:
            return self._on_lost(f"cannot send: {words_of(error)}")
        return self.pump()

    def _settle(self, reason: str) -> None:
        self._busy = False
        if self._size:
            self._queue.settle(self._size, reason)
            self._size = 0

    def close(self, reason: str) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._settle(reason)
        super().close(reason)


def _send_all(port: BusPort, frames: Sequence[CanFrame]) -> None:
    for frame in frames:
        port.deliver(frame, _BLOCKED_S)
