"""The muting of senders at a socket: who says too much there is kept out, thinned, and heard whole again."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from bus.transports.inlet import Inlet

_LEFT: Final = 8  # one of so many parts of what waited is left when all are heard again
_AGAIN_S: Final = 1.0  # so soon after it was heard again, who is muted again is thinned
_LEVEL_MAX: Final = 12
_OTHERS_S: Final = 10.0  # for which it is remembered that there are several senders


class Muting:
    """The judgement who is muted at an `inlet`, by what waits in an intake.

    That is who finds no room there, and who has most there while the buffer of the socket is half full and
    others are heard too, until most of what waits is done. If that happens again and again, only a part of
    what they say is let in, by chance.
    """

    def __init__(self, loop: AbstractEventLoop, inlet: Inlet) -> None:
        self._loop, self._inlet = loop, inlet
        self._is_shut, self._level, self._left_bytes = False, 0, 0
        self._opened_s, self._others_s = -_AGAIN_S, -_OTHERS_S
        self._last: Hashable = None
        self._relief: TimerHandle | None = None

    def hear(self, received: Sequence[tuple[bytes, Hashable]]) -> None:
        """Note whether several senders are heard.

        That must be known before a flood: once it has filled the buffer, hardly anybody else is heard.
        """
        before = self._last or received[0][1]
        if any(sender != before for _, sender in received):
            self._others_s = self._loop.time()
        self._last = received[-1][1]

    def judge(self, losers: Iterable[Hashable], most: Hashable | None, held_bytes: int) -> None:
        """Mute who must be: `losers` found no room; of `most` there is most while the buffer is pressed.

        `held_bytes` wait.
        """
        muted, now_s = list(losers), self._loop.time()
        if most is not None and now_s - self._others_s < _OTHERS_S:
            muted.append(most)
        if muted:
            self._left_bytes = held_bytes // _LEFT
            self._shut(muted, now_s)

    def _shut(self, senders: Iterable[Hashable], now_s: float) -> None:
        if not self._is_shut and now_s - self._opened_s < _AGAIN_S:
            self._level = min(_LEVEL_MAX, self._level + 2)
        self._is_shut = True
        for sender in senders:
            self._inlet.mute(sender)

    def note_left(self, held_bytes: int) -> None:
        """Hear all again if little enough waits."""
        if self._is_shut and held_bytes <= self._left_bytes:
            self._open()

    def _open(self) -> None:
        """Hear all again, or part of those that were muted, and more of them each second."""
        self._is_shut, self._opened_s = False, self._loop.time()
        self._inlet.thin(self._level)
        if self._level and self._relief is None:
            self._relief = self._loop.call_later(_AGAIN_S, self._relieve)

    def _relieve(self) -> None:
        self._relief = None
        if not self._is_shut:
            self._level = max(0, self._level - 1)
            self._open()

    def end(self) -> None:
        """Judge no more: the socket is closed. Idempotent."""
        self._is_shut = False
        if self._relief is not None:
            self._relief.cancel()
            self._relief = None
