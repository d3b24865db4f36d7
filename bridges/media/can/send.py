"""Sending to a CAN bus: messages to frames, from the loop, or from a thread if the driver may block."""

import errno
from asyncio import AbstractEventLoop, Future, Handle
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, NamedTuple

from bridges.items import CanFrame
from bridges.media.can.flight import Flight
from bridges.media.can.pace import Driver
from bridges.media.can.port import BusPort, Port
from bridges.media.can.shared import Shared
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.voice import Voice
from bridges.media.shedding import Shed, ShedQueue
from bus.errors import words_of
from bus.vacancy import NO_PEER
from bus.wire.envelope import is_whole

_FRAMES = 64  # sent in one turn of the loop
_RETRY_MIN_S, _RETRY_MAX_S = 0.001, 0.05
_STALL_S = 5.0
_CONFIRM_S = 1.0
_BLOCKED_S = 1.0  # the longest wait for one frame, in a driver that blocks
_SAID = 256  # frames without a message that wait; older ones give way
_TRANSIENT = (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EBUSY, errno.EINTR)


class _Next(NamedTuple):
    """Frames to write, of a message that was queued at `came_s`; b"" for what the voice says by itself."""

    frames: Sequence[CanFrame]
    came_s: float
    message: bytes


class Outbound:
    """The base class of both senders. It has the queue and drops stale messages even if nothing is sent."""

    def __init__(
        self,
        shared: Shared,
        port: Port,
        voice: Voice,
        loop: AbstractEventLoop,
        on_lost: Callable[[str], None],
    ) -> None:
        self._shared, self._port, self._voice = shared, port, voice
        self._loop, self._on_lost = loop, on_lost
        self._said = deque[tuple[float, CanFrame]](maxlen=_SAID)
        self._stats, self._own = shared.stats, shared.own
        self._queue = ShedQueue(shared.stats, shared.shed)
        self._closed = self.held = False
        self.spoken = False  # something was written since it was last set to False
        self._tending: Handle | None = None
        self._pacing: Handle | None = None

    @property
    def _age_s(self) -> float:
        return self._queue.shed.age_s or inf

    @property
    def waits(self) -> bool:
        """Whether a message waits for room in the driver."""
        return bool(self._queue)

    @property
    def is_flying(self) -> bool:
        """Whether frames in the driver wait to be confirmed."""
        return False

    def driver(self) -> Driver:
        """Return how the driver is, and was since the last call."""
        return Driver(self.waits)

    def revise(self, shed: Shed) -> None:
        """Change to another policy, for all messages that wait."""
        self._queue.revise(shed)
        self.pump()
        self._tend_later()

    def put(self, messages: list[bytes], are_whole: bool = False) -> None:
        """Send or queue the messages whose header gives their length; drop others as `malformed`.

        The receiver needs that length to remove the padding. `are_whole`: all are known to be such.
        """
        whole = messages if are_whole else [message for message in messages if is_whole(message)]
        if len(whole) < len(messages):
            self._stats.drop("malformed", len(messages) - len(whole))
        if self._port.is_alone:
            return self._stats.drop(NO_PEER, len(whole))
        self._take_up(self._loop.time(), whole)
        return self._tend_later()

    def _take_up(self, now_s: float, messages: list[bytes]) -> None:
        self._queue.put(now_s, messages)
        self.pump()

    def say(self, frames: Sequence[CanFrame]) -> None:
        """Send frames of the voice's own before messages that wait. They are in no ledger."""
        if not self.held and not self._closed:
            now_s = self._loop.time()
            self._said.extend((now_s, frame) for frame in frames)
            self.pump()

    def _next(self, now_s: float) -> _Next | None:
        """Return the next frames to write. If the rate allows none yet, schedule `pump` for when it does."""
        while self._said:
            came_s, frame = self._said.popleft()
            if now_s - came_s <= self._age_s:
                return _Next((frame,), came_s, b"")
        while self._voice.is_free and (taken := self._queue.take(now_s)) is not None:
            came_s, message = taken
            frames, why, _ = self._voice.encode(message, now_s)
            if frames:
                return _Next(frames, came_s, message)
            self._queue.settle(len(message), why)
        if self._queue and self._pacing is None and self._voice.is_free:
            self._pacing = self._loop.call_at(self._queue.ready_s(), self._paced)
        return None

    def _note_own(self, frames: Sequence[CanFrame], now_s: float) -> None:
        """Note frames that were given to a driver that confirms none: they may come back."""
        self._own.sent(frames, now_s + self._voice.echo_s)
        if self._shared.wire.hears:
            self._shared.wire.tell([pack_frame(frame) for frame in frames], True)

    def _paced(self) -> None:
        self._pacing = None
        self.pump()

    def pump(self) -> None:
        """Send as many waiting messages as possible now."""
        raise NotImplementedError

    def confirm(self, frames: Sequence[CanFrame]) -> None:
        """Note that frames of ours were sent on the wire."""

    def hold(self, reason: str) -> None:
        """Stop sending and drop the frames in the driver. Waiting messages stay, but may become stale."""
        self.held = True
        self._said.clear()

    def resume(self) -> None:
        self.held = False
        self.pump()

    def _tend_later(self) -> None:
        if self._tending is None and not self._closed and self._stats.queued:
            self._tending = self._loop.call_later(min(self._age_s, _CONFIRM_S) / 2, self._tend_now)

    def _tend_now(self) -> None:
        self._tending = None
        self._queue.expire(self._loop.time())
        self._tend()
        self._tend_later()

    def _tend(self) -> None:
        pass

    def purge(self, reason: str) -> list[bytes]:
        """Drop the waiting messages and return them."""
        self._said.clear()
        return self._queue.clear(reason)

    def close(self, reason: str) -> None:
        self._closed = True
        for handle in (self._tending, self._pacing):
            if handle is not None:
                handle.cancel()
        self._said.clear()
        self._queue.clear(reason)


class SilentSender(Outbound):
    """A sender that sends nothing: the link only listens."""

    def put(self, messages: list[bytes], are_whole: bool = False) -> None:
        self._stats.drop("listen only", len(messages))

    def say(self, frames: Sequence[CanFrame]) -> None:
        """Say nothing."""

    def pump(self) -> None:
        """Send nothing."""


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
        if error.errno not in _TRANSIENT or stalled:
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
        if self._flight and still_s > max(_CONFIRM_S, self._age_s) and controller_works:
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
        if error is not None and getattr(error, "errno", errno.EAGAIN) not in _TRANSIENT:
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
