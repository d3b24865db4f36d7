"""The messages that the broker has not acknowledged, and which of them it cannot take. Pure."""

from typing import Generic, TypeVar

T = TypeVar("T")
CAREFUL = 1024
"""After a disconnect that blames a message, so many are published one at a time, to find it."""


class Flight(Generic[T]):
    """At most `room` messages at a time, by their packet ids, oldest first."""

    def __init__(self) -> None:
        self._flying: dict[int, T] = {}
        self._window = 0
        self._careful = 0

    def __len__(self) -> int:
        return len(self._flying)

    @property
    def room(self) -> int:
        """How many more may be published now; 0 while there is no session."""
        return max(0, (min(1, self._window) if self._careful else self._window) - len(self._flying))

    def up(self, window: int) -> None:
        """Note that there is a session, in which so many messages may be on their way."""
        self._window = window

    def begin(self, packet_id: int, item: T) -> None:
        self._flying[packet_id] = item

    def end(self, packet_id: int) -> T | None:
        """Forget a message that was acknowledged, and return it; None if it is not ours."""
        self._careful = max(0, self._careful - 1)
        return self._flying.pop(packet_id, None)

    def down(self, blamed: bool) -> tuple[list[T], T | None]:
        """Note that the session has ended. Return what is to be published again, and the one that is not.

        `blamed`: the broker said that a packet of ours was the cause. If only one was on its way, it is the
        culprit. Otherwise the next session publishes one at a time until it is found.
        """
        again, culprit = list(self._flying.values()), None
        self._flying.clear()
        self._window = 0
        if blamed and len(again) == 1:
            culprit, self._careful = again.pop(), 0
        elif blamed and again:
            self._careful = CAREFUL
        return again, culprit
