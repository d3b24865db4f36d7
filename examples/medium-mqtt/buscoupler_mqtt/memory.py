"""What waits in memory: a queue with a shed policy, and the messages that the broker has not acknowledged."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable

from bridges.media.device import cancel
from bridges.media.shedding import Shed, ShedQueue
from bus.ledger import Stats
from buscoupler_mqtt.flight import Flight

Publish = Callable[[bytes], int]
"""Publishes a frame and returns its packet id. Raises ValueError, with the reason, if it can never go."""


class Memory:
    """The way out without a spool. A message is queued until the broker has it, and sent then."""

    condition = ""

    def __init__(self, stats: Stats, shed: Shed, loop: AbstractEventLoop, publish: Publish) -> None:
        self._queue, self._loop, self._publish = ShedQueue(stats, shed), loop, publish
        self._flight = Flight[tuple[float, bytes]]()
        self._timer: TimerHandle | None = None

    def up(self, window: int) -> None:
        self._flight.up(window)
        self._pump()

    def down(self, blamed: bool) -> None:
        again, culprit = self._flight.down(blamed)
        if culprit is not None:
            self._queue.settle(len(culprit[1]), "refused")
        for came, message in reversed(again):
            self._queue.put_back(came, message)

    def put(self, messages: list[bytes]) -> None:
        self._queue.put(self._loop.time(), messages)
        self._pump()

    def done(self, packet_id: int, refused: bool) -> None:
        """Note that the broker has taken a message, or refused it."""
        flown = self._flight.end(packet_id)
        if flown is not None:
            self._queue.settle(len(flown[1]), "refused" if refused else "")
            self._pump()

    def _pump(self) -> None:
        while self._flight.room and (taken := self._queue.take(self._loop.time())) is not None:
            try:
                self._flight.begin(self._publish(taken[1]), taken)
            except ValueError as error:
                self._queue.settle(len(taken[1]), str(error))
        if self._flight.room and self._queue and self._timer is None:
            self._timer = self._loop.call_at(self._queue.ready_s(), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._pump()

    def revise(self, shed: Shed) -> None:
        self._queue.revise(shed)
        self._pump()

    def purge(self, reason: str) -> list[bytes]:
        return self._queue.clear(reason)

    def close(self) -> None:
        """Drop all that waits. The session has ended before."""
        cancel(self._timer)
        self._queue.clear("closed")
