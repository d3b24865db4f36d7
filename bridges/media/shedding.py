"""A queue for a slow medium, with a policy that chooses which messages to drop (docs/policies.md).

Pure: time is an argument, in seconds. docs/policies.md explains the policies to users.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import count, islice, repeat
from math import inf
from typing import Literal, NamedTuple, get_args

from bus.errors import LinkError
from bus.ledger import Stats
from bus.wire.envelope import ENVELOPE_BYTES, MAGIC, MARK, MESSAGE_BYTES_MAX
from bus.wire.frame import FRAME_BYTES_MIN

_LATE_S = 0.01  # a timer that fires late by up to this time does not lower the rate
Policy = Literal["newest", "oldest", "conflate"]
Settle = Callable[[int, str], None]


class Shed(NamedTuple):
    """A shed policy.

    `policy` chooses what to drop when more than `queue_bytes` would wait: the `newest` or the `oldest`
    messages. `conflate` drops the oldest, and keeps only the latest frame of each type and pattern. Messages
    that waited longer than `age_s` seconds are dropped. At most `rate` frames a second leave. `stated`: the
    topology asked for this policy, so ledgers say `shed` and `aged out`, not `queue full` and `stale`.
    """

    policy: Policy = "newest"
    queue_bytes: int = 64 * 1024
    age_s: float | None = None
    rate: float | None = None
    stated: bool = False

    @property
    def full(self) -> str:
        """The reason for drops above `queue_bytes`."""
        return "shed" if self.stated else "queue full"

    @property
    def old(self) -> str:
        """The reason for drops of messages that waited too long."""
        return "aged out" if self.stated else "stale"


def checked(name: str, shed: Shed | None, queue_bytes: int, age_s: float | None = None) -> Shed:
    """Return the policy of link `name`: `shed`, or else one that drops the newest above `queue_bytes`.

    The link's own `age_s` applies if `shed` has none. Raises `LinkError` for values that can never work.
    """
    made = Shed("newest", queue_bytes, age_s) if shed is None else shed._replace(stated=True)
    if made.age_s is None:
        made = made._replace(age_s=age_s)
    if made.policy not in get_args(Policy):
        raise LinkError(f"{name}: no shed policy {made.policy!r}: {', '.join(get_args(Policy))}")
    if made.queue_bytes < MESSAGE_BYTES_MAX:
        least = f"queue_bytes must be at least {MESSAGE_BYTES_MAX}"
        raise LinkError(f"{name}: {least}, else the longest frame never fits")
    if made.age_s is not None and made.age_s <= 0:
        raise LinkError(f"{name}: age_ms must be above 0, not {made.age_s * 1000:g}")
    if made.rate is not None and made.rate <= 0:
        raise LinkError(f"{name}: rate must be above 0, not {made.rate:g}")
    return made


def fitting(messages: Sequence[bytes], stats: Stats) -> list[bytes]:
    """Return the messages of legal size; drop the others as `oversize`, `short` or `empty`."""
    fit = []
    for message in messages:
        if len(message) > MESSAGE_BYTES_MAX:
            stats.drop("oversize")
        elif len(message) < FRAME_BYTES_MIN:
            stats.drop("short" if message else "empty")
        else:
            fit.append(message)
    return fit


def topic(message: bytes) -> bytes:
    """Return the type and tokens of a message, with or without envelope. Conflation compares these bytes.

    They are b"" for an opaque message, which no other message replaces.
    """
    # `is_enveloped` inlined: the call would be a twentieth of the cost of conflating a message
    length = len(message)
    enveloped = length >= ENVELOPE_BYTES and message[0] == MAGIC and message[2] >= MARK
    start = ENVELOPE_BYTES if enveloped else 0
    tokens = start + FRAME_BYTES_MIN
    if length < tokens:
        return b""
    data = tokens + 4 * message[start + 1]
    if length - data != message[start + 2] << 8 | message[start + 3]:
        return b""
    return message[start : start + 1] + message[tokens:data]


class ShedQueue:
    """A first-in, first-out queue with a shed policy. It keeps the counts in the pipe's `stats`.

    A message that was taken still counts as queued, and towards `queue_bytes`, until it is settled. With
    `conflate` a new frame gets the position of the older one in the queue, so that frequent patterns do not
    starve others. Messages without bytes are queued only if `empty` says so. `on_lost(message, reason)` is
    called for each message that the queue drops.
    """

    def __init__(
        self,
        stats: Stats,
        shed: Shed,
        empty: bool = False,
        on_lost: Callable[[bytes, str], None] | None = None,
    ) -> None:
        self.shed, self._empty = shed, empty
        self._stats, self._on_lost = stats, on_lost
        self._conflate = shed.policy == "conflate"
        self._waiting: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._numbers = count()  # keys of messages that nothing takes the place of
        self._next_s = -inf

    def __len__(self) -> int:
        return len(self._waiting)

    def revise(self, shed: Shed) -> None:
        """Change to another policy. It judges waiting messages too, as soon as something is put or taken."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        self.shed, self._conflate, self._next_s = shed, shed.policy == "conflate", -inf
        for came, message in waiting:
            key = self._key(message)
            if (forerunner := self._waiting.pop(key, None)) is not None:
                self._lose(forerunner[1], "conflated")
            self._waiting[key] = came, message

    def _key(self, message: bytes) -> Hashable:
        """Return the key that a message shares with its replacement: its topic; else a new number."""
        return (self._conflate and topic(message)) or next(self._numbers)

    def put(self, now: float, messages: Sequence[bytes]) -> None:
        """Queue the messages. Drop new or waiting ones, as the policy says, if there is no room."""
        self.expire(now)
        size = sum(map(len, messages))
        if self._conflate or self._is_full(len(messages), size) or not (self._empty or all(messages)):
            for message in messages:
                self._put(now, message)
            return
        self._waiting.update(zip(self._numbers, zip(repeat(now), messages, strict=False), strict=False))
        self._stats.queued += len(messages)
        self._stats.queued_bytes += size

    def lets_by(self, sizes: Sequence[int]) -> bool:
        """Tell whether messages of these lengths may leave at once, without waiting here."""
        waits = self._waiting or self._conflate or self.shed.rate is not None
        return not (waits or self._is_full(len(sizes), sum(sizes)) or (0 in sizes and not self._empty))

    def pass_by(self, sizes: Sequence[int]) -> None:
        """Count messages of these lengths as taken, which `lets_by` lets."""
        self._stats.queued += len(sizes)
        self._stats.queued_bytes += sum(sizes)

    def _put(self, now: float, message: bytes) -> None:
        size, bound = len(message), self.shed.queue_bytes
        if not size and not self._empty:
            return self._stats.drop("empty")
        if size > bound or (self.shed.policy == "newest" and self._is_full(1, size)):
            return self._refuse(message)
        key = self._key(message)
        if (forerunner := self._waiting.get(key)) is not None:
            self._lose(forerunner[1], "conflated")
        self._waiting[key] = now, message
        self._stats.queued += 1
        self._stats.queued_bytes += size
        while self._is_full() and len(self._waiting) > 1:  # never drop the new message
            oldest = next(other for other in self._waiting if other != key)
            self._lose(self._waiting.pop(oldest)[1], self.shed.full)
        return None

    def _refuse(self, message: bytes) -> None:
        """Drop a message that was not queued."""
        self._stats.drop(self.shed.full)
        if self._on_lost is not None:
            self._on_lost(message, self.shed.full)

    def _lose(self, message: bytes, reason: str, settle: Settle | None = None) -> None:
        """Drop a message that waited, or have `settle` count it."""
        (settle or self.settle)(len(message), reason)
        if self._on_lost is not None:
            self._on_lost(message, reason)

    def _is_full(self, more: int = 0, more_bytes: int = 0) -> bool:
        """Return whether `count` messages of `size` bytes do not fit; a tiny one counts as 4 bytes."""
        waiting, bound = len(self._waiting) + more, self.shed.queue_bytes
        return self._stats.queued_bytes + more_bytes > bound or FRAME_BYTES_MIN * waiting > bound

    def expire(self, now: float, settle: Settle | None = None) -> None:
        """Drop messages that waited too long. Calls `settle`, if given, instead of the queue's own method."""
        if self.shed.age_s is None:
            return
        oldest = now - self.shed.age_s
        while self._waiting and next(iter(self._waiting.values()))[0] < oldest:
            self._lose(self._waiting.popitem(last=False)[1][1], self.shed.old, settle)

    def take(
        self, now: float, ahead_s: float = 0.0, settle: Settle | None = None
    ) -> tuple[float, bytes] | None:
        """Return the next message that is not stale, after the time when it was queued.

        Returns None if no message waits, or if the rate does not allow one yet. `ahead_s` is how long the
        bytes in the driver still take; it is added to the message's age. `settle`: see `expire`.
        """
        if self.shed.age_s is not None:
            self.expire(now + ahead_s, settle)
        if not self._waiting or now < self._next_s:
            return None
        if self.shed.rate is not None:
            self._next_s = (self._next_s if now - self._next_s <= _LATE_S else now) + 1 / self.shed.rate
        return self._waiting.popitem(last=False)[1]

    def next(self, now: float, most: int) -> list[bytes]:
        """Return the next messages, up to `most`, which stay until `leave`; none if the queue has a rate."""
        if self.shed.rate is not None:
            return []
        self.expire(now)
        return [message for _, message in islice(self._waiting.values(), most)]

    def leave(self, count: int) -> None:
        """Take the next `count` messages, which `next` has returned, out."""
        for _ in range(count):
            self._waiting.popitem(last=False)

    def put_back(self, came: float, message: bytes) -> None:
        """Put a message that was taken but not sent back at the front of the queue."""
        if self.shed.rate is not None:
            self._next_s -= 1 / self.shed.rate
        key = self._key(message)
        if key in self._waiting:
            return self._lose(message, "conflated")
        self._waiting[key] = came, message
        self._waiting.move_to_end(key, last=False)
        return None

    @property
    def oldest_s(self) -> float:
        """The time when the next message to leave was queued; infinite if none waits."""
        return next(iter(self._waiting.values()))[0] if self._waiting else inf

    def ready(self, now: float) -> bool:
        """Return whether a message waits and the rate allows it now."""
        return bool(self._waiting) and now >= self._next_s

    def ready_s(self) -> float:
        """Return the earliest time at which `take` can return a message; infinite if none waits."""
        return self._next_s if self._waiting else inf

    def settle(self, size: int, dropped: str = "") -> None:
        """Count a message of `size` bytes that has left: as dropped if a reason is given, else as sent."""
        stats = self._stats
        stats.queued -= 1
        stats.queued_bytes -= size
        if dropped:
            return stats.drop(dropped)
        stats.sent += 1
        stats.sent_bytes += size
        return None

    def settle_sent(self, sizes: Sequence[int]) -> None:
        """Count messages of these sizes, in bytes, as sent."""
        stats, size = self._stats, sum(sizes)
        stats.queued -= len(sizes)
        stats.queued_bytes -= size
        stats.sent += len(sizes)
        stats.sent_bytes += size

    def drain(self) -> list[bytes]:
        """Return all waiting messages, in order, settled as sent."""
        messages = [message for _, message in self._waiting.values()]
        self._waiting.clear()
        for message in messages:
            self.settle(len(message))
        return messages

    def remove(self, chosen: Callable[[bytes], bool], reason: str) -> None:
        """Drop the waiting messages that are `chosen`."""
        for key, (_, message) in list(self._waiting.items()):
            if chosen(message):
                del self._waiting[key]
                self._lose(message, reason)

    def clear(self, reason: str, settle: Settle | None = None) -> list[bytes]:
        """Drop all waiting messages and return them in order."""
        messages = [message for _, message in self._waiting.values()]
        self._waiting.clear()
        for message in messages:
            self._lose(message, reason, settle)
        return messages
