"""Batches of bare frames at a bridge without trunks, and what a side's own rules let out of any bridge.

Whole stretches that may pass are copied at once, or not at all: see `bridges.runs` for the judging.
"""

from struct import Struct

from bridges.crossing import Entry, enveloped
from bridges.rules import Rules
from bridges.runs import WALK, Run, cut_admitted, find, verdicts
from bus.hub import Stats
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, frame_bytes

_SIZES = Struct(">BH")  # of a frame: tokens, data bytes


def only_frames(batch: Batch) -> bool:
    """Whether every message of `batch` is a plain frame; reads lengths and headers only."""
    data, position, left = batch.keep(), 0, batch.count
    while left:
        run = find(data, position, left)
        if run is not None and not run.enveloped:
            position, left = run.stop, left - run.messages
            continue
        some = min(left, WALK)
        position = _frames_end(data, position, some)
        if not position:
            return False
        left -= some
    return True


def _frames_end(data: bytes, position: int, count: int) -> int:
    """Where the next message begins if these `count` are all plain frames; else 0."""
    length_at = LENGTH.unpack_from
    for _ in range(count):
        length = length_at(data, position)[0]
        position += LENGTH_BYTES
        if not length or frame_bytes(data, position) != length:
            return 0
        position += length
    return position


class _Kept:
    """What was let through: `parts`, and from `begun` on what is not copied yet."""

    __slots__ = ("begun", "count", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.count = self.begun = 0


def admit(batch: Batch, entry: Entry, stats: Stats) -> Batch | None:
    """The frames that may enter a bridge without trunks, bare; the rest is counted as rejected.

    Whole runs of admitted messages are copied at once, and the very batch is returned when all may pass.
    """
    data, kept, position, left = batch.keep(), _Kept(), 0, batch.count
    while left:
        run = find(data, position, left)
        if run is None or run.enveloped:
            some = min(left, WALK)
            position = _admit_each(data, position, some, entry, kept, stats)
            left -= some
        else:
            if refused := _keep_run(data, run, entry.rules, kept):
                stats.reject("pattern", refused)
            position, left = run.stop, left - run.messages
    if not kept.begun:
        return batch if kept.count else None
    kept.parts.append(data[kept.begun : position])
    return Batch(b"".join(kept.parts), kept.count) if kept.count else None


def _keep_run(data: bytes, run: Run, rules: Rules, kept: _Kept) -> int:
    """Keep what passes of a run; returns how many do not."""
    passes = verdicts(data, run, rules)
    if passes is None:
        kept.count += run.messages
        return 0
    found = cut_admitted(data, run, passes, 0)
    kept.parts += data[kept.begun : run.start], *found
    kept.count += len(found)
    kept.begun = run.stop
    return run.messages - len(found)


def _admit_each(data: bytes, position: int, count: int, entry: Entry, kept: _Kept, stats: Stats) -> int:
    """The same, one message after the other; returns where the next one begins."""
    length_at, sizes_at, parts, begun = LENGTH.unpack_from, _SIZES.unpack_from, kept.parts, kept.begun
    heads, tokens_min, more = entry.rules.heads, entry.rules.tokens_min, entry.rules.more
    for _ in range(count):
        head, start = position, position + LENGTH_BYTES
        length = length_at(data, head)[0]
        position = start + length
        if length >= FRAME_BYTES_MIN:
            tokens, size = sizes_at(data, start + 1)
            if length == FRAME_BYTES_MIN + 4 * tokens + size and size <= DATA_BYTES_MAX:
                if (
                    data.startswith(heads, start + FRAME_BYTES_MIN)
                    and tokens >= tokens_min
                    and (not more or entry.rules.admit(data, start))
                ):
                    kept.count += 1
                    continue
                stats.reject("pattern")
            elif enveloped(data, start, position, entry, stats) >= 0:
                parts += data[begun:head], LENGTH.pack(length - ENVELOPE_BYTES)
                begun = start + ENVELOPE_BYTES
                kept.count += 1
                continue
        else:
            stats.reject("malformed")
        parts.append(data[begun:head])
        begun = position
    kept.begun = begun
    return position


def select(batch: Batch, skip: int, rules: Rules, stats: Stats) -> Batch | None:
    """The messages whose frame, `skip` bytes in, passes `rules`; the rest is counted as dropped."""
    data, kept, position, left = batch.keep(), _Kept(), 0, batch.count
    while left:
        run = find(data, position, left)
        if run is not None and run.frame == LENGTH_BYTES + skip:
            _keep_run(data, run, rules, kept)
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


def _select_each(data: bytes, position: int, count: int, skip: int, rules: Rules, kept: _Kept) -> int:
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
