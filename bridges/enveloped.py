"""Batches whose every message has an envelope: the form of all that is inside a bridge with trunks."""

from bridges.runs import WALK, cut, find
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES


class EnvelopedBatch(Batch):
    """Admitted messages inside the bridge: `data` as trunks take it, `bare()` as all others do.

    `spent` are the numbers of those that no trunk may take: their hops have run out.
    """

    __slots__ = ("_bare", "spent")

    def __init__(self, data: bytes, count: int, bare: Batch | None, spent: tuple[int, ...]) -> None:
        super().__init__(data, count)
        self._bare, self.spent = bare, spent

    def bare(self) -> Batch:
        """Return the frames without envelopes: made once for all plain sides."""
        if self._bare is None:
            self._bare = strip(self)
        return self._bare


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
