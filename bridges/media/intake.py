"""The intake of datagrams that many may send: senders take turns, and a turn of the loop is short.

All of them come by one socket, whose buffer keeps their order. Who says more than is handled would fill it,
and then everybody waits and loses. So the socket is emptied at once; what waits here waits by sender.
"""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from time import thread_time
from typing import Final

from bus.transports.portion import Portion
from bus.wire.batch import Batch
from bus.wire.sp import walk

Received = tuple[bytes, Hashable]
"""A datagram and the address of its sender: a tuple that begins with the host, or only a host."""

FULL: Final = "input full"
"""The reason of datagrams that find no room among those of their sender."""
WAITING_BYTES: Final = 8 << 20
_EACH_BYTES: Final = 256  # of memory, beside the bytes of a datagram
_GROUPS: Final = 256  # of hosts, and in each of senders: so that nobody makes us search long
_LITTLE_BYTES: Final = 2048  # of one wake-up, that are handled without a look at the clock
_PIECE: Final = 256  # messages


class _Waiting:
    """The datagrams of a group of hosts, by groups of senders, the next one first."""

    __slots__ = ("held_bytes", "number", "senders")

    def __init__(self, number: int) -> None:
        self.number, self.held_bytes = number, 0
        self.senders: dict[int, deque[Received]] = {}

    def put(self, received: Received) -> None:
        self.senders.setdefault(hash(received[1]) % _GROUPS, deque()).append(received)
        self.held_bytes += _EACH_BYTES + len(received[0])

    def take(self) -> Received:
        """Return the next datagram of the next sender, who is then the last."""
        sender = next(iter(self.senders))
        waiting = self.senders.pop(sender)
        received = waiting.popleft()
        if waiting:
            self.senders[sender] = waiting
        self.held_bytes -= _EACH_BYTES + len(received[0])
        return received

    def drop(self) -> None:
        """Drop the newest datagram of the sender with most."""
        sender = max(self.senders, key=lambda one: len(self.senders[one]))
        self.held_bytes -= _EACH_BYTES + len(self.senders[sender].pop()[0])
        if not self.senders[sender]:
            del self.senders[sender]


class Intake:
    """Datagrams that wait: at most 8 MiB, more than the buffer of a socket.

    Groups of hosts take turns, and in a group senders do. If more would wait, who has most loses the newest.
    """

    def __init__(self, most_bytes: int = WAITING_BYTES) -> None:
        self._most_bytes, self._held_bytes, self._count = most_bytes, 0, 0
        self._groups: dict[int, _Waiting] = {}

    def __len__(self) -> int:
        return self._count

    def put(self, received: Iterable[Received]) -> int:
        """Let datagrams wait. Return how many were dropped for it, of these or of others."""
        dropped = 0
        for one in received:
            sender = one[1]
            host = sender[0] if isinstance(sender, tuple) else sender
            number = hash(host) % _GROUPS
            group = self._groups.get(number)
            if group is None:
                group = self._groups[number] = _Waiting(number)
            group.put(one)
            self._count += 1
            self._held_bytes += _EACH_BYTES + len(one[0])
            while self._held_bytes > self._most_bytes:
                self._drop(group)
                dropped += 1
        return dropped

    def _drop(self, newest: _Waiting) -> None:
        share_bytes = self._held_bytes // len(self._groups)
        fullest = newest
        if newest.held_bytes < share_bytes:
            fullest = max(self._groups.values(), key=lambda one: one.held_bytes)
        before = fullest.held_bytes
        fullest.drop()
        self._count -= 1
        self._held_bytes -= before - fullest.held_bytes
        if not fullest.senders:
            del self._groups[fullest.number]

    def take(self, size_bytes: int) -> list[Received]:
        """Return the next datagrams, of so many bytes or just above; none if none wait."""
        taken, taken_bytes = list[Received](), 0
        while self._count and taken_bytes < size_bytes:
            number = next(iter(self._groups))
            group = self._groups.pop(number)
            received = group.take()
            if group.senders:
                self._groups[number] = group
            self._count -= 1
            self._held_bytes -= _EACH_BYTES + len(received[0])
            taken.append(received)
            taken_bytes += len(received[0])
        return taken


class Turns:
    """The turns in which datagrams become messages, each of about 2 ms of work.

    `decode` makes a batch of datagrams, `publish` gets it, or pieces of it in several turns. `lose(count)`
    counts datagrams that find no room.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        decode: Callable[[Sequence[Received]], Batch | None],
        publish: Callable[[Batch], object],
        lose: Callable[[int], object],
        most_bytes: int = 1 << 18,
    ) -> None:
        self._loop, self._decode, self._publish, self._lose = loop, decode, publish, lose
        self._intake, self._portion = Intake(), Portion(most_bytes)
        self._rest: Batch | None = None
        self._expected = False

    def hear(self, received: Sequence[Received]) -> None:
        """Take datagrams that have just come."""
        if self._rest is None and not self._intake and _bytes_of(received) <= _LITTLE_BYTES:
            return self._tell(self._decode(received))
        if lost := self._intake.put(received):
            self._lose(lost)
        return None if self._expected else self._turn()

    def _tell(self, batch: Batch | None) -> None:
        if batch is not None:
            self._publish(batch)

    def _turn(self) -> None:
        self._expected = False
        began_s = thread_time()
        size_bytes = self._piece(self._rest) if self._rest is not None else self._decoded()
        self._portion.note(size_bytes, thread_time() - began_s)
        if (self._rest is not None or self._intake) and not self._expected:
            self._expected = True
            self._loop.call_soon(self._turn)

    def _decoded(self) -> int:
        """Handle the next datagrams. Return their bytes."""
        taken = self._intake.take(self._portion.size_bytes)
        batch = self._decode(taken)
        if batch is not None and len(taken) == 1 and batch.count > 2 * _PIECE:
            return self._piece(batch)  # one datagram may hold thousands of messages
        self._tell(batch)
        return _bytes_of(taken)

    def _piece(self, batch: Batch) -> int:
        """Publish the first messages of a batch, and keep the rest. Return the bytes that were published."""
        data = batch.keep()
        count, end = walk(
            data, 0, len(data), max(_PIECE, batch.count * self._portion.size_bytes // len(data))
        )
        self._rest = Batch(data[end:], batch.count - count) if count < batch.count else None
        self._publish(Batch(data[:end], count))
        return end

    def end(self) -> int:
        """Forget what waits. Return how many datagrams that were, a datagram that has begun among them."""
        waiting = len(self._intake) + (self._rest is not None)
        self._intake, self._rest = Intake(), None
        return waiting


def _bytes_of(received: Iterable[Received]) -> int:
    return sum(len(datagram) for datagram, _ in received)
