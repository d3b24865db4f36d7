"""The outbox of a multicast group with a shed policy: messages wait unencoded, so that it applies."""

from collections.abc import Callable, Iterable, Sequence

from bridges.media.multicast.datagram import Encoder, size_at
from bridges.media.multicast.send import Outbox
from bridges.media.shedding import Shed, ShedQueue
from bus.ledger import Stats
from bus.wire.batch import Batch, payloads


class ShedOutbox(Outbox):
    """An outbox that encodes one datagram at a time, when the sender accepts it. `clock`: monotonic, s."""

    def __init__(self, encoder: Encoder, stats: Stats, shed: Shed, clock: Callable[[], float]) -> None:
        super().__init__(encoder, stats, shed.queue_bytes)
        self._queue, self._clock = ShedQueue(stats, shed), clock
        self._taken: list[tuple[float, bytes]] = []  # the messages in the datagrams that are ready
        self._made = 0  # datagrams

    def revise(self, shed: Shed, all_of_it: bool) -> None:
        """Change to another policy: with `all_of_it` also for the messages in the next datagram."""
        if all_of_it:
            self.give_back()
        self._queue.revise(shed)

    def add(self, batch: Batch) -> None:
        self.add_later(payloads(batch))

    def add_later(self, messages: Iterable[bytes]) -> None:
        """Queue the messages that the policy admits. Illegal messages are dropped as `malformed`."""
        fit = []
        for message in messages:
            if size_at(message, 0, len(message)):
                fit.append(message)
            else:
                self._stats.drop("malformed")
        self._queue.put(self._clock(), fit)

    def _refill(self) -> bool:
        self._taken, room, now = [], self._encoder.room, self._clock()
        while room > 0 and (taken := self._queue.take(now)):
            room -= len(taken[1])
            if room < 0 and self._taken:
                self._queue.put_back(*taken)
            else:
                self._taken.append(taken)
        self._exchange(-1)
        self._add_ready(self._encoder.pack([message for _, message in self._taken]))
        self._made = len(self._ready)
        return bool(self._ready)

    def _exchange(self, sign: int) -> None:
        self._stats.queued += sign * len(self._taken)
        self._stats.queued_bytes += sign * sum(len(message) for _, message in self._taken)

    def give_back(self) -> None:
        """Put the messages back if no datagram of them is sent: they can expire or be replaced."""
        if not self._ready or len(self._ready) < self._made:
            return
        for datagram, count in self._ready:
            self._stats.queued -= count
            self._stats.queued_bytes -= len(datagram)
        self._ready.clear()
        self._exchange(1)
        for taken in reversed(self._taken):
            self._queue.put_back(*taken)

    def purge(self, reason: str, begun: Sequence[bytes] = ()) -> list[bytes]:
        self.give_back()
        waiting = self._queue.clear(reason)
        return super().purge(reason, begun) + waiting

    def ready_s(self) -> float:
        return self._queue.ready_s()

    def trim(self) -> None:
        """Do nothing: `add` keeps the bound."""
