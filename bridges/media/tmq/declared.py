"""The patterns that a publisher has declared, and messages that wait for an answer about theirs. Pure.

Time is an argument, in seconds.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import NamedTuple

from bridges.media.shedding import Shed
from bus.ledger import Stats
from bus.tmq.peer import Peer
from bus.tmq.wire import Address, Tokens

_NOBODY: Mapping[Address, Peer] = {}


class Declared:
    """One declared pattern. `known`: a broker has named its subscribers, `peers`, which the client keeps."""

    __slots__ = ("known", "peers", "tokens", "used_s")

    def __init__(self, tokens: Tokens, used_s: float) -> None:
        self.tokens, self.used_s = tokens, used_s
        self.known = False
        self.peers = _NOBODY


class Declarations:
    """The declared patterns, at most `limit`: in use here, or declared ahead for another gateway.

    When they are full, the one unused for longest makes room, if nobody used it for `idle_s`. A pattern that
    is used here also gets the room of one that was declared ahead.
    """

    def __init__(self, limit: int, idle_s: float = 60.0) -> None:
        self.limit, self.idle_s = limit, idle_s
        self._of: OrderedDict[bytes, Declared] = OrderedDict()
        self._ahead: OrderedDict[bytes, Declared] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of) + len(self._ahead)

    def find(self, key: bytes, now_s: float) -> Declared | None:
        """Return the pattern in use with these tokens (bytes), and note its use; None if there is none."""
        found = self._of.get(key)
        if found is not None:
            found.used_s = now_s
            self._of.move_to_end(key)
        return found

    def adopt(self, key: bytes, now_s: float) -> Declared | None:
        """Return a pattern that was declared ahead, in use from now on; None if there is none."""
        found = self._ahead.pop(key, None)
        if found is not None:
            found.used_s, self._of[key] = now_s, found
        return found

    def overhear(self, key: bytes, now_s: float) -> bool:
        """Note that another gateway uses a pattern. Return False if it is new."""
        found = self._ahead.get(key)
        if found is None:
            return self.find(key, now_s) is not None
        found.used_s = now_s
        self._ahead.move_to_end(key)
        return True

    def idle(self, now_s: float) -> list[Declared]:
        """Forget patterns that nobody used for long, if one more needs their room, and return them."""
        gone = list[Declared]()
        for some in (self._ahead, self._of):
            while some and len(self) >= self.limit and _oldest(some).used_s <= now_s - self.idle_s:
                gone.append(some.popitem(last=False)[1])
        return gone

    def surplus(self, now_s: float) -> list[Declared]:
        """Forget patterns to make room for one more that is used here, and return them."""
        gone = self.idle(now_s)
        while self._ahead and len(self) >= self.limit:
            gone.append(self._ahead.popitem(last=False)[1])
        return gone

    def add(self, key: bytes, now_s: float, ahead: bool = False) -> Declared | None:
        """Add a new pattern and return it; None if there is no room."""
        if len(self) >= self.limit:
            return None
        made = Declared(Struct(f">{len(key) // 4}I").unpack(key), now_s)
        (self._ahead if ahead else self._of)[key] = made
        return made


def _oldest(some: OrderedDict[bytes, Declared]) -> Declared:
    return next(iter(some.values()))


class Held(NamedTuple):
    """A message that waits, since `came_s`, until its pattern is known."""

    came_s: float
    pattern: Declared
    message: bytes


class Holding:
    """The messages whose patterns are being declared, in order, and their counts in `stats`.

    A broker is asked about all new patterns together; patterns that come meanwhile gather for the next
    question. At most `queue_bytes` of `shed` wait in all, each message for `hold_s` or the age of `shed` at
    most. New messages are dropped if there is no room, whatever the policy.
    """

    def __init__(self, stats: Stats, shed: Shed, hold_s: float) -> None:
        self.stats, self.shed, self.hold_s = stats, shed, hold_s
        self._asked: list[Declared] = []
        self._gathered: list[Declared] = []
        self._held: deque[Held] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def age_s(self) -> float:
        """The longest time that a message waits, in seconds."""
        return self.hold_s if self.shed.age_s is None else min(self.hold_s, self.shed.age_s)

    def revise(self, shed: Shed) -> None:
        """Change to other bounds, also for waiting messages."""
        self.shed = shed

    def ask(self) -> bool:
        """Return whether to ask a broker now about the gathered patterns: no other question is open."""
        if self._asked or not self._gathered:
            return False
        self._asked, self._gathered = self._gathered, []
        return True

    def add(self, pattern: Declared) -> None:
        """Add a pattern to the next question."""
        self._gathered.append(pattern)

    def put(self, pattern: Declared, message: bytes, now_s: float) -> None:
        """Keep a message until its pattern is known; drop it if there is no room."""
        if self._bytes + len(message) > self.shed.queue_bytes:
            return self.stats.drop(self.shed.full)
        self._held.append(Held(now_s, pattern, message))
        self._bytes += len(message)
        self.stats.queued += 1
        self.stats.queued_bytes += len(message)
        return None

    def answered(self) -> list[Held]:
        """Note that a broker has answered. Return the messages that wait no more; they are uncounted then."""
        for pattern in self._asked:
            pattern.known = True
        self._asked = []
        held, self._held = self._held, deque()
        for one in held:
            if not one.pattern.known:
                self._held.append(one)
        released = [one for one in held if one.pattern.known]
        self._let_go(released)
        return released

    def _let_go(self, held: Iterable[Held]) -> int:
        sizes = [len(one.message) for one in held]
        self._bytes -= sum(sizes)
        self.stats.queued -= len(sizes)
        self.stats.queued_bytes -= sum(sizes)
        return len(sizes)

    def expire(self, now_s: float) -> float | None:
        """Drop messages that waited too long. Return when the next one will have; None if none waits."""
        old = list[Held]()
        while self._held and self._held[0].came_s <= now_s - self.age_s:
            old.append(self._held.popleft())
        self.stats.drop("undeclared" if self.age_s == self.hold_s else self.shed.old, self._let_go(old))
        return self._held[0].came_s + self.age_s if self._held else None

    def clear(self, reason: str) -> list[bytes]:
        """Drop all waiting messages and return them, in order."""
        held, self._held = self._held, deque()
        self.stats.drop(reason, self._let_go(held))
        return [one.message for one in held]
