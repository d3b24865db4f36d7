"""Egress: batches that leave a bridge are cut to what one side's medium and rules let out.

Whole stretches that may pass are copied at once, or not at all: see `bridges.runs` for the judging.
"""

from bridges.admission import NO_FRAME
from bridges.enveloped import EnvelopedBatch, MixedBatch, without
from bridges.rules import Rules
from bridges.runs import WALK, Kept, find, keep_run
from bus.ledger import Stats
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES


def leaving(batch: Batch, trunk: bool, opaque: bool, rules: Rules, stats: Stats) -> Batch | None:
    """Return what a side sends of a batch: with envelopes on a `trunk`. The rest is counted as dropped.

    `opaque`: messages may leave that are no frames.
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
    """Do as `leaving` for a batch with opaque messages, which rules let by: they match no pattern."""
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
    """Return the numbers of the messages, but for those `exempt`, whose frame does not pass `rules`."""
    data, position, found = batch.keep(), 0, list[int]()
    for number in range(batch.count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position)[0]
        if number not in exempt and not rules.admit(data, start + skip):
            found.append(number)
    return found


def unspent(batch: EnvelopedBatch, stats: Stats) -> Batch | None:
    """Return the messages that a trunk may take; those whose hops have run out are counted as dropped."""
    stats.drop("hops", len(batch.spent))
    return without(batch, batch.spent) if len(batch.spent) < batch.count else None


def select(batch: Batch, skip: int, rules: Rules, stats: Stats) -> Batch | None:
    """Return the messages whose frame, `skip` bytes in, passes `rules`; the rest is counted as dropped."""
    data, kept, position, left = batch.keep(), Kept(), 0, batch.count
    while left:
        run = find(data, position, left)
        if run is not None:
            keep_run(data, run, rules, kept)
            position, left = run.stop, left - run.messages
        else:
            some = min(left, WALK)
            position = _select_each(data, position, some, skip, rules, kept)
            left -= some
    if kept.count == batch.count:
        return batch
    stats.drop("pattern", batch.count - kept.count)
    kept.parts.append(data[kept.begun : position])
    return Batch(b"".join(kept.parts), kept.count) if kept.count else None


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
