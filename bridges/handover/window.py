"""A standby's window: frames heard on one side and not yet on the others, to be sent at a takeover.

Pure: time is an argument, in seconds. docs/failover.md says how copies of a frame are matched. Opaque
messages are matched as frames are.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile

from bridges.admission import NO_FRAME
from bridges.handover.belated import Sent
from bridges.handover.doubted import Doubted
from bridges.handover.entrance import AGE_S
from bridges.handover.heard import BYTES, COUNT, HeardFrames, Noted
from bridges.handover.outcome import Lag, LastOut
from bridges.handover.replay import Due
from bridges.handover.sides import SideRules, Sides, moved, placed
from bridges.handover.stamps import Stamps
from bridges.rules import Seen
from bus.ledger import Stats
from bus.wire.batch import Batch, payloads
from bus.wire.envelope import HOPS_DEFAULT, Envelope, take_apart, wrap_known
from bus.wire.frame import is_frame

VOID_S = 0.25  # or equal frames that come later would be taken for their copies


class Window:
    """The frames heard, by key and by content. Bounded by `count`, `size_bytes` and `age_s`.

    `origin` and `stamps`: how the active bridge stamps frames without envelopes; None where no side is a
    trunk. `private` stamps a frame for which `stamps` has no sure number. `seen` remembers keys, as the
    bridge does. `stats` is its ledger: offered = sent (at a takeover) + queued + dropped (`heard`, `stale`,
    `full`, `unheard`).
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
        self._own_origins = {origin, private() >> 32}
        self.age_s = age_s
        self._sides = Sides(sides)
        self._heard = HeardFrames(count, size_bytes)
        self._number = 0  # of frames heard so far
        self._lag, self._out, self._doubted = Lag(), LastOut(), Doubted()
        self._in_turn = False

    def revise(self, sides: Sequence[SideRules], places: Sequence[int | None], stamps: Stamps | None) -> None:
        """Change to other sides. `places`: for each old side its new number, None if it has gone.

        A frame that was due only on a side that has gone is given up, counted as `closed`.
        """
        self._sides, self._stamps = Sides(sides), stamps
        self._out.clear()
        self._doubted.begin(0.0)
        for noted in list(self._heard.in_order()):
            due, noted.first = noted.due, placed(noted.first, places)
            noted.due, noted.awaited = moved(due, places), moved(noted.awaited, places)
            noted.came, noted.ours = placed(noted.came, places), moved(noted.ours, places)
            noted.sides = moved(noted.sides, places)
            if due and not noted.due:
                self._settle("closed")
            if not noted.awaited:
                self._heard.remove(noted)
            elif noted.key < 0 and stamps is not None:
                noted.key = self._private()
                self._heard.by_key[noted.key] = noted

    def stamp_as(self, origin: int) -> None:
        """Know one more origin of our own: `private` stamps with it from now on."""
        self._own_origins.add(origin)

    def keep(self, age_s: float) -> None:
        """Keep frames for `age_s` from now on."""
        self.age_s = age_s

    def lag_s(self, now: float) -> float:
        """Return the longest time from original to copy on a plain side, in the last few seconds."""
        return self._lag.most(now)

    def __len__(self) -> int:
        return len(self._heard)

    def hear_all(self, side: int, batch: Batch, now: float, stats: Stats) -> None:
        """Note messages that came in by a side; `stats` counts why each goes no further now."""
        self._hear_each(side, payloads(batch), now, stats)

    def _hear_each(self, side: int, messages: Sequence[bytes], now: float, stats: Stats) -> None:
        for message in messages:
            stats.reject(self.hear(side, message, now))

    def hear(self, side: int, message: bytes, now: float) -> str:
        """Note a message that came in by a side. Return the reason why it goes no further now."""
        found = take_apart(message)
        if self._sides.rules[side].is_malformed(message, found):
            return "malformed"
        if found.envelope is None:
            return self._hear_plain(side, found.content, now)
        return self._hear_named(side, found.content, found.envelope, now)

    def _hear_plain(self, side: int, frame: bytes, now: float) -> str:
        # What is bare on a trunk is an original. Its copy has an envelope, and may have come before it.
        trunk = self._sides.rules[side].trunk
        noted = self._heard.oldest(side, frame, lambda one: not trunk or one.named or not one.due)
        if noted is not None:
            return self._met(noted, side, now)
        key = self._key_of(frame, self._stamps) if self._stamps is not None else -1
        return self._note(side, Noted(frame, key, False, HOPS_DEFAULT, now))

    def keys_of(self, frames: Sequence[bytes]) -> list[int]:
        """Return the origin and sequence, as one number, that other candidates would stamp on each frame."""
        stamps, origin = self._stamps, self._origin << 32
        assert stamps is not None
        if stamps.is_young:
            return [self._key_of(frame, stamps) for frame in frames]
        return [origin | number for number in stamps.take_all(frames)]

    def _key_of(self, frame: bytes, stamps: Stamps) -> int:
        number = stamps.next(frame)
        return self._doubtful_key() if number is None else self._origin << 32 | number

    def _doubtful_key(self) -> int:
        """Return a key of our own for a frame whose stamp is in doubt."""
        key = self._private()
        self._seen.add(key)  # it may come back, and does not look like ours
        return key

    def _hear_named(self, side: int, frame: bytes, envelope: Envelope, now: float) -> str:
        key, ours = envelope.key, envelope.origin == self._origin
        if ours and self._stamps is not None:
            self._stamps.heard(frame, envelope.sequence)
        noted = self._heard.by_key.get(key)
        if noted is not None and not noted.awaited >> side & 1:
            return "duplicate"
        if noted is None:
            noted = self._heard.oldest(side, frame, lambda one: not one.named)
            if noted is not None:
                self._heard.rename(noted, key, envelope.hops)
        new = ours or (self._seen.add if envelope.hops else self._seen.add_spent)(key)
        if noted is not None:
            return self._met(noted, side, now)
        if not new:
            return "duplicate"
        made = Noted(frame, key, True, envelope.hops - 1, now)
        return self._note_ours(side, made) if ours else self._note(side, made)

    def _met(self, noted: Noted, side: int, now: float) -> str:
        """Note that a frame was heard on a side: it came out there, or its original did."""
        bit = 1 << side
        noted.awaited &= ~bit
        noted.sides |= bit
        self._number += 1
        self._note_out(noted.first, noted.frame, self._number)  # that may have been the copy
        if noted.due:
            # On a trunk a copy is known by its key, and may be held back for long.
            if not self._sides.trunks & bit:
                self._lag.note(now - noted.heard_s, now)
            noted.due &= ~bit
            self._note_out(side, noted.frame, noted.number)
            if not noted.due:
                self._settle("heard")
        elif not noted.void and self._sides.rules[side].inward(noted.frame):
            self._owe(noted, self._due_now(noted, noted.awaited & self._sides.outward(noted.frame)))
            noted.came = side
        for earlier, other in self._doubted.crossed(noted):
            self._cross(earlier, other)
        if not noted.awaited:
            self._heard.remove(noted)
        return "standby"

    def _cross(self, noted: Noted, side: int) -> None:
        """Know that a frame was on a side when we did not hear that."""
        noted.due &= ~(1 << side)
        noted.awaited &= ~(1 << side)
        if not noted.due:
            self._settle("heard")
        if not noted.awaited:
            self._heard.remove(noted)

    def _note_out(self, side: int, frame: bytes, number: int) -> None:
        """Note that a frame came out on a side, if it must not come after a later one of its pattern."""
        if self._sides.aged and side >= 0 and self._sides.aged >> side & 1:
            self._out.note(side, frame, number)

    def _note(self, side: int, noted: Noted) -> str:
        frame, others = noted.frame, ~(1 << side)
        outward = self._sides.outward(frame)
        admitted = self._sides.rules[side].inward(frame)
        due = self._due_now(noted, outward & others, self._sides.rules[side].anew) if admitted else 0
        early = self._early_at(side, frame)
        refused = "pattern" if is_frame(frame) else NO_FRAME
        noted.came, noted.first, noted.sides = side if admitted else -1, side, 1 << side
        return self._put(noted, due, due | early, "standby" if admitted else refused)

    def _due_now(self, noted: Noted, wanted: int, anew: bool = False) -> int:
        """Return where a frame is due of the sides that want it: in our own turn, everywhere."""
        heard = 0 if anew else wanted & self._sides.hearing
        if not self._in_turn:
            return heard
        noted.ours = wanted & ~heard
        return wanted

    def _early_at(self, side: int, frame: bytes) -> int:
        """Return the sides where the original of a frame may yet come in, if this is the copy on a side."""
        if side < 0 or not self._sides.outward(frame) >> side & 1:
            return 0
        return self._sides.inward(frame) & ~(1 << side)

    def _note_ours(self, side: int, noted: Noted) -> str:
        """Note a frame that the active bridge stamped first: its original is heard later, or never."""
        noted.named = False
        return self._put(noted, 0, self._sides.inward(noted.frame) & ~(1 << side), "echo")

    def _put(self, noted: Noted, due: int, awaited: int, reason: str) -> str:
        if not awaited:
            return reason
        self._make_room(len(noted.frame))
        noted.awaited = awaited
        self._number += 1
        noted.number = self._number
        self._owe(noted, due)
        self._heard.add(noted)
        return reason

    def _owe(self, noted: Noted, due: int) -> None:
        if due and not noted.due:
            self.stats.offered += 1
            self.stats.queued += 1
        noted.due = due

    def _make_room(self, size: int) -> None:
        while (oldest := self._heard.too_many(size)) is not None:
            self._give_up(oldest, "full")

    def _give_up(self, noted: Noted, reason: str) -> None:
        if noted.due:
            self._settle(reason)
            noted.due = 0
        self._heard.remove(noted)

    def _settle(self, reason: str) -> None:
        self.stats.queued -= 1
        self.stats.drop(reason)

    def owe(self, side: int, messages: Sequence[bytes], now: float, fresh: bool = False) -> None:
        """Keep messages that did not get out by a side, for the gateway that forwards next to send.

        `fresh`: they came in just now. Nobody knows how long others have waited, so a side that replays only
        young ones gives them up.
        """
        if not self._sides.rules[side].keeps_unsent():
            return
        if self._sides.aged >> side & 1 and not fresh:
            self.stats.offered += len(messages)
            return self.stats.drop("stale", len(messages))
        for message in messages:
            self._keep_unsent(side, message, now)

    def _keep_unsent(self, side: int, message: bytes, now: float) -> None:
        envelope, content, _ = take_apart(message)
        noted, bit = self._sent(envelope, content, now), 1 << side
        known = self._heard.by_key.get(noted.key)
        if known is None:
            self._put(noted, bit, bit, "")
        else:
            self._owe(known, known.due | bit)
            known.awaited |= bit

    def _sent(self, envelope: Envelope | None, frame: bytes, now: float) -> Noted:
        """Return a frame as we would have sent it. Our stamp may not be the key of another's copy."""
        if envelope is None:
            key = -1 if self._stamps is None else self._private()
            return Noted(frame, key, False, HOPS_DEFAULT, now)
        key, named = envelope.key, envelope.origin not in self._own_origins
        return Noted(frame, key, named, envelope.hops, now)

    def pause(self) -> None:
        """Hear what comes in our own turn, which has stopped. Until another begins, only we can send it, so
        it is due also where a standby cannot tell what was sent."""
        self._in_turn = True

    def concede(self) -> None:
        """Know that another gateway has its turn: what only we could have sent, it has sent or not, unheard.

        A frame that is due nowhere else is given up, counted as `unheard`.
        """
        if not self._in_turn:
            return
        self._in_turn = False
        for noted in [one for one in self._heard.in_order() if one.ours]:
            self._disown(noted)

    def _disown(self, noted: Noted) -> None:
        was_due, ours, noted.ours = noted.due, noted.ours, 0
        noted.due &= ~ours
        noted.awaited &= ~ours | self._early_at(noted.first, noted.frame)
        if was_due and not noted.due:
            self._settle("unheard")
        if not noted.awaited:
            self._heard.remove(noted)

    def advance(self, now: float) -> None:
        """Give up frames that are too old at `now`, counted as `stale`. Call it once a batch."""
        self._seen.advance(now)
        if self._stamps is not None:
            self._stamps.advance(now)
        self._doubted.advance(now)
        oldest_s = now - self.age_s
        for noted in list(takewhile(lambda noted: noted.heard_s < oldest_s, self._heard.in_order())):
            self._give_up(noted, "stale")

    def sent(self) -> list[Sent]:
        """Return what others have sent and has yet to come in by a wire, in the order of hearing."""
        wires = [number for number, side in enumerate(self._sides.rules) if not side.trunk]
        gone = [noted for noted in self._heard.in_order() if not noted.due]
        return [Sent(n, one.frame, one.heard_s) for one in gone for n in wires if one.awaited >> n & 1]

    def replay(self, now: float) -> list[Due]:
        """Return the frames that nobody has sent, in the order of hearing, and empty the window.

        Among them are those that are due nowhere any more, as they are too old.
        """
        self._withhold(now)
        due = [self._due(noted) for noted in self._heard.in_order() if noted.due or noted.withheld]
        count = sum(1 for one in due if one.sides)
        self.stats.sent += count
        self.stats.queued -= count
        self._out.clear()
        self._heard.clear()
        self._doubted.begin(0.0)
        self._in_turn = False
        return due

    def _withhold(self, now: float) -> None:
        """Take frames from the sides for which they are too old; those left with none count as `stale`."""
        self.advance(now)
        for noted in self._heard.in_order() if self._sides.aged else ():
            late = [n for n, side in enumerate(self._sides.rules) if self._is_late(n, side, noted, now)]
            for number in late:
                noted.due &= ~(1 << number)
                noted.withheld |= 1 << number
            if late and not noted.due:
                self._settle("stale")

    def _is_late(self, number: int, side: SideRules, noted: Noted, now: float) -> bool:
        """Return whether a frame is due on a side that takes it no more."""
        if side.replay_s is None or not noted.due >> number & 1:
            return False
        overtaken = self._out.is_overtaken(number, noted.frame, noted.number)
        return overtaken or now - noted.heard_s >= side.replay_s

    def _due(self, noted: Noted) -> Due:
        if self._stamps is None:
            return Due(noted.due, noted.frame, HOPS_DEFAULT, noted.withheld, noted.came)
        message = wrap_known(noted.frame, noted.key, max(0, noted.hops))
        return Due(noted.due, message, noted.hops, noted.withheld, noted.came)

    def void(self, reason: str, before_s: float, now: float) -> None:
        """Send no frame that was heard before `before_s`; count it by `reason`, and know its copies.

        Only a frame that came with an envelope still goes to trunks, unless it turns out that it was there: a
        receiver that has it knows its key.
        """
        self._doubted.begin(now + self.age_s)
        for noted in takewhile(lambda noted: noted.heard_s <= before_s, self._heard.in_order()):
            if noted.named and noted.due & self._sides.trunks:
                noted.due &= self._sides.trunks
                self._doubted.add(noted)
                continue
            if noted.due:
                self._settle(reason)
            noted.due, noted.void = 0, True
            noted.heard_s = min(noted.heard_s, now + VOID_S - self.age_s)
