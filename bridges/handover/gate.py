"""The gate of a bridge that several gateways run: open while this one may forward, else a window."""

import time
import zlib
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

from bridges.handover.belated import Belated
from bridges.handover.entrance import AGE_S, ALONE, IN_DOUBT, GatedSide, KeysOf, Rank, never
from bridges.handover.in_order import InOrderWindow
from bridges.handover.replay import Due, Replayed, batches_of
from bridges.handover.sides import SideRules
from bridges.handover.stamps import Stamps
from bridges.handover.unanswered import Unanswered
from bridges.rules import Seen
from bus.ledger import Stats
from bus.values import RESULTS_FULL
from bus.wire.batch import Batch, batch_of, from_payloads, payloads
from bus.wire.envelope import first_sequence, is_enveloped, take_apart

_U32 = 0xFFFFFFFF


def private_origin(origin: int, number: int) -> int:
    """Return the origin that only the candidate `number` stamps with, so that all others can tell."""
    return zlib.crc32(f"{origin}/{number}".encode())


class Gate:
    """The entrance of a bridge, open while this gateway may forward; meanwhile a window notes what is heard.

    `Bridge.stand_by` makes it with the bridge's `sides`, `origin`, memory of keys `seen`, and `clock`.

    `may_forward(now)` is asked for each batch before anything leaves, so that a process that was frozen
    checks its lease first; `on_lapse()` is called when the answer is no. `age_s`: how long the window keeps a
    frame. Messages that candidates of other ranks than `rank` have stamped as theirs do not come in.
    `forwarding` says whether the gate is open. `keys_of`: where a side is a trunk, returns the stamps for
    messages without envelopes, the same as any other candidate's: origin and sequence as one number.
    `in_doubt()` tells whether no broker confirms that this one may forward: some sides send nothing then.
    """

    def __init__(
        self,
        sides: Sequence[GatedSide],
        origin: int,
        seen: Seen,
        clock: Callable[[], float],
        may_forward: Callable[[float], bool],
        on_lapse: Callable[[], None] = lambda: None,
        age_s: float = AGE_S,
        rank: Rank = ALONE,
        in_doubt: Callable[[], bool] = never,
    ) -> None:
        self.forwarding, self.in_doubt = False, in_doubt
        self._sides, self._clock = tuple(sides), clock
        self._may_forward, self._on_lapse = may_forward, on_lapse
        self._origin, self._last = origin, first_sequence(time.time())
        self._stamp_by(rank)
        self._stamps = self._stamps_for(sides, None)
        self._replayed, self._belated = Replayed(), Belated()
        self._unanswered = Unanswered(self._device_of, self._note_devices())
        self.window = InOrderWindow(_rules(sides), origin, seen, self._stamps, self._own_key, age_s)
        self.keys_of: KeysOf | None = None if self._stamps is None else self.window.keys_of

    def _stamp_by(self, rank: Rank) -> None:
        self._rank, self._private = rank, private_origin(self._origin, rank.number)
        others = (number for number in range(rank.of) if number != rank.number)
        self._others = tuple(private_origin(self._origin, number).to_bytes(4, "big") for number in others)

    def take_rank(self, rank: Rank) -> None:
        """Take another place among the candidates. What waits goes on to wait."""
        if rank != self._rank:
            self._stamp_by(rank)
            self.window.stamp_as(self._private)

    def _stamps_for(self, sides: Sequence[GatedSide], known: Stamps | None) -> Stamps | None:
        """Return the stamps that a bridge with these sides needs: those `known`, or new ones."""
        if not any(side.trunk for side in sides):
            return None
        stamps = known or Stamps()
        stamps.advance(self._clock())
        return stamps

    def revise(self, sides: Sequence[GatedSide]) -> None:
        """Change to other sides and rules, between two batches. What the window knows of others stays."""
        places = [next((n for n, new in enumerate(sides) if new is old), None) for old in self._sides]
        self._stamps = self._stamps_for(sides, self._stamps)
        self.window.revise(_rules(sides), places, self._stamps)
        self.keys_of = None if self._stamps is None else self.window.keys_of
        self._replayed.revise(places)
        self._belated.revise(places)
        self._sides = tuple(sides)
        self._unanswered.revise(self._note_devices(), places)

    def keep(self, age_s: float) -> None:
        """Keep frames in the window for `age_s` from now on."""
        self.window.keep(age_s)

    def _own_key(self) -> int:
        self._last = (self._last + 1) & _U32
        return self._private << 32 | self._last

    def enter(self, side: int, batch: Batch, stats: Stats, came_ns: Sequence[int] = ()) -> Batch | None:
        """Return the messages of a batch that go on.

        `stats` counts the rest, and a standby's window notes it, but for what it reads too late for that.
        """
        now = self._clock()
        if self.forwarding and not self._may_forward(now):
            self._on_lapse()
        forwards = self.forwarding and self._may_forward(now)
        if len(came_ns) == batch.count and not self._sides[side].trunk:
            timely = self._timely(side, batch, came_ns, now, forwards, stats)
            if timely is None:
                return None
            batch = timely
        if self._devices:
            kept = self._with_results(side, batch, now, forwards, stats)
            if kept is None:
                return None
            batch = kept
        if forwards:
            if self._stamps is not None:
                self._stamps.advance(now)
            rest = self._without_others(batch, stats) if self._sides[side].trunk else batch
            if rest and self._sides[side].stops_in_doubt and self.in_doubt():
                rest = self._without_sent(side, rest, stats)
            return self._replayed.without_copies(side, rest, stats, now) if rest else rest
        self.window.advance(now)
        self.window.hear_all(side, batch, now, stats)
        return None

    def _timely(
        self, side: int, batch: Batch, came_ns: Sequence[int], now: float, forwards: bool, stats: Stats
    ) -> Batch | None:
        """Return a batch without what waited to be read while another gateway forwarded it."""
        now_ns, age_s = time.time_ns(), self.window.age_s
        if forwards:
            kept = self._belated.unsent(side, batch, came_ns, now_ns, now, age_s)
        else:
            kept = self._belated.unheard(batch, came_ns, now_ns, age_s)
        left = batch.count - (0 if kept is None else kept.count)
        stats.reject("late" if forwards else "standby", left)
        return kept

    def _with_results(
        self, side: int, batch: Batch, now: float, forwards: bool, stats: Stats
    ) -> Batch | None:
        """Return a batch without the results of devices that are not to be told now."""
        kept = self._unanswered.hear(side, batch, now, forwards)
        left = batch.count - (0 if kept is None else kept.count)
        stats.reject("duplicate" if forwards else "standby", left)
        return kept

    def _note_devices(self) -> int:
        """Note the sides with devices that tell what became of commands. Return the others, as bits."""
        self._devices = tuple(number for number, side in enumerate(self._sides) if side.answers)
        return sum(1 << number for number, side in enumerate(self._sides) if not side.answers)

    def _device_of(self, side: int, command: bytes) -> int:
        """Return the number of the side with the device that a command is for; -1 if it comes to none."""
        if not self._sides[side].admits(command):
            return -1
        found = (n for n in self._devices if n != side and self._sides[n].lets_out(command))
        return next(found, -1)

    def _without_others(self, batch: Batch, stats: Stats) -> Batch | None:
        """Take out messages that another candidate stamped as its own, which would go round now.

        They come while both candidates forward.
        """
        data = batch.keep()
        if not any(origin in data for origin in self._others):
            return batch
        messages = list(payloads(batch))
        kept = [one for one in messages if not (is_enveloped(one) and one[4:8] in self._others)]
        stats.reject("echo", len(messages) - len(kept))
        return batch_of(kept)

    def _without_sent(self, side: int, batch: Batch, stats: Stats) -> Batch | None:
        """Take out what may not enter here: while we send nothing, another gateway may send there."""
        messages = list(payloads(batch))
        kept = [one for one in messages if self._sides[side].admits(take_apart(one).content)]
        stats.reject("another sender", len(messages) - len(kept))
        return batch_of(kept)

    def ask(self, side: int, batch: Batch) -> None:
        """Note the commands in what leaves by a side for a device, which tells what becomes of each."""
        self._unanswered.ask(side, batch, self._clock())

    def owe(self, side: int, messages: Sequence[bytes], fresh: bool) -> None:
        """Keep messages that did not leave by a side for the next gateway. `fresh`: they came just now."""
        self.window.owe(side, messages, self._clock(), fresh)

    def forget(self, stats: Stats) -> None:
        """Keep what came in by a pipe that goes: the window keeps it whether its pipe is there or not."""

    def end(self) -> None:
        """Keep nothing back: what the window has, another gateway sends or has sent."""

    def lapsed(self) -> bool:
        """Tell whether our turn ended since the last batch entered. If so, take back all waiting messages."""
        if not self.forwarding or self._may_forward(self._clock()):
            return False
        self.purge()
        return True

    def resume(self, since_s: float | None = None, again: bool = False) -> int:
        """Send the frames that nobody has sent, then forward. Return their number.

        `again`: nobody else has forwarded since we did last, so what came since is due also where the window
        does not hear what others send. `since_s`: when our turn began, where that was a while ago: messages
        that are held back have waited since.
        """
        now = self._clock()
        if not again:
            self.window.concede()
        for side in self._sides if self.in_doubt() else ():
            if side.stops_in_doubt:
                side.purge(IN_DOUBT)
        self._belated.begin(now, self.window.sent())
        due = self.window.replay(now)
        self._show_came(due)
        self._replayed.note(due, self._sides, None if self._stamps is None else self._private, now)
        self.forwarding, stamped = True, self._stamps is not None
        for number, side in enumerate(self._sides):
            side.withhold(sum(item.withheld >> number & 1 for item in due))
            for batch in batches_of([item for item in due if item.sides >> number & 1], stamped):
                side.replay(batch, since_s)
        for number, result in self._unanswered.take_results(now):
            self._sides[number].say(from_payloads([result]))
        return sum(1 for item in due if item.sides)

    def _show_came(self, due: list[Due]) -> None:
        """Show what goes out now as what came in, in the order of hearing: so each frame has come before it
        leaves, for who records both."""
        sides = [side.is_recorded for side in self._sides]
        recorded = (item for item in due if item.sides and item.came >= 0 and sides[item.came])
        for side, some in groupby(recorded, attrgetter("came")):
            self._sides[side].came(from_payloads(item.message for item in some))

    def pause(self) -> None:
        """Stop forwarding and listen instead. Messages queued in pipes still leave."""
        if self.forwarding:
            self.window.pause()
        self.forwarding = False
        self._replayed.clear()
        self._belated.end()

    def concede(self) -> None:
        """Know that another gateway forwards, or has: what came since our turn is no more for us alone."""
        self.window.concede()

    def purge(self) -> None:
        """Take back waiting messages: another bridge may be sending them.

        The window keeps what nobody sends.
        """
        now = self._clock()
        for number, side in enumerate(self._sides):
            self.window.owe(number, side.purge("fenced"), now)

    def noted(self) -> dict[str, int]:
        """Return how many frames wait for a takeover (`waiting`), and were given up, by reason."""
        noted = {"waiting": self.window.stats.queued, **self.window.stats.dropped}
        return noted | {RESULTS_FULL: self._unanswered.untold} if self._unanswered.untold else noted

    def lag_s(self) -> float:
        """Return how long the other bridge's frames have lately taken to come out, in seconds."""
        return self.window.lag_s(self._clock())

    def queued(self) -> int:
        """Count the messages that wait in the pipes, or are held back."""
        return sum(side.queued for side in self._sides)

    def blind(self, before_s: float) -> None:
        """Distrust everything that the window heard before `before_s`: a side was not heard for a while."""
        self.window.void("blind", before_s, self._clock())
        if self._stamps is not None:
            self._stamps.forget()
            self._stamps.advance(self._clock())


def _rules(sides: Sequence[GatedSide]) -> list[SideRules]:
    return [
        SideRules(
            side.admits,
            side.lets_out,
            side.trunk,
            side.deaf,
            side.opaque,
            side.keeps_unsent,
            side.replay_s,
            side.anew,
        )
        for side in sides
    ]
