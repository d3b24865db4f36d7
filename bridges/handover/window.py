"""A standby's window: frames heard on one side and not yet on the others, to be sent at a takeover.

Pure: time is an argument, in seconds. docs/failover.md says how copies of a frame are matched. Opaque
messages are matched as frames are.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from bridges.admission import NO_FRAME
from bridges.handover.stamps import Stamps
from bridges.rules import Seen
from bus.ledger import Stats
from bus.wire.envelope import HOPS_DEFAULT, Envelope, Parts, is_enveloped, take_apart, wrap
from bus.wire.frame import FRAME_BYTES_MIN, is_frame

AGE_S = 2.0  # at least,
TAKEOVER_S = 1.0  # and so much longer than a lease: what else a takeover takes, on a machine that is late
VOID_S = 0.25  # or equal frames that come later would be taken for their copies
LAG_S = 2.0
COUNT = 16384
BYTES = 16 << 20
Admits = Callable[[bytes], bool]


def spanning(lease_ms: int) -> float:
    """Return how long a window keeps frames, in seconds, so that it spans a takeover from who died with a
    lease of `lease_ms`."""
    return max(AGE_S, lease_ms / 1000 + TAKEOVER_S)


class SideRules(NamedTuple):
    """The rules of a side for the window. `deaf`: a standby does not hear there what the active bridge sends.

    `opaque`: messages may come that are no frames. `inward` and `outward` judge those too. `keeps_unsent()`:
    a message that did not get out by this side may be sent later. `replay_s`: at a takeover only what is
    younger is sent there, and nothing that is older than a frame of its pattern that came out; None for no
    such limit, 0 for nothing at all. `anew`: what comes in has a form that each gateway makes anew, so nobody
    can tell whether the active bridge has sent it: it is never sent at a takeover.
    """

    inward: Admits
    outward: Admits
    trunk: bool = False
    deaf: bool = False
    opaque: bool = False
    keeps_unsent: Callable[[], bool] = lambda: True
    replay_s: float | None = None
    anew: bool = False

    def is_malformed(self, message: bytes, parts: Parts) -> bool:
        """Tell whether a message is of no kind that may come here."""
        if parts.is_frame:
            return False
        return not self.opaque or (self.trunk and parts.envelope is None and is_enveloped(message))


class _Noted:
    """One frame in the window: `due` are the sides to send it to, `awaited` those where it may yet be heard.

    Both are bits by the number of the side, as is `withheld`, where it was due and is too old to be sent.
    `came` is the number of the side that its original came in by; -1 if that is not known yet, or if it came
    while this gateway forwarded. `first` is the side where it was heard first, and `number` its place in the
    order of hearing.
    """

    __slots__ = (
        "awaited",
        "came",
        "due",
        "first",
        "frame",
        "heard_s",
        "hops",
        "key",
        "named",
        "number",
        "void",
        "withheld",
    )

    def __init__(self, frame: bytes, key: int, named: bool, hops: int, heard_s: float) -> None:
        self.frame, self.key, self.named, self.hops, self.heard_s = frame, key, named, hops, heard_s
        self.due = self.awaited = self.withheld = self.number = 0
        self.came = self.first = -1
        self.void = False  # never to be sent: only its copies are to be known


class Due(NamedTuple):
    """A frame to send to the sides whose bits are set; `message` has an envelope where the window stamps.

    `hops`: the hops left for the next appliance; below 0, no trunk may take it. `withheld`: bits of sides for
    which it is too old.
    """

    sides: int
    message: bytes
    hops: int
    withheld: int = 0


class Lag:
    """The largest lag noted in the last `LAG_S` to twice that."""

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
    """The frames heard, by key and by content. Bounded by `count`, `size_bytes` and `age_s`.

    `origin` and `stamps`: how the active bridge stamps frames without envelopes; None where no side is a
    trunk. `private` stamps a frame for which `stamps` has no sure number. `seen` remembers keys, as the
    bridge does. `stats` is its ledger: offered = sent (at a takeover) + queued + dropped (`heard`, `stale`,
    `full`).
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
        self._origin, self._seen = origin, seen
        self._stamps, self._private = stamps, private
        self._own_origins = origin, private() >> 32
        self._age_s, self._count, self._size_bytes = age_s, count, size_bytes
        self._sit(sides)
        self._frames: dict[_Noted, None] = {}  # in the order in which they were heard
        self._by_key: dict[int, _Noted] = {}
        self._by_frame: dict[bytes, deque[_Noted]] = {}
        self._bytes = 0
        self._lag = Lag()
        self._number = 0  # of frames heard so far
        self._out: dict[tuple[int, bytes], int] = {}  # of the last that came out, by side and pattern

    def _sit(self, sides: Sequence[SideRules]) -> None:
        self._sides = tuple(sides)
        self._trunks = sum(1 << n for n, side in enumerate(self._sides) if side.trunk)
        self._hearing = sum(1 << n for n, side in enumerate(self._sides) if not side.deaf)
        self._aged = sum(1 << n for n, side in enumerate(self._sides) if side.replay_s is not None)

    def revise(self, sides: Sequence[SideRules], places: Sequence[int | None], stamps: Stamps | None) -> None:
        """Change to other sides. `places`: for each old side its new number, None if it has gone.

        A frame that was due only on a side that has gone is given up, counted as `closed`.
        """
        self._sit(sides)
        self._stamps = stamps
        self._out.clear()
        for noted in list(self._frames):
            due, noted.first = noted.due, _placed(noted.first, places)
            noted.due, noted.awaited = _moved(due, places), _moved(noted.awaited, places)
            noted.came = _placed(noted.came, places)
            if due and not noted.due:
                self._settle("closed")
            if not noted.awaited:
                self._remove(noted)
            elif noted.key < 0 and stamps is not None:
                noted.key = self._private()
                self._by_key[noted.key] = noted

    def keep(self, age_s: float) -> None:
        """Keep frames for `age_s` from now on."""
        self._age_s = age_s

    def lag_s(self, now: float) -> float:
        """Return the longest time from original to copy on a plain side, in the last few seconds."""
        return self._lag.most(now)

    def __len__(self) -> int:
        return len(self._frames)

    def hear(self, side: int, message: bytes, now: float) -> str:
        """Note a message that came in by a side. Return the reason why it goes no further now."""
        found = take_apart(message)
        if self._sides[side].is_malformed(message, found):
            return "malformed"
        if found.envelope is None:
            return self._hear_plain(side, found.content, now)
        return self._hear_named(side, found.content, found.envelope, now)

    def _hear_plain(self, side: int, frame: bytes, now: float) -> str:
        # What is bare on a trunk is an original. Its copy has an envelope, and may have come before it.
        trunk = self._sides[side].trunk
        noted = self._match(side, frame, lambda one: not trunk or one.named or not one.due)
        if noted is not None:
            return self._met(noted, side, now)
        key = self.key_of(frame) if self._stamps is not None else -1
        return self._note(side, _Noted(frame, key, False, HOPS_DEFAULT, now))

    def key_of(self, frame: bytes) -> int:
        """Return the origin and sequence, as one number, that any other candidate would stamp on `frame`."""
        assert self._stamps is not None
        number = self._stamps.next(frame)
        if number is not None:
            return self._origin << 32 | number
        key = self._private()
        self._seen.add(key)  # it may come back, and does not look like ours
        return key

    def _hear_named(self, side: int, frame: bytes, envelope: Envelope, now: float) -> str:
        key, ours = envelope.key, envelope.origin == self._origin
        if ours and self._stamps is not None:
            self._stamps.heard(frame, envelope.sequence)
        noted = self._by_key.get(key)
        if noted is not None and not noted.awaited >> side & 1:
            return "duplicate"
        if noted is None and (noted := self._match(side, frame, lambda one: not one.named)) is not None:
            self._rename(noted, key, envelope.hops)
        new = ours or (self._seen.add if envelope.hops else self._seen.add_spent)(key)
        if noted is not None:
            return self._met(noted, side, now)
        if not new:
            return "duplicate"
        made = _Noted(frame, key, True, envelope.hops - 1, now)
        return self._note_ours(side, made) if ours else self._note(side, made)

    def _rename(self, noted: _Noted, key: int, hops: int) -> None:
        """Give a frame that was heard bare the key that its copy has."""
        if self._by_key.get(noted.key) is noted:
            del self._by_key[noted.key]
        noted.key, noted.hops, noted.named = key, hops - 1, True
        if hops:
            self._by_key[key] = noted

    def _match(self, side: int, frame: bytes, among: Callable[[_Noted], bool]) -> _Noted | None:
        """Return the oldest frame of this content, `among` some, that may yet be heard on a side."""
        for noted in self._by_frame.get(frame, ()):
            if noted.awaited >> side & 1 and among(noted):
                return noted
        return None

    def _met(self, noted: _Noted, side: int, now: float) -> str:
        """Note that a frame was heard on a side: it came out there, or its original did."""
        bit = 1 << side
        noted.awaited &= ~bit
        self._number += 1
        self._note_out(noted.first, noted.frame, self._number)  # that may have been the copy
        if noted.due:
            if not self._sides[side].trunk:  # there a copy is known by its key, and may be held back for long
                self._lag.note(now - noted.heard_s, now)
            noted.due &= ~bit
            self._note_out(side, noted.frame, noted.number)
            if not noted.due:
                self._settle("heard")
        elif not noted.void and self._sides[side].inward(noted.frame):
            self._owe(noted, noted.awaited & self._outward(noted.frame))
            noted.came = side
        if not noted.awaited:
            self._remove(noted)
        return "standby"

    def _note_out(self, side: int, frame: bytes, number: int) -> None:
        """Note that a frame came out on a side, if it must not come after a later one of its pattern."""
        if self._aged and side >= 0 and self._aged >> side & 1:
            if len(self._out) >= self._count:
                self._out.clear()
            key = side, _topic(frame)
            self._out[key] = max(number, self._out.get(key, 0))

    def _note(self, side: int, noted: _Noted) -> str:
        frame, others = noted.frame, ~(1 << side)
        outward = self._outward(frame)
        admitted = self._sides[side].inward(frame)
        due = outward & others & self._hearing if admitted and not self._sides[side].anew else 0
        early = self._inward(frame) & others if outward >> side & 1 else 0
        refused = "pattern" if is_frame(frame) else NO_FRAME
        noted.came, noted.first = side if admitted else -1, side
        return self._put(noted, due, due | early, "standby" if admitted else refused)

    def _note_ours(self, side: int, noted: _Noted) -> str:
        """Note a frame that the active bridge stamped first: its original is heard later, or never."""
        noted.named = False
        return self._put(noted, 0, self._inward(noted.frame) & ~(1 << side), "echo")

    def _put(self, noted: _Noted, due: int, awaited: int, reason: str) -> str:
        if not awaited:
            return reason
        self._make_room(len(noted.frame))
        noted.awaited = awaited
        self._number += 1
        noted.number = self._number
        self._owe(noted, due)
        self._frames[noted] = None
        if noted.key >= 0 and noted.hops >= 0:
            self._by_key[noted.key] = noted
        self._by_frame.setdefault(noted.frame, deque()).append(noted)
        self._bytes += len(noted.frame)
        return reason

    def _owe(self, noted: _Noted, due: int) -> None:
        if due and not noted.due:
            self.stats.offered += 1
            self.stats.queued += 1
        noted.due = due

    def _make_room(self, size: int) -> None:
        while self._frames and (len(self._frames) >= self._count or self._bytes + size > self._size_bytes):
            self._give_up(next(iter(self._frames)), "full")

    def _give_up(self, noted: _Noted, reason: str) -> None:
        if noted.due:
            self._settle(reason)
        self._remove(noted)

    def _settle(self, reason: str) -> None:
        self.stats.queued -= 1
        self.stats.drop(reason)

    def _remove(self, noted: _Noted) -> None:
        del self._frames[noted]
        self._bytes -= len(noted.frame)
        if self._by_key.get(noted.key) is noted:
            del self._by_key[noted.key]
        same = self._by_frame[noted.frame]
        same.remove(noted)
        if not same:
            del self._by_frame[noted.frame]

    def _inward(self, frame: bytes) -> int:
        return sum(1 << n for n, side in enumerate(self._sides) if side.inward(frame))

    def _outward(self, frame: bytes) -> int:
        return sum(1 << n for n, side in enumerate(self._sides) if side.outward(frame))

    def owe(self, side: int, messages: Sequence[bytes], now: float, fresh: bool = False) -> None:
        """Keep messages that did not get out by a side, for the gateway that forwards next to send.

        `fresh`: they came in just now. Nobody knows how long others have waited, so a side that replays only
        young ones gives them up.
        """
        if not self._sides[side].keeps_unsent():
            return
        if self._aged >> side & 1 and not fresh:
            self.stats.offered += len(messages)
            return self.stats.drop("stale", len(messages))
        for message in messages:
            self._keep_unsent(side, message, now)

    def _keep_unsent(self, side: int, message: bytes, now: float) -> None:
        envelope, content, _ = take_apart(message)
        noted, bit = self._sent(envelope, content, now), 1 << side
        known = self._by_key.get(noted.key)
        if known is None:
            self._put(noted, bit, bit, "")
        else:
            self._owe(known, known.due | bit)
            known.awaited |= bit

    def _sent(self, envelope: Envelope | None, frame: bytes, now: float) -> _Noted:
        """Return a frame as we would have sent it. Our stamp may not be the key of another's copy."""
        if envelope is None:
            key = -1 if self._stamps is None else self._private()
            return _Noted(frame, key, False, HOPS_DEFAULT, now)
        key, named = envelope.key, envelope.origin not in self._own_origins
        return _Noted(frame, key, named, envelope.hops, now)

    def advance(self, now: float) -> None:
        """Give up frames that are too old at `now`, counted as `stale`. Call it once a batch."""
        self._seen.advance(now)
        if self._stamps is not None:
            self._stamps.advance(now)
        oldest_s = now - self._age_s
        for noted in list(takewhile(lambda noted: noted.heard_s < oldest_s, self._frames)):
            self._give_up(noted, "stale")

    def came(self, now: float) -> list[tuple[int, bytes]]:
        """Return the frames that `replay` would send at `now`, in its order and form, each with the side that
        it came in by; without those that came while this gateway forwarded."""
        self._withhold(now)
        return [
            (noted.came, self._due(noted).message) for noted in self._frames if noted.due and noted.came >= 0
        ]

    def replay(self, now: float) -> list[Due]:
        """Return the frames that nobody has sent, in the order of hearing, and empty the window.

        Among them are those that are due nowhere any more, as they are too old.
        """
        self._withhold(now)
        due = [self._due(noted) for noted in self._frames if noted.due or noted.withheld]
        count = sum(1 for one in due if one.sides)
        self.stats.sent += count
        self.stats.queued -= count
        self._out.clear()
        self._frames.clear()
        self._by_key.clear()
        self._by_frame.clear()
        self._bytes = 0
        return due

    def _withhold(self, now: float) -> None:
        """Take frames from the sides for which they are too old; those left with none count as `stale`."""
        self.advance(now)
        for noted in self._frames if self._aged else ():
            late = [n for n, side in enumerate(self._sides) if self._is_late(n, side, noted, now)]
            for number in late:
                noted.due &= ~(1 << number)
                noted.withheld |= 1 << number
            if late and not noted.due:
                self._settle("stale")

    def _is_late(self, number: int, side: SideRules, noted: _Noted, now: float) -> bool:
        """Return whether a frame is due on a side that takes it no more."""
        if side.replay_s is None or not noted.due >> number & 1:
            return False
        overtaken = noted.number < self._out.get((number, _topic(noted.frame)), 0)
        return overtaken or now - noted.heard_s >= side.replay_s

    def _due(self, noted: _Noted) -> Due:
        if self._stamps is None:
            return Due(noted.due, noted.frame, HOPS_DEFAULT, noted.withheld)
        hops = max(0, noted.hops)
        envelope = Envelope(noted.key >> 32, noted.key & 0xFFFFFFFF, hops)
        return Due(noted.due, wrap(noted.frame, envelope), noted.hops, noted.withheld)

    def void(self, reason: str, before_s: float, now: float) -> None:
        """Send no frame that was heard before `before_s`; count it by `reason`, and know its copies.

        Only a frame that came with an envelope still goes to trunks: a receiver that has it there knows its
        key.
        """
        for noted in takewhile(lambda noted: noted.heard_s <= before_s, self._frames):
            if noted.named and noted.due & self._trunks:
                noted.due &= self._trunks
                continue
            if noted.due:
                self._settle(reason)
            noted.due, noted.void = 0, True
            noted.heard_s = min(noted.heard_s, now + VOID_S - self._age_s)


def _topic(frame: bytes) -> bytes:
    """Return the type and tokens of a frame: what it is about. Frames of one topic come in order."""
    return frame[:1] + frame[FRAME_BYTES_MIN : FRAME_BYTES_MIN + 4 * frame[1]] if is_frame(frame) else frame


def _placed(side: int, places: Sequence[int | None]) -> int:
    """Return the new number of an old side; -1 of one that has gone."""
    place = places[side] if side >= 0 else None
    return -1 if place is None else place


def _moved(bits: int, places: Sequence[int | None]) -> int:
    """Return bits of old sides as bits of their new numbers."""
    return sum(1 << new for old, new in enumerate(places) if new is not None and bits >> old & 1)
