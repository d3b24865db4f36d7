"""What a standby has heard on one side and not yet on the others: at a takeover it sends exactly that.

Pure: time is an argument, in seconds. Which hearing belongs to which is told in docs/failover.md.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bridges.handover.stamps import Stamps
from bridges.rules import Seen
from bus.hub import Stats
from bus.wire.envelope import HOPS_DEFAULT, Envelope, split, wrap

AGE_S = 2.0
VOID_S = 0.25  # or equal frames that come later would be taken for their copies
LAG_S = 2.0
COUNT = 16384
BYTES = 16 << 20
Admits = Callable[[bytes], bool]


class SideRules(NamedTuple):
    """A side as the window sees it. `deaf`: a standby does not hear there what the active bridge sends."""

    inward: Admits
    outward: Admits
    trunk: bool = False
    deaf: bool = False


class _Entry:
    """One frame: `due` are the sides to send it to, `open` those where it may yet be heard, as bits."""

    __slots__ = ("due", "frame", "heard_s", "hops", "key", "named", "number", "open", "void")

    def __init__(self, number: int, frame: bytes, key: int, named: bool, hops: int, now: float) -> None:
        self.number, self.frame, self.key, self.named, self.hops = number, frame, key, named, hops
        self.heard_s = now
        self.due = self.open = 0
        self.void = False  # never to be sent: only its copies are to be known


class Due(NamedTuple):
    """A frame to send to the sides whose bits are set; `message` has an envelope where the window stamps.

    `hops`: those left to the next appliance; below 0, no trunk may take it.
    """

    sides: int
    message: bytes
    hops: int


class Lag:
    """The most of what was noted in the last `LAG_S` to twice that."""

    __slots__ = ("_before_s", "_now_s", "_until_s")

    def __init__(self) -> None:
        self._before_s = self._now_s = 0.0
        self._until_s = 0.0

    def note(self, lag_s: float, now: float) -> None:
        self._turn(now)
        self._now_s = max(self._now_s, lag_s)

    def _turn(self, now: float) -> None:
        if now >= self._until_s:
            self._before_s = self._now_s if now < self._until_s + LAG_S else 0.0
            self._now_s, self._until_s = 0.0, now + LAG_S

    def most(self, now: float) -> float:
        self._turn(now)
        return max(self._before_s, self._now_s)


class Window:
    """Frames heard, by key and by content. Bounded by `count`, `size_bytes` and `age_s`.

    `origin` and `stamps`: how the active bridge stamps frames without envelopes; None where no side is a
    trunk. `private` stamps what `stamps` is not sure of. `seen` remembers keys, as the bridge does.
    `stats` is its ledger: offered = sent (at a takeover) + queued + dropped (`heard`, `stale`, `full`).
    """

    def __init__(
        self,
        sides: Sequence[SideRules],
        origin: int,
        seen: Seen,
        stamps: Stamps | None = None,
        private: Callable[[], int] = lambda: 0,
        age_s: float = AGE_S,
        count: int = COUNT,
        size_bytes: int = BYTES,
    ) -> None:
        self.stats = Stats()
        self._sides, self._origin, self._seen = tuple(sides), origin, seen
        self._stamps, self._private = stamps, private
        self._own_origins = origin, private() >> 32
        self._age_s, self._count, self._size_bytes = age_s, count, size_bytes
        self._all = (1 << len(self._sides)) - 1
        self._hearing = sum(1 << n for n, side in enumerate(self._sides) if not side.deaf)
        self._entries: dict[int, _Entry] = {}
        self._by_key: dict[int, _Entry] = {}
        self._by_frame: dict[bytes, deque[_Entry]] = {}
        self._bytes = self._number = 0
        self._lag = Lag()

    def lag_s(self, now: float) -> float:
        """How long after its original a frame came out on a plain side, at most, in the last few seconds."""
        return self._lag.most(now)

    def __len__(self) -> int:
        return len(self._entries)

    def hear(self, side: int, message: bytes, now: float) -> str:
        """A message that came in by a side; the reason by which it goes no further now."""
        found = split(message)
        if found is None:
            return "malformed"
        envelope, frame = found
        if envelope is None:
            return self._hear_plain(side, frame, now)
        return self._hear_named(side, frame, envelope, now)

    def _hear_plain(self, side: int, frame: bytes, now: float) -> str:
        entry = None if self._sides[side].trunk else self._match(side, frame, anonymous=False)
        if entry is not None:
            return self._met(entry, side, now)
        key = self._stamped(frame) if self._stamps is not None else -1
        return self._note(side, _Entry(self._next(), frame, key, False, HOPS_DEFAULT, now))

    def _stamped(self, frame: bytes) -> int:
        assert self._stamps is not None
        number = self._stamps.next(frame)
        if number is not None:
            return self._origin << 32 | number
        key = self._private()
        self._seen.add(key)
        return key

    def _hear_named(self, side: int, frame: bytes, envelope: Envelope, now: float) -> str:
        key, ours = envelope.origin << 32 | envelope.sequence, envelope.origin == self._origin
        if ours and self._stamps is not None:
            self._stamps.heard(frame, envelope.sequence)
        entry = self._by_key.get(key)
        if entry is not None and not entry.open >> side & 1:
            return "duplicate"
        if entry is None and (entry := self._match(side, frame, anonymous=True)) is not None:
            self._rename(entry, key, envelope.hops)
        new = ours or self._seen.add(key)
        if entry is not None:
            return self._met(entry, side, now)
        if not new:
            return "duplicate"
        made = _Entry(self._next(), frame, key, True, envelope.hops - 1, now)
        return self._note_ours(side, made) if ours else self._note(side, made)

    def _rename(self, entry: _Entry, key: int, hops: int) -> None:
        """What we heard bare has a name."""
        if self._by_key.get(entry.key) is entry:
            del self._by_key[entry.key]
        entry.key, entry.hops, entry.named = key, hops - 1, True
        self._by_key[key] = entry

    def _match(self, side: int, frame: bytes, anonymous: bool) -> _Entry | None:
        """The oldest frame of this content that may yet be heard on a side."""
        for entry in self._by_frame.get(frame, ()):
            if entry.open >> side & 1 and not (anonymous and entry.named):
                return entry
        return None

    def _met(self, entry: _Entry, side: int, now: float) -> str:
        """It came out, or its original was heard."""
        bit = 1 << side
        entry.open &= ~bit
        if entry.due:
            if not self._sides[side].trunk:  # there a copy is known by its key, and may be held back for long
                self._lag.note(now - entry.heard_s, now)
            entry.due &= ~bit
            if not entry.due:
                self._settle("heard")
        elif not entry.void and self._sides[side].inward(entry.frame):
            self._owe(entry, entry.open & self._outward(entry.frame))
        if not entry.open:
            self._remove(entry)
        return "standby"

    def _note(self, side: int, entry: _Entry) -> str:
        frame, others = entry.frame, self._all & ~(1 << side)
        outward = self._outward(frame)
        admitted = self._sides[side].inward(frame)
        due = outward & others & self._hearing if admitted else 0
        early = self._inward(frame) & others if outward >> side & 1 else 0
        return self._put(entry, due, due | early, "standby" if admitted else "pattern")

    def _note_ours(self, side: int, entry: _Entry) -> str:
        """Stamped by the active bridge, and we have not heard what: its original comes yet, or never."""
        plain = sum(1 << n for n, s in enumerate(self._sides) if not s.trunk)
        entry.named = False
        return self._put(entry, 0, plain & self._inward(entry.frame) & ~(1 << side), "echo")

    def _put(self, entry: _Entry, due: int, open: int, reason: str) -> str:
        if not open:
            return reason
        self._make_room(len(entry.frame))
        entry.open = open
        self._owe(entry, due)
        self._entries[entry.number] = entry
        if entry.key >= 0:
            self._by_key[entry.key] = entry
        self._by_frame.setdefault(entry.frame, deque()).append(entry)
        self._bytes += len(entry.frame)
        return reason

    def _owe(self, entry: _Entry, due: int) -> None:
        if due and not entry.due:
            self.stats.offered += 1
            self.stats.queued += 1
        entry.due = due

    def _make_room(self, size: int) -> None:
        while self._entries and (len(self._entries) >= self._count or self._bytes + size > self._size_bytes):
            self._give_up(next(iter(self._entries.values())), "full")

    def _give_up(self, entry: _Entry, reason: str) -> None:
        if entry.due:
            self._settle(reason)
        self._remove(entry)

    def _settle(self, reason: str) -> None:
        self.stats.queued -= 1
        self.stats.drop(reason)

    def _remove(self, entry: _Entry) -> None:
        if self._entries.pop(entry.number, None) is None:
            return
        self._bytes -= len(entry.frame)
        if self._by_key.get(entry.key) is entry:
            del self._by_key[entry.key]
        same = self._by_frame[entry.frame]
        same.remove(entry)
        if not same:
            del self._by_frame[entry.frame]

    def _inward(self, frame: bytes) -> int:
        return sum(1 << n for n, side in enumerate(self._sides) if side.inward(frame))

    def _outward(self, frame: bytes) -> int:
        return sum(1 << n for n, side in enumerate(self._sides) if side.outward(frame))

    def _next(self) -> int:
        self._number += 1
        return self._number

    def owe(self, side: int, message: bytes, now: float) -> None:
        """It was on its way out by `side` and did not get there: whoever has the next turn sends it."""
        found = split(message)
        if found is None:
            return
        entry, bit = self._sent(*found, now), 1 << side
        known = self._by_key.get(entry.key)
        if known is None:
            self._put(entry, bit, bit, "")
        else:
            self._owe(known, known.due | bit)
            known.open |= bit

    def _sent(self, envelope: Envelope | None, frame: bytes, now: float) -> _Entry:
        """As we would have sent it; what we stamped may come from another under another key."""
        if envelope is None:
            key = -1 if self._stamps is None else self._private()
            return _Entry(self._next(), frame, key, False, HOPS_DEFAULT, now)
        key, named = envelope.origin << 32 | envelope.sequence, envelope.origin not in self._own_origins
        return _Entry(self._next(), frame, key, named, envelope.hops, now)

    def advance(self, now: float) -> None:
        """Let time pass: what is too old is given up, counted as `stale`. Once a batch will do."""
        self._seen.advance(now)
        if self._stamps is not None:
            self._stamps.advance(now)
        for entry in list(self._stale(now - self._age_s)):
            self._give_up(entry, "stale")

    def _stale(self, oldest_s: float) -> Iterator[_Entry]:
        for entry in self._entries.values():
            if entry.heard_s >= oldest_s:
                return
            yield entry

    def replay(self, now: float) -> list[Due]:
        """What nobody has sent, in the order in which it was heard; the window is empty after."""
        self.advance(now)
        due = [self._due(entry) for entry in self._entries.values() if entry.due]
        self.stats.sent += len(due)
        self.stats.queued -= len(due)
        self._empty()
        return due

    def _due(self, entry: _Entry) -> Due:
        if self._stamps is None:
            return Due(entry.due, entry.frame, HOPS_DEFAULT)
        hops = max(0, entry.hops)
        envelope = Envelope(entry.key >> 32, entry.key & 0xFFFFFFFF, hops)
        return Due(entry.due, wrap(entry.frame, envelope), entry.hops)

    def void(self, reason: str, before_s: float, now: float) -> None:
        """Send nothing of what was heard before, counted by `reason`; copies that come soon are known."""
        for entry in self._entries.values():
            if entry.heard_s > before_s:
                break
            if entry.due:
                self._settle(reason)
            entry.due, entry.void = 0, True
            entry.heard_s = min(entry.heard_s, now + VOID_S - self._age_s)

    def _empty(self) -> None:
        self._entries.clear()
        self._by_key.clear()
        self._by_frame.clear()
        self._bytes = 0
