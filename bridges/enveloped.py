"""Batches inside a bridge that hold more than plain frames: opaque messages too, or each in its envelope."""

from bisect import bisect_left
from collections.abc import Collection, Sequence

from bridges.runs import WALK, cut, find
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES


class MixedBatch(Batch):
    """Admitted messages inside the bridge; those with the numbers `opaque`, in order, are no frames."""

    __slots__ = ("_frames", "opaque")

    def __init__(self, data: bytes, count: int, opaque: tuple[int, ...]) -> None:
        super().__init__(data, count)
        self.opaque = opaque
        self._frames: Batch | None = None

    def frames(self) -> Batch | None:
        """Return this batch without the opaque messages, None if nothing is left: made once for all sides."""
        if not self.opaque:
            return self
        if self._frames is None and len(self.opaque) < self.count:
            self._frames = self._without_opaque()
        return self._frames

    def _without_opaque(self) -> Batch:
        return without(self, self.opaque)

    def keeping(self, rest: Batch, gone: Sequence[int]) -> Batch:
        """Return `rest`, which is this batch without the messages `gone` (numbers, in order), as one."""
        return MixedBatch(rest.keep(), rest.count, renumbered(self.opaque, gone))


class EnvelopedBatch(MixedBatch):
    """Every message has its envelope: `data` as trunks take it, `bare()` as all others do.

    `spent` are the numbers of those that no trunk may take: their hops have run out.
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
    data, parts, position, left = batch.keep(), list[bytes](), 0, batch.count
    while left:
        run = find(data, position, left)
        if run is not None and run.enveloped:
            prefix = LENGTH.pack(run.stride - run.frame)
            parts += prefix, prefix.join(cut(data, run, run.frame, run.stride - run.frame))
            position, left = run.stop, left - run.messages
        else:
            some = min(left, WALK)
            position = _strip_each(data, position, some, parts)
            left -= some
    return Batch(b"".join(parts), batch.count)


def _strip_each(data: bytes, position: int, count: int, parts: list[bytes]) -> int:
    length_at, length_of, add = LENGTH.unpack_from, LENGTH.pack, parts.append
    for _ in range(count):
        length = length_at(data, position)[0]
        start = position + LENGTH_BYTES + ENVELOPE_BYTES
        position += LENGTH_BYTES + length
        add(length_of(length - ENVELOPE_BYTES))
        add(data[start:position])
    return position
