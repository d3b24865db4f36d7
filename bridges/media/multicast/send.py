"""The queue in front of a multicast group's sender: bounded, in order, and every drop counted."""

from collections import deque
from collections.abc import Callable, Iterable
from math import inf

from bridges.media.multicast.datagram import Datagram, Decoder, Encoder
from bus.hub import Stats
from bus.wire.batch import Batch, payloads

_ENCODE_MESSAGES = 512  # taken off the queue at a time


class Outbox:
    """A bounded queue of datagrams, and of messages behind them. Keeps the ledger."""

    def __init__(self, encoder: Encoder, stats: Stats, queue_bytes: int) -> None:
        self._encoder, self._stats, self._queue_bytes = encoder, stats, queue_bytes
        self._ready: deque[Datagram] = deque()
        self._messages: deque[bytes] = deque()

    @property
    def has_ready(self) -> bool:
        """Whether a datagram waits, not only messages."""
        return bool(self._ready)

    def add(self, batch: Batch) -> None:
        """Make datagrams of `batch`, to be sent at once. `trim` afterwards those that could not be sent."""
        self._add_ready(self._encoder.encode(batch))

    def _add_ready(self, made: list[Datagram]) -> None:
        self._ready.extend(made)
        self._stats.queued += sum(count for _, count in made)
        self._stats.queued_bytes += sum(len(datagram) for datagram, _ in made)

    def add_later(self, messages: Iterable[bytes]) -> None:
        """Queue messages that must wait: they share datagrams when their time comes."""
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
        """Queue messages that have not begun again, because the sender is full. Only with a stated policy."""

    def ready_s(self) -> float:
        """Return the time from which a stated rate allows the next; infinite while nothing waits for it."""
        return inf

    def transmit(self, send: Callable[[bytes], int]) -> None:
        """Send until all is sent. Raises OSError: what `send` did not take is still the first in line."""
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
        """Drop the first datagram and, if it is a fragment, those of its message behind it."""
        count = 0
        while self._ready and not count:
            datagram, count = self._ready.popleft()
            self._forget(datagram, count, reason)

    def trim(self) -> None:
        """Drop the newest datagrams above the bound, with all fragments of a message."""
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

    def purge(self, reason: str) -> list[bytes]:
        """Drop all messages; return them, except one whose first fragments have left."""
        made = Decoder({}).feed([(datagram, None) for datagram, _ in self._ready], 0.0)
        waiting = [*(payloads(made) if made else ()), *self._messages]
        if self._stats.queued:
            self._stats.drop(reason, self._stats.queued)
        self._ready.clear()
        self._messages.clear()
        self._stats.queued = self._stats.queued_bytes = 0
        return waiting
