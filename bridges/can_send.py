"""Messages to frames of a CAN bus: a bounded queue, and two ways out of it."""

import errno
from asyncio import AbstractEventLoop, Future, Handle
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from bridges.can_receive import error_number
from bridges.codecs.can import can_id, segment
from bridges.codecs.extent import message_bytes
from bus.hub import Stats

if TYPE_CHECKING:
    from can import BusABC, Message

    from bridges.can import CanLink

_FRAMES = 256  # sent in one turn of the loop
_RETRY_MIN_S, _RETRY_MAX_S = 0.001, 0.05
_STALL_S = 5.0
_TRANSIENT = (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EBUSY, errno.EINTR)


class Outbound:
    """Messages waiting for the bus, bounded; a subclass says how frames leave."""

    def __init__(
        self,
        link: "CanLink",
        bus: "BusABC",
        loop: AbstractEventLoop,
        on_sent: Callable[[bytes], None],
        on_lost: Callable[[str], None],
    ) -> None:
        from can import CanError, Message

        self._frame, self._faults = Message, (CanError, OSError, ValueError)
        self._link, self._bus, self._loop, self._stats = link, bus, loop, link.stats
        self._on_sent, self._on_lost = on_sent, on_lost
        self._identifier = can_id(link.subject, link.node)
        self._queue: deque[bytes] = deque()
        self._busy = False

    def put(self, messages: list[bytes]) -> None:
        """Queue what fits and is a message; count the rest as dropped."""
        enqueue(messages, self._queue, self._stats, self._link.queue_bytes)
        if not self._busy:
            self._go()

    def _go(self) -> None:
        raise NotImplementedError

    def _segments(self) -> list[bytes]:
        return segment(self._queue[0], self._link.next_transfer_id(), self._link.fd)

    def _message(self, data: bytes) -> "Message":
        fd, switch = self._link.fd, self._link.bitrate_switch
        return self._frame(
            arbitration_id=self._identifier, is_extended_id=True, is_fd=fd, bitrate_switch=switch, data=data
        )

    def _settle(self, dropped: str = "") -> None:
        """The queue's head has left, or was given up."""
        size, stats = len(self._queue.popleft()), self._stats
        stats.queued -= 1
        stats.queued_bytes -= size
        if dropped:
            return stats.drop(dropped)
        stats.sent += 1
        stats.sent_bytes += size
        return None

    def close(self) -> None:
        if self._queue:
            self._stats.drop("closed", len(self._queue))
            self._queue.clear()
        self._stats.queued = self._stats.queued_bytes = 0


def enqueue(messages: list[bytes], queue: deque[bytes], stats: Stats, queue_bytes: int) -> None:
    """Queue messages that a receiver can cut out of their padding, up to `queue_bytes`."""
    for message in messages:
        if not message or message_bytes(message) != len(message):
            stats.drop("malformed")
        elif stats.queued_bytes + len(message) > queue_bytes:
            stats.drop("queue full")
        else:
            queue.append(message)
            stats.queued += 1
            stats.queued_bytes += len(message)


class DirectSender(Outbound):
    """Sends from the loop, a bounded number of frames a turn; a full driver is tried again by timer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._pending: deque[bytes] = deque()
        self._handle: Handle | None = None
        self._pause_s = _RETRY_MIN_S
        self._blocked_s: float | None = None

    def _go(self) -> None:
        self._busy, self._handle = True, None
        send, on_sent = self._bus.send, self._on_sent
        for _ in range(_FRAMES):
            if not self._pending:
                if not self._queue:
                    self._busy = False
                    return
                self._pending.extend(self._segments())
            data = self._pending[0]
            try:
                send(self._message(data), 0)
            except self._faults as error:
                return self._blocked(error)
            self._blocked_s = None
            on_sent(data)
            self._pending.popleft()
            if not self._pending:
                self._settle()
        self._handle = self._loop.call_soon(self._go)

    def _blocked(self, error: Exception) -> None:
        number, now = error_number(error), self._loop.time()
        if self._blocked_s is None:
            self._blocked_s, self._pause_s = now, _RETRY_MIN_S
        lost = number is not None and number not in _TRANSIENT
        if lost or now - self._blocked_s > _STALL_S:
            return self._on_lost(f"cannot send: {error}")
        self._handle = self._loop.call_later(self._pause_s, self._go)
        self._pause_s = min(2 * self._pause_s, _RETRY_MAX_S)
        return None

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._busy = True
        super().close()


class ThreadSender(Outbound):
    """For drivers that may block: one transfer at a time, in one worker thread."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="can send")
        self._closed = False

    def _go(self) -> None:
        self._busy = bool(self._queue)
        if self._busy:
            segments = self._segments()
            for data in segments:
                self._on_sent(data)
            frames = [self._message(data) for data in segments]
            future = self._loop.run_in_executor(self._worker, _send_all, self._bus, frames)
            future.add_done_callback(self._done)

    def _done(self, future: "Future[None]") -> None:
        if self._closed or future.cancelled():
            return
        error = future.exception()
        if error is not None and error_number(error) not in (None, *_TRANSIENT):
            return self._on_lost(f"cannot send: {error}")
        self._settle("" if error is None else "stalled")
        return self._go()

    def close(self) -> None:
        self._closed = self._busy = True
        self._worker.shutdown(wait=False, cancel_futures=True)
        super().close()


def _send_all(bus: "BusABC", frames: "list[Message]") -> None:
    for frame in frames:
        bus.send(frame, 1.0)
