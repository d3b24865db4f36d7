"""The outbox in memory: a message waits in the queue until the broker has acknowledged it."""

from bridges.media.device import cancel
from buscoupler_mqtt.outbox import Outbox


class Memory(Outbox[tuple[float, bytes]]):
    """The outbox without a spool. A message counts as sent when the broker has it."""

    def down(self, blamed: bool) -> None:
        again, culprit = self._flight.down(blamed)
        if culprit is not None:
            self._settle(culprit, "refused")
        for came, message in reversed(again):
            self._queue.put_back(came, message)

    def _settle(self, item: tuple[float, bytes], dropped: str) -> None:
        self._queue.settle(len(item[1]), dropped)

    def _pump(self) -> None:
        while self._flight.room and (taken := self._queue.take(self._loop.time())) is not None:
            try:
                self._flight.begin(self._publish(taken[1]), taken)
            except ValueError as error:
                self._settle(taken, str(error))
        if self._flight.room and self._queue and self._timer is None:
            self._timer = self._loop.call_at(self._queue.ready_s(), self._on_time)

    def close(self) -> None:
        cancel(self._timer)
        self._queue.clear("closed")
