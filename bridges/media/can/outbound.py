"""The way out to a CAN bus: the queue of messages, and what every sender does with them."""

import errno
from asyncio import AbstractEventLoop, Handle
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, NamedTuple

from bridges.items import CanFrame
from bridges.media.can.pace import Driver
from bridges.media.can.port import Port
from bridges.media.can.shared import Shared
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.voice import Voice
from bridges.media.shedding import Shed, ShedQueue
from bus.vacancy import NO_PEER
from bus.wire.envelope import is_whole

CONFIRM_S: Final = 1.0
"""The time for which a frame in the driver may wait to be confirmed; longer if messages stay fresh longer."""
TRANSIENT: Final = (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EBUSY, errno.EINTR)
"""The errors of a driver that has no room now."""
_SAID = 256  # frames without a message that wait; older ones give way


class Next(NamedTuple):
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
    def is_saying(self) -> bool:
        """Whether a frame of the voice's own waits for room in the driver."""
        return bool(self._said)

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

    def _next(self, now_s: float) -> Next | None:
        """Return the next frames to write. If the rate allows none yet, schedule `pump` for when it does."""
        while self._said:
            came_s, frame = self._said.popleft()
            if now_s - came_s <= self._age_s:
                return Next((frame,), came_s, b"")
        while self._voice.is_free and (taken := self._queue.take(now_s)) is not None:
            came_s, message = taken
            frames, why, _ = self._voice.encode(message, now_s)
            if frames:
                return Next(frames, came_s, message)
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
            self._tending = self._loop.call_later(min(self._age_s, CONFIRM_S) / 2, self._tend_now)

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
