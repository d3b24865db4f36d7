"""The turns in which announcements of gateways are passed on, so that many at once delay nothing else."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from bus.announcements import SPEAKERS_MAX

TURN_S: Final = 0.04
"""The time between two announcements that are passed on."""
FULL: Final = "announcements full"
"""The reason of an announcement for which there is no turn."""
T = TypeVar("T")


class Turns(Generic[T]):
    """Announcements that wait: of each gateway the newest, and of `SPEAKERS_MAX` gateways at most.

    `pass_on` gets each in its turn, with where it came from, and never within `wait`.
    """

    def __init__(self, pass_on: Callable[[bytes, T], None]) -> None:
        self._pass_on = pass_on
        self._waiting: dict[str, tuple[bytes, T]] = {}
        self._timer: TimerHandle | None = None
        self._next_s = 0.0

    def wait(self, gateway: str, frame: bytes, source: T, loop: AbstractEventLoop) -> bool:
        """Let an announcement wait for its turn, in place of one of the same gateway that waits.

        Return False if too many wait: it is not passed on.
        """
        has_room = gateway in self._waiting or len(self._waiting) < SPEAKERS_MAX
        if has_room:
            self._waiting[gateway] = frame, source
            self._arm(loop)
        return has_room

    def _arm(self, loop: AbstractEventLoop) -> None:
        if self._timer is None and self._waiting:
            self._timer = loop.call_at(max(self._next_s, loop.time()), self._turn, loop)

    def _turn(self, loop: AbstractEventLoop) -> None:
        self._timer, self._next_s = None, loop.time() + TURN_S
        frame, source = self._waiting.pop(next(iter(self._waiting)))
        self._arm(loop)
        self._pass_on(frame, source)

    def close(self) -> None:
        """Pass on nothing more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._waiting = None, {}
