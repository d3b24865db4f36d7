"""The forms that a batch has inside a bridge, and the form in which it leaves by a side. Pure.

A bridge without trunks carries bare messages, one with trunks carries each message in its envelope. Egress
cuts a batch to what one side's medium and rules let out; stretches that may pass are copied at once, or not
at all.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence

from bridges.admission import NO_FRAME
from bridges.rules import Rules
from bridges.runs import Kept, Run, cut, keep_run, scan
from bus.ledger import Stats
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES


class MixedBatch(Batch):
    """A batch of admitted messages inside the bridge; those numbered in `opaque`, in order, are no frames."""

    __slots__ = ("_frames", "opaque")

    def __init__(self, data: bytes, count: int, opaque: tuple[int, ...]) -> None:
        super().__init__(data, count)
        self.opaque = opaque
        self._frames: Batch | None = None

    def frames(self) -> Batch | None:
        """Return this batch without the opaque messages, None if none are left: made once for all sides."""
        if not self.opaque:
            return self
        if self._frames is None and len(self.opaque) < self.count:
            self._frames = self._without_opaque()
        return self._frames

    def _without_opaque(self) -> Batch:
        return without(self, self.opaque)

    def keeping(self, rest: Batch, gone: Sequence[int]) -> Batch:
        """Return `rest`, this batch without the messages `gone` (numbers, in order), in this form."""
        return MixedBatch(rest.keep(), rest.count, renumbered(self.opaque, gone))


class EnvelopedBatch(MixedBatch):
    """A batch whose messages all have envelopes: `data` as trunks take it, `bare()` as all others do.

    `spent` are the numbers of messages that no trunk may take: their hops have run out.
    """

    __slots__ = ("_bare", "spent")

    def __init__(
        self,
        data: bytes,
        count: int,
        bare: Batch | None,
        spent: tuple[int, ...],
        opaque: tuple[int, ...] = (),
    ) -> None:
        Batch.__init__(self, data, count)  # not by way of `MixedBatch`: one is made for each single message
        self.opaque, self._frames = opaque, None
        self._bare, self.spent = bare, spent

    def bare(self) -> Batch:
        """Return the messages without envelopes: made once for all plain sides."""
        if self._bare is None:
            self._bare = strip(self)
        return self._bare

    def _without_opaque(self) -> Batch:
        kept = without(self, self.opaque)
        return EnvelopedBatch(kept.keep(), kept.count, None, renumbered(self.spent, self.opaque))

    def keeping(self, rest: Batch, gone: Sequence[int]) -> Batch:
        spent, opaque = renumbered(self.spent, gone), renumbered(self.opaque, gone)
        return EnvelopedBatch(rest.keep(), rest.count, None, spent, opaque)


def renumbered(numbers: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers that messages have when those with the numbers `gone`, in order, are taken out."""
    out = set(gone)
    return tuple(number - bisect_left(gone, number) for number in numbers if number not in out)


def without(batch: Batch, numbers: Collection[int]) -> Batch:
    """Return a batch without the messages that have these numbers."""
    data, length_at, position = batch.keep(), LENGTH.unpack_from, 0
    parts: list[bytes] = []
    out = set(numbers)
    for number in range(batch.count):
        head = position
        position += LENGTH_BYTES + length_at(data, head)[0]
        if number not in out:
            parts.append(data[head:position])
    return Batch(b"".join(parts), len(parts))


def strip(batch: Batch) -> Batch:
    """Return enveloped messages without their envelopes."""
    parts: list[bytes] = []
    scan(batch.keep(), batch.count, _strip_run, _strip_each, parts)
    return Batch(b"".join(parts), batch.count)


def _strip_run(data: bytes, run: Run, parts: list[bytes]) -> bool:
    if run.enveloped:
        prefix = LENGTH.pack(run.stride - run.frame)
        parts += prefix, prefix.join(cut(data, run, run.frame, run.stride - run.frame))
    return run.enveloped


def _strip_each(data: bytes, position: int, count: int, parts: list[bytes]) -> int:
    length_at, length_of, add = LENGTH.unpack_from, LENGTH.pack, parts.append
    for _ in range(count):
        length = length_at(data, position)[0]
        start = position + LENGTH_BYTES + ENVELOPE_BYTES
        position += LENGTH_BYTES + length
        add(length_of(length - ENVELOPE_BYTES))
        add(data[start:position])
    return position


def leaving(batch: Batch, trunk: bool, opaque: bool, rules: Rules, stats: Stats) -> Batch | None:
    """Return the messages of a batch that a side sends; count the rest as dropped.

    They leave with envelopes on a `trunk`. `opaque`: messages may leave that are no frames.
    """
    if isinstance(batch, MixedBatch) and batch.opaque:
        if opaque:
            return _leaving_mixed(batch, trunk, rules, stats)
        stats.drop(NO_FRAME, len(batch.opaque))
        frames = batch.frames()
        return None if frames is None else leaving(frames, trunk, opaque, rules, stats)
    if not isinstance(batch, EnvelopedBatch):
        return select(batch, 0, rules, stats) if rules else batch
    if not trunk:
        bare = batch.bare()
        return select(bare, 0, rules, stats) if rules else bare
    out = unspent(batch, stats) if batch.spent else batch
    return select(out, ENVELOPE_BYTES, rules, stats) if out and rules else out


def _leaving_mixed(batch: MixedBatch, trunk: bool, rules: Rules, stats: Stats) -> Batch | None:
    """Return what `leaving` does for a batch with opaque messages, which match no pattern and pass."""
    whole, out, skip = Batch(batch.keep(), batch.count), set[int](), 0
    if isinstance(batch, EnvelopedBatch):
        whole, skip = (whole, ENVELOPE_BYTES) if trunk else (batch.bare(), 0)
        out = set(batch.spent) if trunk else out
    stats.drop("hops", len(out))
    refused = _refused(whole, skip, rules, out.union(batch.opaque)) if rules else ()
    stats.drop("pattern", len(refused))
    out.update(refused)
    return whole if not out else without(whole, out) if len(out) < whole.count else None


def _refused(batch: Batch, skip: int, rules: Rules, exempt: set[int]) -> list[int]:
    """Return the numbers of the messages whose frame does not pass `rules`, except those `exempt`."""
    data, position, found, admit = batch.keep(), 0, list[int](), rules.admit
    for number in range(batch.count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position)[0]
        if number not in exempt and not admit(data, start + skip):
            found.append(number)
    return found


def unspent(batch: EnvelopedBatch, stats: Stats) -> Batch | None:
    """Return the messages that a trunk may take; messages whose hops have run out are counted as dropped."""
    stats.drop("hops", len(batch.spent))
    return without(batch, batch.spent) if len(batch.spent) < batch.count else None


def select(batch: Batch, skip: int, rules: Rules, stats: Stats) -> Batch | None:
    """Return the messages whose frame, `skip` bytes in, passes `rules`; the rest is counted as dropped."""
    data, kept = batch.keep(), Kept()
    end = scan(data, batch.count, _select_run, _select_each, skip, rules, kept)
    if kept.count == batch.count:
        return batch
    stats.drop("pattern", batch.count - kept.count)
    return Batch(kept.joined(data, end), kept.count) if kept.count else None


def _select_run(data: bytes, run: Run, _: int, rules: Rules, kept: Kept) -> bool:
    keep_run(data, run, rules, kept)
    return True


def _select_each(data: bytes, position: int, count: int, skip: int, rules: Rules, kept: Kept) -> int:
    length_at, admit = LENGTH.unpack_from, rules.admit
    for _ in range(count):
        head = position
        position += LENGTH_BYTES + length_at(data, head)[0]
        if admit(data, head + LENGTH_BYTES + skip):
            kept.count += 1
        else:
            kept.parts.append(data[kept.begun : head])
            kept.begun = position
    return position
