"""The inside of a bridge: rules and keys, stamps, entrance and taps, which its sides share.

Where no side is a trunk, plain frames travel between the sides; where one is, every message inside has an
envelope (`bridges/forms.py`).
"""

import time
from collections.abc import Callable, Iterable, Sequence

from bridges.admission import Admission
from bridges.forms import MixedBatch
from bridges.forms import without as without_numbers
from bridges.handover.entrance import Entrance
from bridges.ingress import admit_bare, admit_stamped, only_frames
from bridges.rules import Rule, Rules, Seen
from bus.hub import Pipe, Tap
from bus.ledger import Stats
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads
from bus.wire.envelope import first_sequence
from bus.wire.frame import is_frame
from bus.wire.pattern import Pattern

_U32 = 0xFFFFFFFF
Announced = Callable[[bytes, Pipe | None], str]
"""A function that takes an announcement as it came by a trunk, and the pipe, None if that is not known.

It returns why it is rejected, or "".
"""
CameTap = Callable[[Batch, str], None]
"""A tap of a batch that came in by a side, by its name, while the bridge stood by."""


class Inside(WatchedHub):
    """The hub inside a bridge, whose pipes are the ports of its sides.

    `origin` (u32) is this appliance in envelopes: messages that come back with it are dropped. `core_rule` is
    the pattern of the bridge. `clock` gives seconds, monotonic. `sequence` is the first sequence number
    stamped; where it is not given, it comes from the time of day, so that a restart does not repeat keys that
    other appliances still remember. `announced` takes announcements of gateways that come by trunks.
    """

    def __init__(
        self,
        name: str,
        origin: int,
        pattern: Iterable[int | str],
        clock: Callable[[], float],
        sequence: int | None,
        announced: Announced | None = None,
    ) -> None:
        super().__init__(name, clock)
        if not 0 <= origin <= _U32:
            raise ValueError(f"bridge {name}: origin must be 0 to {_U32}, not {origin}")
        self.origin = origin
        self.core_rule = Rule([Pattern(*pattern)])
        self.seen, self.announced = Seen(), announced
        self.sequence = first_sequence(time.time()) if sequence is None else sequence & _U32
        self._of_sides: dict[str, Stats] = {}
        self.gate: Entrance | None = None
        """The entrance of a bridge that several gateways run; None where no other gateway runs it."""
        self.is_late = False
        """Whether what is passed on came in while this gateway might forward, and it may no more."""
        self.simple = not self.core_rule
        """Whether there are plain sides only and no filter: frames pass as they came, a batch at a time."""
        self.stamps = False
        """Whether some side is a trunk: frames that enter without an envelope are given one."""
        self.prompt_sides = 0
        """The sides by which nothing leaves that waited in a journal."""
        self.sent_taps: tuple[Tap, ...] = ()
        """Taps that see every batch a port hands to its pipe, after all policies."""
        self.came_taps: tuple[CameTap, ...] = ()
        """Taps that see what came in while the bridge stood by and goes out at a takeover, with the side."""

    def stats_of(self, side: str) -> Stats:
        """Return the counts of messages that come in by a side from no port; they outlive the side."""
        if side not in self._of_sides:
            self.keep(side, self._of_sides.setdefault(side, Stats()))
        return self._of_sides[side]

    def admit(self, batch: Batch, admission: Admission, stats: Stats) -> Batch | None:
        """Return the messages of a batch that the rules let in, in the form for inside the bridge."""
        if self.simple and only_frames(batch):
            return batch
        self.seen.advance(self.clock())
        if not self.stamps:
            return admit_bare(batch, admission, stats)
        keys_of = None if self.gate is None else self.gate.keys_of
        admitted, self.sequence = admit_stamped(batch, admission, self.sequence, stats, keys_of)
        return admitted

    def pass_on(self, batch: Batch, origin: Pipe | None) -> None:
        """Send a batch to all pipes but its own, unless it waited and another gateway forwards now."""
        self.is_late = self.gate is not None and not self.gate.forwarding and origin is not None
        super().pass_on(batch, origin)
        self.is_late = False

    def own_batch(self, message: bytes) -> Batch:
        """Return a message of our own in the form that it has inside the bridge.

        Thus a canary has our envelope on trunks: a ring of trunks alone does not bring it back as new.
        """
        batch = from_payloads([message])
        if not self.stamps:
            return batch if is_frame(message) else MixedBatch(batch.keep(), 1, (0,))
        everything = Admission(self.origin, Rules(), lambda _: True, opaque=True)
        stamped, self.sequence = admit_stamped(batch, everything, self.sequence, Stats())
        return batch if stamped is None else stamped

    def without_numbers(self, batch: Batch, gone: Sequence[int]) -> Batch | None:
        """Return `batch`, as it is inside this bridge, without some messages; None if none are left."""
        if len(gone) == batch.count:
            return None
        rest = without_numbers(batch, gone)
        return batch.keeping(rest, gone) if isinstance(batch, MixedBatch) else rest

    def owned(self, batch: Batch) -> Batch:
        """Return a batch that stays as it is when its decoder reads on."""
        whole = super().owned(batch)
        return batch.keeping(whole, ()) if isinstance(batch, MixedBatch) else whole

    def tap_came(self, tap: CameTap) -> None:
        """Call `tap` at each takeover with what came in while the bridge stood by, and goes out now."""
        self.came_taps += (tap,)

    def untap_came(self, tap: CameTap) -> None:
        """Stop calling `tap`. It is no error if it is not registered."""
        self.came_taps = tuple(other for other in self.came_taps if other is not tap)

    def tap_sent(self, tap: Tap) -> None:
        """Call `tap` with every batch that a port hands to its pipe from now on."""
        self.sent_taps += (tap,)

    def untap_sent(self, tap: Tap) -> None:
        """Stop calling `tap`. It is no error if it is not registered."""
        self.sent_taps = tuple(other for other in self.sent_taps if other is not tap)
