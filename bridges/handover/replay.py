"""The frames that a gateway sends at a takeover, and the copies of them that come later. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bridges.forms import EnvelopedBatch, MixedBatch
from bridges.handover.entrance import GatedSide
from bridges.handover.sides import OfSide, moved_all
from bus.ledger import Stats
from bus.wire.batch import Batch, batch_of, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, holds_frame, take_apart

LATE_S = 0.25  # what the other had queued, on a slow line, may come out for so long after our turn began


class Due(NamedTuple):
    """A frame to send to the sides whose bits are set; `message` has an envelope where the window stamps.

    `hops`: the hops left for the next appliance; below 0, no trunk may take it. `withheld`: bits of sides for
    which it is too old. `came`: the side that it came in by; -1 if it came while this gateway forwarded.
    """

    sides: int
    message: bytes
    hops: int
    withheld: int = 0
    came: int = -1


def batches_of(due: Sequence[Due], stamped: bool) -> list[Batch]:
    """Return frames as batches, in the form in which ports take them. `stamped`: they have envelopes."""
    made = list[Batch]()
    for first in range(0, len(due), 256):
        items = due[first : first + 256]
        batch = from_payloads(item.message for item in items)
        opaque = tuple(n for n, item in enumerate(items) if not holds_frame(item.message, stamped))
        if stamped:
            spent = tuple(n for n, item in enumerate(items) if item.hops < 0)
            batch = EnvelopedBatch(batch.keep(), batch.count, None, spent, opaque)
        elif opaque:
            batch = MixedBatch(batch.keep(), batch.count, opaque)
        made.append(batch)
    return made


class Replayed:
    """The frames that went out at the last takeover, by side. Copies that are heard soon come from the other
    bridge, also of those that are too old for us to send.

    Trunks know copies by their keys, except those of frames that each candidate stamps with a key of its own.
    On a side that is deaf no copy is heard, so what is equal there has come anew.
    """

    def __init__(self) -> None:
        self._frames = Counter[OfSide]()
        self._at_s = 0.0

    def note(self, due: Sequence[Due], sides: Sequence[GatedSide], private: int | None, now: float) -> None:
        """Note what goes out now. `private`: the origin that only we stamp with; None without envelopes."""
        self._at_s, self._frames = now, Counter()
        hearing = [(n, 1 << n, side.trunk) for n, side in enumerate(sides) if not side.deaf]
        own, start = (b"", 0) if private is None else (private.to_bytes(4, "big"), ENVELOPE_BYTES)
        for item in due:
            ours = start > 0 and item.message[4:8] == own
            for number, bit, trunk in hearing:
                if (item.sides | item.withheld) & bit and (ours or not trunk):
                    self._frames[number, item.message[start:]] += 1

    def without_copies(self, side: int, batch: Batch, stats: Stats, now: float) -> Batch | None:
        """Take out messages that both bridges have sent: they would go back where they came from."""
        if not self._frames:
            return batch
        if now >= self._at_s + LATE_S:
            self._frames.clear()
            return batch
        kept = list[bytes]()
        for message in payloads(batch):
            name = side, take_apart(message).content
            if self._frames[name] > 0:
                self._frames[name] -= 1
                stats.reject("late")
            else:
                kept.append(message)
        return batch_of(kept)

    def revise(self, places: Sequence[int | None]) -> None:
        """Change to other sides. `places`: for each old side its new number, None if it has gone."""
        self._frames = Counter(moved_all(self._frames, places))

    def clear(self) -> None:
        """Forget all: another gateway may forward from now on."""
        self._frames.clear()
