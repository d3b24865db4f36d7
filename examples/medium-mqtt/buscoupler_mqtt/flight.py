"""The published messages that the broker has not acknowledged, and the search for a refused one. Pure."""

from typing import Generic, TypeVar

T = TypeVar("T")
CAREFUL = 1024
"""The messages that are published one at a time after a disconnect that blames one, to find it."""


class Flight(Generic[T]):
    """The unacknowledged messages by their packet ids, the oldest first. `T` is what is kept of each."""

    def __init__(self) -> None:
        self._flying: dict[int, T] = {}
        self._window = 0
        self._careful = 0

    def __len__(self) -> int:
        return len(self._flying)

    @property
    def room(self) -> int:
        """The number of messages that may be published now; 0 without a session."""
        return max(0, (min(1, self._window) if self._careful else self._window) - len(self._flying))

    def up(self, window: int) -> None:
        """Note that a session allows `window` unacknowledged messages."""
        self._window = window

    def begin(self, packet_id: int, item: T) -> None:
        """Note that a message was published."""
        self._flying[packet_id] = item

    def end(self, packet_id: int) -> T | None:
        """Forget an acknowledged message, and return its item; None if the packet id is unknown."""
        self._careful = max(0, self._careful - 1)
        return self._flying.pop(packet_id, None)

    def down(self, blamed: bool) -> tuple[list[T], T | None]:
        """Note that the session has ended. Return the messages to publish again, and a refused one or None.

        `blamed` says that the broker named one of our packets as the cause. If only one was unacknowledged,
        it is the culprit; otherwise the next session publishes one at a time until that is found.
        """
        again, culprit = list(self._flying.values()), None
        self._flying.clear()
        self._window = 0
        if blamed and len(again) == 1:
            culprit, self._careful = again.pop(), 0
        elif blamed and again:
            self._careful = CAREFUL
        return again, culprit
