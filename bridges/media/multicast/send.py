"""The queue in front of the sender of a multicast group. It is bounded, keeps order and counts every drop."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import inf

from bridges.media.multicast.datagram import Datagram, Decoder, Encoder
from bridges.media.shedding import Shed
from bus.ledger import Stats
from bus.wire.batch import Batch, payloads

_ENCODE_MESSAGES = 512  # encoded at a time


class Outbox:
    """A bounded queue of datagrams, followed by messages that are not encoded yet. Keeps the ledger."""

    def __init__(self, encoder: Encoder, stats: Stats, queue_bytes: int) -> None:
        self._encoder, self._stats, self._queue_bytes = encoder, stats, queue_bytes
        self._ready: deque[Datagram] = deque()
        self._messages: deque[bytes] = deque()

    @property
    def has_ready(self) -> bool:
        """Whether a datagram is waiting, not only messages."""
        return bool(self._ready)

    def revise(self, shed: Shed, all_of_it: bool) -> None:
        """Set the bound of a policy; without shedding nothing else of the policy applies."""
        self._queue_bytes = shed.queue_bytes

    def add(self, batch: Batch) -> None:
        """Queue `batch` as datagrams to send at once. Call `trim` afterwards, to keep the bound."""
        self._add_ready(self._encoder.encode(batch))

    def _add_ready(self, made: list[Datagram]) -> None:
        self._ready.extend(made)
        self._stats.queued += sum(count for _, count in made)
        self._stats.queued_bytes += sum(len(datagram) for datagram, _ in made)

    def add_later(self, messages: Iterable[bytes]) -> None:
        """Queue messages that must wait. They are encoded later, so that they share datagrams."""
        stats = self._stats
        for message in messages:
            if stats.queued_bytes + len(message) > self._queue_bytes:
                stats.drop("queue full")
            else:
                self._messages.append(message)
                stats.queued += 1
                stats.queued_bytes += len(message)

    def _refill(self) -> bool:
        taken = [self._messages.popleft() for _ in range(min(len(self._messages), _ENCODE_MESSAGES))]
        self._stats.queued -= len(taken)
        self._stats.queued_bytes -= sum(map(len, taken))
        self._add_ready(self._encoder.pack(taken))
        return bool(self._ready or self._messages)

    def give_back(self) -> None:
        """Put unsent messages back, because the sender is full. Has no effect without a shed policy."""

    def ready_s(self) -> float:
        """Return the time (s) at which the rate limit allows the next message; infinite if none waits."""
        return inf

    def transmit(self, send: Callable[[bytes], int]) -> None:
        """Send everything. Raises the OSError of `send`; the datagram it did not accept stays first."""
        while self._ready or self._refill():
            self._transmit_ready(send)

    def _transmit_ready(self, send: Callable[[bytes], int]) -> None:
        ready, sent, sent_bytes = self._ready, 0, 0
        try:
            while ready:
                datagram, count = ready[0]
                send(datagram)
                ready.popleft()
                sent += count
                sent_bytes += len(datagram)
        finally:
            self._settle(sent, sent_bytes)

    def _settle(self, sent: int, sent_bytes: int) -> None:
        stats = self._stats
        stats.sent += sent
        stats.sent_bytes += sent_bytes
        stats.queued -= sent
        stats.queued_bytes -= sent_bytes

    def transmit_first(self, send: Callable[[bytes], int]) -> None:
        """Send the first datagram, if there is one. Raises OSError as `transmit` does."""
        if self._ready:
            datagram, count = self._ready[0]
            send(datagram)
            self._ready.popleft()
            self._settle(count, len(datagram))

    def refuse_first(self, reason: str) -> None:
        """Drop the first datagram. If it is a fragment, drop the later fragments of its message too."""
        count = 0
        while self._ready and not count:
            datagram, count = self._ready.popleft()
            self._forget(datagram, count, reason)

    def trim(self) -> None:
        """Drop the newest datagrams until the queue is within its bound. Drop whole messages only."""
        ready = self._ready
        while ready and self._stats.queued_bytes > self._queue_bytes:
            self._forget(*ready.pop(), "queue full")
            while ready and not ready[-1][1]:
                self._forget(*ready.pop(), "queue full")

    def _forget(self, datagram: bytes, count: int, reason: str) -> None:
        self._stats.queued -= count
        self._stats.queued_bytes -= len(datagram)
        if count:
            self._stats.drop(reason, count)

    def purge(self, reason: str, begun: Sequence[bytes] = ()) -> list[bytes]:
        """Drop all messages and return them. `begun`: the fragments that are sent of one; without them that
        one is not returned."""
        every = (*begun, *(datagram for datagram, _ in self._ready))
        made = Decoder({}).feed([(self._encoder.plain(datagram), None) for datagram in every], 0.0)
        waiting = [*(payloads(made) if made else ()), *self._messages]
        if self._stats.queued:
            self._stats.drop(reason, self._stats.queued)
        self._ready.clear()
        self._messages.clear()
        self._stats.queued = self._stats.queued_bytes = 0
        return waiting
