"""The queue of a serial line: messages under a shed policy, encoded when the line accepts them."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bridges.media.shedding import Shed, ShedQueue, fitting
from bridges.media.uart.codec import encode
from bus.ledger import Stats


class _Taken(NamedTuple):
    """A message on its way out: encoded, when it came, and as it leaves: sealed, if the line seals."""

    coded: bytes
    came_s: float
    message: bytes
    sent: bytes


class Outbox:
    """A queue whose first message may be sent in part. A message that has begun is always finished.

    `seal(message)`, if given, seals each message as it is taken out.
    """

    __slots__ = ("_begun", "_queue", "_seal", "_stats", "_taken")

    def __init__(self, stats: Stats, shed: Shed, seal: Callable[[bytes], bytes] | None = None) -> None:
        self._stats, self._queue, self._seal = stats, ShedQueue(stats, shed), seal
        self._taken: deque[_Taken] = deque()
        self._begun = 0  # bytes of the first message that are already written

    def __len__(self) -> int:
        return len(self._taken) + len(self._queue)

    def revise(self, shed: Shed) -> None:
        """Change to another policy, for all messages that have not begun."""
        self.give_back()
        self._queue.revise(shed)

    def put(self, messages: Sequence[bytes], now: float) -> None:
        """Queue the messages that the policy admits. Messages of an illegal size are dropped and counted."""
        self._queue.put(now, fitting(messages, self._stats))

    def expire(self, now: float) -> None:
        """Drop messages that are older than the policy allows."""
        self._queue.expire(now)

    def ready(self, now: float) -> bool:
        """Return whether a message is waiting and the rate limit allows it."""
        return bool(self._taken) or self._queue.ready(now)

    def ready_s(self) -> float:
        """Return the time (s) at which the rate limit allows the next message; infinite if none waits."""
        return self._queue.ready_s()

    def head(self, room: int, now: float, ahead_bytes: int, byte_s: float) -> bytes:
        """Return the next bytes for the line, at most `room`. They may end inside a message.

        `ahead_bytes` are sent before them. A message that would reach the line too late is not taken.
        """
        size = sum(len(one.coded) for one in self._taken) - self._begun
        while size < room and (taken := self._queue.take(now, (ahead_bytes + size) * byte_s)):
            size += len(self._take(*taken))
        return b"".join([one.coded for one in self._taken])[self._begun : self._begun + room]

    def _take(self, came_s: float, message: bytes) -> bytes:
        """Encode the message that was taken out of the queue, and return it."""
        sent = message if self._seal is None else self._seal(message)
        coded = encode(sent)
        self._taken.append(_Taken(coded, came_s, message, sent))
        return coded

    def claim(self, now: float) -> bytes:
        """Take the first message and return it encoded; b"" if none is ready. It then counts as begun."""
        taken = self._queue.take(now)
        return b"" if taken is None else self._take(*taken)

    def settle(self, written: int) -> list[bytes]:
        """Note that `written` more bytes are written. Return the messages that are out whole with them."""
        done, written = [], written + self._begun
        while self._taken and written >= len(self._taken[0].coded):
            one = self._taken.popleft()
            written -= len(one.coded)
            self._queue.settle(len(one.message))
            done.append(one.sent)
        self._begun = written
        return done

    def give_back(self) -> None:
        """Put messages that have not begun back, because the line is full: they can expire or be replaced."""
        while len(self._taken) > (self._begun > 0):
            one = self._taken.pop()
            self._queue.put_back(one.came_s, one.message)

    def purge(self, reason: str) -> list[bytes]:
        """Drop and return all messages, even one that has begun: the zero before the next message ends it."""
        begun = [one.message for one in self._taken]
        for message in begun:
            self._queue.settle(len(message), reason)
        self._taken.clear()
        self._begun = 0
        return begun + self._queue.clear(reason)
