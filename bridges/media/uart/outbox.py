"""The queue of a serial line: messages by policy, encoded as the line takes them, each drop counted."""

from collections import deque
from collections.abc import Sequence

from bridges.media.shedding import Shed, ShedQueue, fitting
from bridges.media.uart.codec import encode
from bus.hub import Stats


class Outbox:
    """A queue whose first message may be on the line in part. A message that has begun is always finished."""

    __slots__ = ("_begun", "_queue", "_stats", "_taken")

    def __init__(self, stats: Stats, shed: Shed) -> None:
        self._stats, self._queue = stats, ShedQueue(stats, shed)
        self._taken: deque[tuple[bytes, float, bytes]] = deque()  # as encoded, when it came, the message
        self._begun = 0  # bytes of the first that the line has already

    def __len__(self) -> int:
        return len(self._taken) + len(self._queue)

    def put(self, messages: Sequence[bytes], now: float) -> None:
        """Queue the messages that the policy admits; drop those that no line carries, counted by reason."""
        self._queue.put(now, fitting(messages, self._stats))

    def expire(self, now: float) -> None:
        """Drop messages that waited too long."""
        self._queue.expire(now)

    def ready(self, now: float) -> bool:
        """Return whether a message waits that the rate allows."""
        return bool(self._taken) or self._queue.ready(now)

    def ready_s(self) -> float:
        """Return the time from which the rate allows the next message; infinite while none waits."""
        return self._queue.ready_s()

    def head(self, room: int, now: float, ahead_bytes: int, byte_s: float) -> bytes:
        """Return the next bytes for the line, at most `room`. They may end within a message.

        `ahead_bytes` go out before them: a message that would reach the line too late is not taken.
        """
        size = sum(len(coded) for coded, _, _ in self._taken) - self._begun
        while size < room and (taken := self._queue.take(now, (ahead_bytes + size) * byte_s)):
            coded = encode(taken[1])
            self._taken.append((coded, *taken))
            size += len(coded)
        return b"".join([coded for coded, _, _ in self._taken])[self._begun : self._begun + room]

    def claim(self, now: float) -> bytes:
        """Return the first message, encoded; b"" if none is ready. From now on it counts as begun."""
        taken = self._queue.take(now)
        if taken is None:
            return b""
        self._taken.append((encode(taken[1]), *taken))
        return self._taken[0][0]

    def settle(self, written: int) -> list[bytes]:
        """Note that the line took `written` more bytes; return the messages that this completes."""
        done, written = [], written + self._begun
        while self._taken and written >= len(self._taken[0][0]):
            coded, _, message = self._taken.popleft()
            written -= len(coded)
            self._queue.settle(len(message))
            done.append(message)
        self._begun = written
        return done

    def give_back(self) -> None:
        """Queue messages that have not begun again, as the line is full: they may grow old or be replaced."""
        while len(self._taken) > (self._begun > 0):
            self._queue.put_back(*self._taken.pop()[1:])

    def purge(self, reason: str) -> list[bytes]:
        """Drop and return all messages, also one that has begun: the zero before the next one ends it."""
        begun = [message for _, _, message in self._taken]
        for message in begun:
            self._queue.settle(len(message), reason)
        self._taken.clear()
        self._begun = 0
        return begun + self._queue.clear(reason)
