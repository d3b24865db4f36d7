"""What waits for a slow medium, and what of it is given up: a queue with a stated policy (DESIGN section 5).

Pure: time is an argument, in seconds.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

from bus.envelope import ENVELOPE_BYTES, MAGIC
from bus.frame import FRAME_BYTES_MIN
from bus.hub import Stats

_LATE_S = 0.01  # a timer that comes late by no more than this costs nothing of the rate
Policy = Literal["newest", "oldest", "conflate"]


class Shed(NamedTuple):
    """How a queue sheds. `policy` is what goes when `queue_bytes` are waiting: the newest, or the oldest;
    `conflate` also keeps just the latest frame of each type and pattern. What has waited longer than `age_s`
    is dropped; at most `rate` frames a second leave.
    """

    policy: Policy = "newest"
    queue_bytes: int = 64 * 1024
    age_s: float | None = None
    rate: float | None = None


def topic(message: bytes) -> bytes:
    """Type and tokens of a message, with an envelope or without: what makes two frames one topic."""
    enveloped = len(message) > ENVELOPE_BYTES and message[0] == MAGIC and message[2] >= 0xF0
    start = ENVELOPE_BYTES if enveloped else 0
    tokens = start + FRAME_BYTES_MIN
    count = message[start + 1] if len(message) > start + 1 else 0
    return message[start : start + 1] + message[tokens : tokens + 4 * count]


class ShedQueue:
    """First in, first out, by a policy; keeps the pipe's ledger.

    What was taken counts as queued until it is settled. A conflated frame takes the place of the older one,
    so a busy pattern starves no other.
    """

    def __init__(self, stats: Stats, shed: Shed) -> None:
        self._stats, self._shed = stats, shed
        self._conflate = shed.policy == "conflate"
        self._waiting: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._number = 0
        self._next_s = float("-inf")

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, now: float, messages: Sequence[bytes]) -> None:
        """Queue what the policy lets wait; count the rest, and what makes room for it, as dropped."""
        self.expire(now)
        for message in messages:
            if not message:
                self._stats.drop("empty")
            elif self._make_room(key := self._key(message), len(message)):
                self._waiting[key] = now, message
                self._stats.queued += 1
                self._stats.queued_bytes += len(message)

    def _key(self, message: bytes) -> Hashable:
        if self._conflate:
            return topic(message)
        self._number += 1
        return self._number

    def _make_room(self, key: Hashable, size: int) -> bool:
        """Whether a message may wait; the place of its forerunner is kept for it."""
        stats, room = self._stats, self._shed.queue_bytes - size
        forerunner = self._waiting.get(key)
        if forerunner is not None:
            self._waiting[key] = forerunner[0], b""
            self.settle(len(forerunner[1]), "conflated")
        if self._shed.policy != "newest" and room >= 0:
            while stats.queued_bytes > room and self._drop_oldest(key):
                pass
        if stats.queued_bytes <= room:
            return True
        self._waiting.pop(key, None)
        stats.drop("queue full")
        return False

    def _drop_oldest(self, but: Hashable = None) -> bool:
        """Give up what waits longest, if anything but `but` does."""
        key = next((key for key in self._waiting if key != but), None)
        if key is None:
            return False
        self.settle(len(self._waiting.pop(key)[1]), "queue full")
        return True

    def expire(self, now: float) -> None:
        """Drop what has waited too long, from the front on."""
        if self._shed.age_s is None:
            return
        oldest = now - self._shed.age_s
        while self._waiting and next(iter(self._waiting.values()))[0] < oldest:
            self.settle(len(self._waiting.popitem(last=False)[1][1]), "stale")

    def take(self, now: float) -> tuple[float, bytes] | None:
        """The next message that is not stale, if the rate allows one, and when it came; settle it after."""
        self.expire(now)
        if not self._waiting or now < self._next_s:
            return None
        if self._shed.rate is not None:
            self._next_s = max(self._next_s, now - _LATE_S) + 1 / self._shed.rate
        return self._waiting.popitem(last=False)[1]

    def ready_s(self) -> float:
        """From when on `take` may give something, while anything waits."""
        return self._next_s

    def settle(self, size: int, dropped: str = "") -> None:
        """A message of `size` bytes left the queue: sent, or dropped for a reason."""
        stats = self._stats
        stats.queued -= 1
        stats.queued_bytes -= size
        if dropped:
            return stats.drop(dropped)
        stats.sent += 1
        stats.sent_bytes += size
        return None

    def clear(self, reason: str) -> None:
        """Drop all that waits."""
        while self._waiting:
            self.settle(len(self._waiting.popitem(last=False)[1][1]), reason)
