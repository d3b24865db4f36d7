"""The base classes of what is said on a CAN bus: messages as whole frames, and frames as messages. Pure.

`transfers` says messages as Cyphal transfers, `spoken` by the translator of a protocol.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from math import inf
from operator import not_

from bridges.items import ERROR, OWN, CanFrame
from bridges.media.can.shared import Shared
from bridges.media.can.socketcan import pack_frame
from bridges.packed import Packed
from bridges.protocols.translator import Sent

FAULTS_MAX = 1000
"""The number of unreadable inputs in a row after which the bus is opened again."""
OnFrame = Callable[[CanFrame], None]
OnFrames = Callable[[Sequence[CanFrame]], None]


class Inbound:
    """The base class of receiving halves: what came becomes messages, our own frames do not.

    It ignores `is_rx`: udp_multicast sets it on frames that we sent, and SocketCAN clears it on frames of
    other programs on this machine.
    """

    def __init__(self, shared: Shared, on_confirmed: OnFrames, on_error: OnFrame) -> None:
        self._stats, self._own, self._wire = shared.stats, shared.own, shared.wire
        self._on_confirmed, self._on_error = on_confirmed, on_error
        self._faults, self._late_s = 0, 0.0
        self.unreadable = 0  # since it was last set to 0
        self.came_ns: Sequence[int] = ()
        """The times at which the messages of the last call of `messages` came; () if that is not known."""

    def note_fault(self) -> bool:
        """Count an unreadable input. Return True after too many in a row."""
        self._stats.reject("unreadable")
        self._faults += 1
        self.unreadable += 1
        return self._faults > FAULTS_MAX

    def confirms(self, frames: Sequence[CanFrame]) -> bool:
        """Confirm frames that are all our own, which nobody else is to see. Return whether they were."""
        if not isinstance(frames, Packed) or self._wire.hears or frames.own < len(frames) or not frames.owns:
            return False
        self._faults = 0
        self._on_confirmed(frames)
        return True

    def messages(
        self, now: float, frames: Sequence[CanFrame], stamps_ns: Sequence[int], late_s: float = 0.0
    ) -> list[bytes]:
        """Return the messages that `frames` complete, in order. `stamps_ns` tell when each frame came.

        The first one waited for `late_s` until it was read.
        """
        self._late_s = late_s
        if frames:
            self._faults = 0
            if self._wire.hears:
                self._show(now, frames, stamps_ns)
        return self._messages(now, frames, stamps_ns)

    def _confirm(self, frames: Sequence[CanFrame]) -> int:
        """Confirm our own frames, all at once, and return their number; 0 among error frames, which may end
        what was sent before: then they are to be confirmed in their order.
        """
        own = [frame for frame in frames if frame[2] & OWN]
        if not own or any(frame[0] & ERROR for frame in frames):
            return 0
        self._on_confirmed(own)
        return len(own)

    def _without_own(self, frames: Packed, stamps_ns: Sequence[int]) -> tuple[Packed, Sequence[int]]:
        """Confirm our own frames, all at once. Return those of others, and their times."""
        if not frames.owns:
            return frames, stamps_ns
        own, others = frames.split()
        self._on_confirmed(own)
        return others, list(compress(stamps_ns, map(not_, frames.owns))) if others and stamps_ns else ()

    def _show(self, now: float, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> None:
        """Show a tap what others sent, and what the driver confirms as ours."""
        echoes = self._own.copy()  # of frames that were shown when the driver took them
        shown = [self._is_shown(frame) for frame in frames]
        own = [is_shown and bool(frame[2] & OWN) for frame, is_shown in zip(frames, shown, strict=True)]
        others = [
            is_shown and not frame[2] & OWN and not (echoes and echoes.take(frame, now))
            for frame, is_shown in zip(frames, shown, strict=True)
        ]
        for some, is_sent in (own, True), (others, False):
            if any(some):
                items = [pack_frame(frame) for frame in compress(frames, some)]
                self._wire.tell(items, is_sent, list(compress(stamps_ns, some)))

    def _is_shown(self, frame: CanFrame) -> bool:
        """Return whether a tap of the wire records a frame."""
        return not frame[0] & ERROR

    def _messages(self, now: float, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> list[bytes]:
        raise NotImplementedError


class Voice:
    """The language of one opening of a bus: how messages become frames, and how frames of others are read.

    While `is_free` is False, no message is taken out of the queue: `encode` cannot take one now.
    """

    is_free: bool = True
    echo_s: float = inf
    """The time that our frames may take to come back: no end, where their identifiers are ours alone."""

    def encode(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        """Return the frames for a message, which is whole and legal; or none, and why not."""
        raise NotImplementedError

    def run(self, messages: Sequence[bytes], now_s: float) -> Sequence[CanFrame] | None:
        """Return one frame for each message, which are whole and legal, and note nothing until `ran`.

        None if one of them is not just one frame, or no run is possible: `encode` takes them then.
        """
        return None

    def ran(self, count: int) -> None:
        """Note that the first `count` frames of the last `run` were written."""

    def take_back(self) -> bool:
        """Undo the last `encode`, of which no frame was written. Return False if that cannot be done."""
        return False

    def hearing(self, on_confirmed: OnFrames, on_error: OnFrame) -> Inbound:
        """Return the receiving half, which calls these for frames that were sent, and for error frames."""
        raise NotImplementedError
