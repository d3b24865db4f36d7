"""Liveness: whether a silent peer lives, and when to send a heartbeat. Pure: times in seconds are arguments.

The rules are in docs/dbp.md. Both ends of a conversation can use both classes.
"""

from enum import Enum
from typing import Final

SUSPECT_INTERVALS: Final = 2  # of silence: the peer is suspect, and a peer that beats is asked now
GONE_INTERVALS: Final = 5  # of silence: the peer is gone, if it was asked this often in vain:
ASKS: Final = 3


class State(Enum):
    """The state of a peer, by its silence."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    GONE = "gone"


class Watch:
    """Watches one peer, by the agreed interval.

    A peer that does not send heartbeats is asked after each interval of silence; one that `beats` is asked
    once it is suspect. Silence alone never makes a peer gone: each question has an interval to be answered,
    so a watcher that was stopped for a minute asks first.
    """

    __slots__ = ("_asked", "_asked_s", "_heard_s", "beats", "interval_s")

    def __init__(self, interval_s: float, beats: bool, now_s: float) -> None:
        self.interval_s, self.beats = interval_s, beats
        self._heard_s = self._asked_s = now_s
        self._asked = 0

    def heard(self, now_s: float) -> None:
        """Note a sign of life: any command of the peer."""
        self._heard_s, self._asked = now_s, 0

    def silence_ms(self, now_s: float) -> int:
        """Return the milliseconds since the last sign of life."""
        return max(0, int((now_s - self._heard_s) * 1000))

    def agree(self, interval_s: float, beats: bool) -> None:
        """Watch by another interval from now on."""
        self.interval_s, self.beats = interval_s, beats

    def state(self, now_s: float) -> State:
        """Return the state of the peer."""
        silence_s = now_s - self._heard_s
        if silence_s < SUSPECT_INTERVALS * self.interval_s:
            return State.ALIVE
        unanswered = self._asked >= ASKS and now_s - self._asked_s >= self.interval_s
        gone = unanswered and silence_s >= GONE_INTERVALS * self.interval_s
        return State.GONE if gone else State.SUSPECT

    def ask(self, now_s: float) -> bool:
        """Return whether to ask the peer now, and count that as done."""
        patience = SUSPECT_INTERVALS if self.beats else 1
        due_s = self._heard_s + patience * self.interval_s
        if self._asked:
            due_s = self._asked_s + self.interval_s
        if now_s < due_s:
            return False
        self._asked += 1
        self._asked_s = now_s
        return True

    def put_off(self, now_s: float) -> None:
        """Note that the last question has not left yet: its interval begins now."""
        self._asked_s = now_s


class Pulse:
    """Says when a heartbeat is due: one interval after the last command, so that none goes beside traffic."""

    __slots__ = ("_due_s", "_interval_s")

    def __init__(self, interval_s: float, now_s: float) -> None:
        self._interval_s = interval_s
        self._due_s = now_s

    def said(self, now_s: float) -> None:
        """Note that a command was sent, such as a heartbeat."""
        self._due_s = now_s + self._interval_s

    def due(self, now_s: float) -> bool:
        """Return whether to send a heartbeat now."""
        return now_s >= self._due_s
