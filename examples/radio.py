"""A medium in one file, to start from (docs/add-a-medium.md): a modem at /dev/radio0 that passes bytes on.

The serial line's codec stands in for one of its own. The conformance suite runs over this link.
"""

import os
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Any

from bridges.media.device import DeviceLink, DevicePipe, OpenPipe, cancel
from bridges.media.shedding import Shed, ShedQueue, checked
from bridges.media.uart.codec import Decoder, encode
from bus.hub import Hub
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import MESSAGE_BYTES_MAX

_READ_BYTES = 65536


class RadioLink(DeviceLink[int]):
    """A modem as a link. `queue_bytes` waits for it at most; `shed`, a whole policy, stands in for that."""

    def __init__(
        self, path: str, queue_bytes: int = 64 * 1024, shed: Shed | None = None, **retry: Any
    ) -> None:
        super().__init__(f"radio:{path}", **retry)
        self.path = path
        self.shed = checked(self.name, shed, queue_bytes, None, MESSAGE_BYTES_MAX)

    def _open_device(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _release(self, device: int) -> None:
        os.close(device)

    def _make_pipe(self, device: int, on_close: Callable[[str], None]) -> DevicePipe:
        return RadioPipe(self, device, self._hub, self._loop, on_close)


class RadioPipe(OpenPipe):
    """Everybody who hears the modem, as one peer."""

    def __init__(
        self, link: RadioLink, fd: int, hub: Hub, loop: AbstractEventLoop, on_close: Callable[[str], None]
    ) -> None:
        super().__init__(link.name, link.stats, hub, loop, on_close)
        self._fd = fd
        self._decoder = Decoder(self.stats.rejected)
        self._queue = ShedQueue(self.stats, link.shed)
        self._left, self._size = b"", 0  # what the driver has yet to take, and how long that message is
        self._timer: TimerHandle | None = None
        self._waiting = False

    def start(self) -> None:
        self._loop.add_reader(self._fd, self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            return self._gone(f"lost: {error.strerror}")
        if not data:
            return self._gone("lost: end of file")
        if messages := self._decoder.feed(data):
            self._hub.publish(from_payloads(messages), self)

    def _put(self, batch: Batch) -> None:
        self._queue.put(self._loop.time(), payloads(batch))
        if not self._waiting:
            self._pump()

    def purge(self, reason: str) -> list[bytes]:
        """Drop what waits and return it; what has begun goes on."""
        return self._queue.clear(reason)

    def _pump(self) -> None:
        """Write until the driver is full, the rate allows no more, or nothing waits."""
        while self._left or self._next():
            try:
                count = os.write(self._fd, self._left)
            except BlockingIOError:
                return self._wait(True)
            except OSError as error:
                return self._gone(f"lost: {error.strerror}")
            self._left = self._left[count:]
            if not self._left:
                self._queue.settle(self._size)
        self._wait(False)
        if self._queue and self._timer is None:
            self._timer = self._loop.call_at(self._queue.ready_s(), self._on_time)

    def _next(self) -> bool:
        while (taken := self._queue.take(self._loop.time())) is not None:
            self._size = len(taken[1])
            try:
                self._left = encode(taken[1])
                return True
            except ValueError:  # no medium of ours carries it
                self._queue.settle(self._size, "malformed")
        return False

    def _wait(self, for_room: bool) -> None:
        if for_room and not self._waiting:
            self._loop.add_writer(self._fd, self._pump)
        elif self._waiting and not for_room:
            self._loop.remove_writer(self._fd)
        self._waiting = for_room

    def _on_time(self) -> None:
        self._timer = None
        if not self._waiting:
            self._pump()

    def _end(self, why: str) -> None:
        cancel(self._timer)
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        if self._left:
            self._queue.settle(self._size, "closed")
        self._queue.clear("closed")
        os.close(self._fd)
