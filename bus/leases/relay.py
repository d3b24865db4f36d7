"""The relay of a broker: it passes announcements of gateways on to the other candidates that announce."""

from asyncio import AbstractEventLoop
from typing import Final

from bus.announcements import Announcement, Hear, read, said
from bus.serving.connection import Connection
from bus.turns import FULL, Turns

PAUSE_S: Final = 0.2
"""The time between two announcements of one connection; more are rejected."""


def read_note(frame: bytes) -> Announcement | str:
    """Return an announcement that nobody here can prove, for a broker without a topology."""
    return read(frame) or "malformed"


class Relay:
    """The candidates at a broker that announce. Only these get announcements: an older one takes none."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._due_s: dict[Connection, float] = {}
        self._speakers: set[Connection] = set()
        self._turns = Turns(self.say)
        self.unrelayed = 0
        """The announcements that had no room at a candidate, which gets the next one."""

    def meet(self, connection: Connection) -> None:
        """Note that a connection has made a claim that counts: from now on it may announce."""
        self._due_s.setdefault(connection, 0.0)

    def heard(self, frame: bytes, connection: Connection, loop: AbstractEventLoop) -> str:
        """Take an announcement, and pass it on in its turn. Return why it is rejected, "" if it is not."""
        due_s, now_s = self._due_s.get(connection), loop.time()
        if due_s is None or now_s < due_s:
            return "announced before a claim" if due_s is None else "announced too fast"
        self._due_s[connection] = now_s + PAUSE_S
        found = self._hear(said(frame))
        if isinstance(found, str):
            return found
        self._speakers.add(connection)
        return "" if self._turns.wait(found.gateway, frame, connection, loop) else FULL

    def say(self, frame: bytes, sender: Connection | None) -> None:
        """Send an announcement to all that announce but its sender, as far as there is room."""
        for one in list(self._speakers):
            if one is sender or one.closed:
                continue
            if one.has_room(len(frame)):
                one.say(frame)
            else:
                self.unrelayed += 1

    def forget(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._due_s.pop(connection, None)
        self._speakers.discard(connection)

    def close(self) -> None:
        """Pass on nothing more. Idempotent."""
        self._turns.close()
