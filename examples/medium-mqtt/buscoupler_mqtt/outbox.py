"""The base of the outboxes `memory` and `spooled`: a queue with a shed policy, and a flight."""

from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Generic, TypeVar

from bridges.media.shedding import Shed, ShedQueue
from bus.ledger import Stats
from buscoupler_mqtt.flight import Flight

T = TypeVar("T")
Publish = Callable[[bytes], int]
"""Publishes a frame and returns its packet id. Raises ValueError, with a reason, if it never can."""


class Outbox(ABC, Generic[T]):
    """The messages that leave for the broker. `T` is what the flight keeps of each.

    `condition` says what is wrong with the outbox, or "".
    """

    def __init__(self, stats: Stats, shed: Shed, loop: AbstractEventLoop, publish: Publish) -> None:
        self.condition = ""
        self._queue, self._loop, self._publish = ShedQueue(stats, shed), loop, publish
        self._flight = Flight[T]()
        self._timer: TimerHandle | None = None

    def up(self, window: int) -> None:
        """Begin to publish in a session, at most `window` messages unacknowledged; 0: publish no more."""
        self._flight.up(window)
        self._pump()

    @abstractmethod
    def down(self, blamed: bool) -> None:
        """Note that the session has ended. `blamed`: the broker says that a packet of ours was the cause."""

    def put(self, messages: list[bytes]) -> None:
        """Queue messages for the broker."""
        self._queue.put(self._loop.time(), messages)
        self._pump()

    def done(self, packet_id: int, refused: bool) -> None:
        """Note that the broker has acknowledged or refused a message."""
        item = self._flight.end(packet_id)
        if item is not None:
            self._settle(item, "refused" if refused else "")
            self._pump()

    @abstractmethod
    def _settle(self, item: T, dropped: str) -> None:
        """Count a message as sent, or as dropped for a reason."""

    @abstractmethod
    def _pump(self) -> None:
        """Move messages on, as far as policy and flight allow."""

    def _on_time(self) -> None:
        self._timer = None
        self._pump()

    def revise(self, shed: Shed) -> None:
        """Go on by another policy."""
        self._queue.revise(shed)
        self._pump()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages in the queue, count them by `reason`, and return them in order."""
        return self._queue.clear(reason)

    @abstractmethod
    def close(self) -> None:
        """Drop the messages in the queue. The session must have ended before."""
