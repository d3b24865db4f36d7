"""The long messages that are under way, of whichever form: they are bounded, and end in silence. Pure."""

from math import inf
from typing import Final, Generic, Protocol, TypeVar

SESSIONS_MAX: Final = 256


class Session(Protocol):
    """A message that is under way, until `due_s` if nothing more comes."""

    due_s: float


S = TypeVar("S", bound=Session)


class Sessions(Generic[S]):
    """The base of what joins messages by two numbers each. `rejected` counts by reason what became none.

    Before `due_s` none of them ends in silence.
    """

    def __init__(self, rejected: dict[str, int]) -> None:
        self._rejected = rejected
        self._sessions = dict[tuple[int, int], S]()
        self.due_s = inf

    def __len__(self) -> int:
        return len(self._sessions)

    def _reject(self, reason: str) -> None:
        self._rejected[reason] = self._rejected.get(reason, 0) + 1

    def _silent(self, key: tuple[int, int]) -> None:
        """End a message of which nothing came for too long."""
        del self._sessions[key]
        self._reject("unfinished")

    def expire(self, now_s: float) -> None:
        """Drop the messages that were silent for too long."""
        if now_s < self.due_s:
            return
        for key in [key for key, session in self._sessions.items() if session.due_s <= now_s]:
            self._silent(key)
        self.due_s = min((session.due_s for session in self._sessions.values()), default=inf)
