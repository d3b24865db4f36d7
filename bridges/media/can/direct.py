"""Sending to a CAN bus from the loop, for drivers that never block."""

from asyncio import Handle
from collections import deque
from collections.abc import Sequence
from typing import Any

from bridges.items import CanFrame
from bridges.media.can.flight import Flight
from bridges.media.can.outbound import CONFIRM_S, TRANSIENT, Outbound
from bridges.media.can.pace import Driver
from bus.errors import words_of

_FRAMES = 64  # sent in one turn of the loop
_RETRY_MIN_S, _RETRY_MAX_S = 0.001, 0.05
_STALL_S = 5.0


class DirectSender(Outbound):
    """A sender on the loop. If the port confirms frames, it keeps only a few frames in the driver.

    Frames in the driver cannot be cancelled, so this limits how many are sent late, after a bus-off.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._pending: deque[CanFrame] = deque()  # frames of one message that are still to be written
        self._message = b""  # the message that `_pending` belongs to; b"" for what the voice says itself
        self._taken: tuple[float, bytes] | None = None  # the same message, until a frame is written
        self._flight, self._window = Flight(), self._shared.window()
        self._ran_dry = False
        self._handle: Handle | None = None
        self._pause_s = _RETRY_MIN_S
        self._fresh_s = self._moved_s = self._loop.time()
        self._blocked_s: float | None = None

    @property
    def waits(self) -> bool:
        return bool(self._pending or self._queue)

    @property
    def is_flying(self) -> bool:
        return len(self._flight) > 0

    def driver(self) -> Driver:
        ran_dry, self._ran_dry = self._ran_dry, False
        return Driver(self.waits, self._window.most, ran_dry)

    def pump(self) -> None:
        if not (self._pending or self._queue or self._said):
            return
        if self._handle is not None or self.held or self._closed:
            return
        now_s = self._loop.time()
        if self._pending:
            self._refuse_stale(now_s)
        try:
            if self._port.confirms and not self._pending and not self._said:
                self._write_runs(now_s)
            self._write_each(now_s)
        except OSError as error:
            self._blocked(error, now_s)

    def _take_up(self, now_s: float, messages: list[bytes]) -> None:
        is_clear = not (self._pending or self._said or self.held or self._closed)
        passed = 0
        if is_clear and self._handle is None and self._port.confirms and self._voice.is_free:
            passed = self._pass_by(now_s, messages)
        if passed < len(messages):
            super()._take_up(now_s, messages[passed:])

    def _pass_by(self, now_s: float, messages: list[bytes]) -> int:
        """Write messages of one frame each past the empty queue, as far as there is room: so many."""
        some = messages[: max(0, self._window.most - len(self._flight))]
        sizes = list(map(len, some))
        frames = self._voice.run(some, now_s) if some and self._queue.lets_by(sizes) else None
        if frames is None:
            return 0
        try:
            count = self._port.write_some(frames)
        except OSError:
            return 0  # the next attempt, with the messages in the queue, tells
        self._queue.pass_by(sizes[:count])
        self._ran(frames, sizes, count, now_s)
        return count

    def _ran(self, frames: Sequence[CanFrame], sizes: list[int], count: int, now_s: float) -> None:
        """Note that the driver took the first `count` frames of a run."""
        self._voice.ran(count)
        self._note_written(now_s)
        self._flight.add(frames if count == len(frames) else frames[:count], sizes[:count])

    def _write_runs(self, now_s: float) -> None:
        """Write messages of one frame each, many by one call, while those that are next are such."""
        while (room := self._window.most - len(self._flight)) > 0 and self._voice.is_free:
            messages = self._queue.next(now_s, room)
            frames = self._voice.run(messages, now_s) if messages else None
            if frames is None:
                return
            count = self._port.write_some(frames)
            self._queue.leave(count)
            self._ran(frames, list(map(len, messages)), count, now_s)

    def _write_each(self, now_s: float) -> None:
        flight, most, write = self._flight, self._window.most, self._port.write
        for _ in range(_FRAMES):
            if len(flight) >= most:
                return
            if not self._pending and not ((self._queue or self._said) and self._begin(now_s)):
                return
            write(self._pending[0])
            self._written(now_s)
        self._handle = self._loop.call_soon(self._again)

    def _again(self) -> None:
        self._handle = None
        self.pump()

    def _begin(self, now_s: float) -> bool:
        found = self._next(now_s)
        if found is None:
            self._taken = None
            return False
        frames, self._fresh_s, self._message = found
        self._taken = (self._fresh_s, self._message) if self._message else None
        self._pending.extend(frames)
        return True

    def _refuse_stale(self, now_s: float) -> None:
        """Drop a message if it waited too long for one of its frames to be written."""
        if now_s - self._fresh_s > self._age_s:
            self._give_up_pending(self._queue.shed.old)

    def _note_written(self, now_s: float) -> None:
        if not self._flight:
            self._window.begin(now_s)
        self._fresh_s = self._moved_s = now_s
        self.spoken = True
        self._blocked_s, self._pause_s, self._taken = None, _RETRY_MIN_S, None

    def _written(self, now_s: float) -> None:
        self._note_written(now_s)
        frame = self._pending.popleft()
        size = 0 if self._pending else len(self._message)
        if self._port.confirms:
            return self._flight.add((frame,), (size,))
        self._note_own((frame,), now_s)
        return self._queue.settle(size) if size else None

    def confirm(self, frames: Sequence[CanFrame]) -> None:
        """Note that frames were on the wire, and all frames before them."""
        before = len(self._flight)
        sizes = self._flight.confirm(frames)
        if sizes is not None:
            self._queue.settle_sent(sizes)
            left = len(self._flight)
            self._ran_dry |= not left and self.waits
            self._moved(before - left)

    def _moved(self, frames: int) -> None:
        self._moved_s = self._loop.time()
        self._window.confirm(self._moved_s, frames)
        if self._handle is not None:  # the driver has room now
            self._handle.cancel()
            self._handle = None

    def _blocked(self, error: OSError, now_s: float) -> None:
        if self._blocked_s is None:
            self._blocked_s = now_s
        # SocketCAN reports a lost device itself. Opening it again would only queue more late frames.
        stalled = not self._port.confirms and now_s - self._blocked_s > _STALL_S
        if error.errno not in TRANSIENT or stalled:
            return self._on_lost(f"cannot send: {words_of(error)}")
        if self._flight:
            self._window.refuse(len(self._flight))
        self._give_back()
        self._handle = self._loop.call_later(self._pause_s, self._again)
        self._pause_s = min(2 * self._pause_s, _RETRY_MAX_S)
        return None

    def _give_back(self) -> None:
        """Put a message back into the queue if none of it was written: the policy applies to it again."""
        if self._taken is not None and self._voice.take_back():
            self._queue.put_back(*self._taken)
            self._taken = None
            self._pending.clear()

    def _tend(self) -> None:
        now_s = self._loop.time()
        still_s = now_s - self._moved_s
        controller_works = self._shared.bus.state in ("error-active", "unknown")
        if self._flight and still_s > max(CONFIRM_S, self._age_s) and controller_works:
            self.forget("unconfirmed")
        if self._pending:
            self._refuse_stale(now_s)
        self.pump()

    def forget(self, reason: str) -> None:
        """Stop waiting for confirmations, and drop messages that lack one for the reason given."""
        frames, sizes = self._flight.clear()
        # they may still come back, to the next socket
        self._own.sent(frames, self._loop.time() + self._voice.echo_s)
        for size in sizes:
            self._queue.settle(size, reason)

    def _give_up_pending(self, reason: str) -> None:
        if self._pending:
            self._pending.clear()
            self._taken = None
            if self._message:
                self._queue.settle(len(self._message), reason)

    def hold(self, reason: str) -> None:
        super().hold(reason)
        self._give_up_pending(reason)
        self.forget(reason)

    def purge(self, reason: str) -> list[bytes]:
        self._give_back()
        begun = [self._message] if self._pending and self._message else []
        self._give_up_pending(reason)
        return begun + super().purge(reason)

    def close(self, reason: str) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._give_up_pending(reason)
        self.forget(reason)
        super().close(reason)
