"""Batches on their way through a bridge: what enters is judged and stamped, what leaves is cut to its side.

Hot loops over whole batches: a message is looked at where it lies and copied once. Inside a bridge that has
trunks every message has its envelope, whose hops are those left for the next appliance.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from struct import Struct

from bridges.rules import Rules
from bridges.runs import WALK, Run, column, cut, cut_admitted, find, numbers, stamp, verdicts
from bus.hub import Stats
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import (
    ENVELOPE_BYTES,
    HOPS_DEFAULT,
    HOPS_MAX,
    LAYOUT,
    LENGTH_MARK,
    LENGTH_MASK,
    MAGIC,
    MARK,
)
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN

U32 = 0xFFFFFFFF

_HEAD = Struct(">QBBHII")  # a batch's length and an envelope
_SIZES = Struct(">BH")  # of a frame: tokens, data bytes
_ORIGIN, _KEY = Struct(">I"), Struct(">Q")  # 4 bytes into an envelope: origin, and it with the sequence


class Crossing(Batch):
    """Admitted messages inside the bridge: `data` as trunks take it, `bare()` as all others do.

    `spent` are the numbers of those that no trunk may take: their hops have run out.
    """

    __slots__ = ("_bare", "spent")

    def __init__(self, data: bytes, count: int, bare: Batch | None, spent: tuple[int, ...]) -> None:
        super().__init__(data, count)
        self._bare, self.spent = bare, spent

    @property
    def given_bare(self) -> Batch | None:
        """The frames without envelopes, if they are at hand already."""
        return self._bare

    def bare(self) -> Batch:
        """The frames without envelopes: made once for all plain sides."""
        if self._bare is None:
            self._bare = strip(self)
        return self._bare


class Entry:
    """What one side's entrance needs to know: who we are, the rules that bite, what has been seen.

    `is_new(key)` remembers a key, and says whether it was new.
    """

    __slots__ = ("is_new", "origin", "rules")

    def __init__(self, origin: int, rules: Rules, is_new: Callable[[int], bool]) -> None:
        self.origin, self.rules, self.is_new = origin, rules, is_new


class _Stamped:
    """What `admit_stamped` has let through: `stamped` of `count` came without an envelope."""

    __slots__ = ("count", "parts", "sequence", "spent", "stamped")

    def __init__(self, sequence: int) -> None:
        self.parts: list[bytes] = []
        self.spent: list[int] = []
        self.sequence = sequence
        self.count = self.stamped = 0


def admit_stamped(batch: Batch, entry: Entry, sequence: int, stats: Stats) -> tuple[Crossing | None, int]:
    """The messages that may enter, each with its envelope, and the last sequence number used."""
    data, made, position, left = batch.keep(), _Stamped(sequence), 0, batch.count
    while left:
        run = find(data, position, left)
        if run is not None and (_pass_run if run.enveloped else _stamp_run)(data, run, entry, made, stats):
            position, left = run.stop, left - run.messages
        else:
            some = min(left, WALK)
            position = _stamp_each(data, position, some, entry, made, stats)
            left -= some
    if not made.count:
        return None, made.sequence
    bare = batch if made.stamped == batch.count else None
    return Crossing(b"".join(made.parts), made.count, bare, tuple(made.spent)), made.sequence


def _stamp_run(data: bytes, run: Run, entry: Entry, made: _Stamped, stats: Stats) -> bool:
    frames = cut_admitted(data, run, verdicts(data, run, entry.rules), LENGTH_BYTES)
    if len(frames) < run.messages:
        stats.reject("pattern", run.messages - len(frames))
    if frames:
        made.sequence = stamp(frames, entry.origin, made.sequence, made.parts)
        made.stamped += len(frames)
        made.count += len(frames)
    return True


def _pass_run(data: bytes, run: Run, entry: Entry, made: _Stamped, stats: Stats) -> bool:
    """Take a run that has envelopes already, unless some of it needs a closer look."""
    hops = column(data, run, LENGTH_BYTES + 1)
    if max(hops) > HOPS_MAX or entry.origin.to_bytes(4, "big") in set(cut(data, run, LENGTH_BYTES + 4, 4)):
        return False
    keys, passes = numbers(data, run, LENGTH_BYTES + 4), verdicts(data, run, entry.rules)
    if passes is not None:
        keys = list(compress(keys, passes))
        stats.reject("pattern", run.messages - len(keys))
    new: list[int] = list(map(entry.is_new, keys))
    if not all(new):
        stats.reject("duplicate", new.count(False))
    if passes is not None:
        found = iter(new)
        new = [passes_on and next(found) for passes_on in passes]
    messages = bytearray(data[run.start : run.stop])
    messages[LENGTH_BYTES + 1 :: run.stride] = hops.translate(_ONE_HOP_LESS)
    _pass_on(bytes(messages), run, new, hops, made)
    return True


def _pass_on(messages: bytes, run: Run, passes: Sequence[int], hops: bytes, made: _Stamped) -> None:
    if not all(passes):
        messages = b"".join(cut_admitted(messages, run._replace(start=0), passes, 0))
        hops = bytes(compress(hops, passes))
    if 0 in hops:
        made.spent += [made.count + number for number, left in enumerate(hops) if not left]
    made.parts.append(messages)
    made.count += len(hops)


def _stamp_each(data: bytes, position: int, count: int, entry: Entry, made: _Stamped, stats: Stats) -> int:
    """Messages one after the other; returns where the next one begins."""
    heads, tokens_min, more, origin = (
        entry.rules.heads,
        entry.rules.tokens_min,
        entry.rules.more,
        entry.origin,
    )
    length_at, sizes_at, head_of, add = LENGTH.unpack_from, _SIZES.unpack_from, _HEAD.pack, made.parts.append
    sequence = before = made.sequence
    passed = 0
    for _ in range(count):
        start = position + LENGTH_BYTES
        length = length_at(data, position)[0]
        position = start + length
        if length < FRAME_BYTES_MIN:
            stats.reject("malformed")
            continue
        tokens, size = sizes_at(data, start + 1)
        if length == FRAME_BYTES_MIN + 4 * tokens + size and size <= DATA_BYTES_MAX:
            if tokens < tokens_min or not data.startswith(heads, start + FRAME_BYTES_MIN):
                stats.reject("pattern")
                continue
            if more and not entry.rules.admit(data, start):
                stats.reject("pattern")
                continue
            sequence = (sequence + 1) & U32
            add(head_of(length + ENVELOPE_BYTES, MAGIC, HOPS_DEFAULT, LENGTH_MARK | length, origin, sequence))
            add(data[start:position])
        elif (hops := enveloped(data, start, position, entry, stats)) >= 0:
            if not hops:
                made.spent.append(made.count + passed + (sequence - before & U32))
            passed += 1
            add(data[start - LENGTH_BYTES : start + 1] + _HOPS_LEFT[hops])
            add(data[start + 2 : position])
    stamped = sequence - before & U32
    made.sequence = sequence
    made.stamped += stamped
    made.count += stamped + passed
    return position


def restamp(crossing: Crossing, origin: int, stamp: Callable[[bytes], int]) -> Crossing:
    """Give what was just stamped with `origin` the key, origin << 32 | sequence, that `stamp(frame)` says."""
    data, position = bytearray(crossing.keep()), 0
    for _ in range(crossing.count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position)[0]
        if _ORIGIN.unpack_from(data, start + 4)[0] == origin:
            _KEY.pack_into(data, start + 4, stamp(bytes(data[start + ENVELOPE_BYTES : position])))
    return Crossing(bytes(data), crossing.count, crossing.given_bare, crossing.spent)


_HOPS_LEFT = b"\0", *(bytes((hops,)) for hops in range(HOPS_MAX))
_ONE_HOP_LESS = bytes(max(0, hops - 1) for hops in range(256))


def enveloped(data: bytes, start: int, stop: int, entry: Entry, stats: Stats) -> int:
    """The hops of an admissible envelope; -1 where the message may not enter, counted with its reason."""
    frame = start + ENVELOPE_BYTES
    if stop < frame + FRAME_BYTES_MIN or data[start] != MAGIC or data[start + 2] < MARK:
        stats.reject("malformed")
        return -1
    _, hops, length, origin, sequence = LAYOUT.unpack_from(data, start)
    tokens, size = _SIZES.unpack_from(data, frame + 1)
    inner = FRAME_BYTES_MIN + 4 * tokens + size
    if hops > HOPS_MAX or inner != stop - frame or length & LENGTH_MASK != inner or size > DATA_BYTES_MAX:
        stats.reject("malformed")
    elif origin == entry.origin:
        stats.reject("echo")
    elif entry.rules and not entry.rules.admit(data, frame):
        stats.reject("pattern")  # not remembered as seen: another side may admit it
    elif not entry.is_new(origin << 32 | sequence):
        stats.reject("duplicate")
    else:
        return int(hops)
    return -1


def strip(batch: Batch) -> Batch:
    """Enveloped messages without their envelopes."""
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


def unspent(crossing: Crossing, stats: Stats) -> Batch | None:
    """The messages that a trunk may take; those whose hops have run out are counted as dropped."""
    if not crossing.spent:
        return crossing
    stats.drop("hops", len(crossing.spent))
    data, length_at, position = crossing.keep(), LENGTH.unpack_from, 0
    parts: list[bytes] = []
    out = set(crossing.spent)
    for number in range(crossing.count):
        head = position
        position += LENGTH_BYTES + length_at(data, head)[0]
        if number not in out:
            parts.append(data[head:position])
    return Batch(b"".join(parts), len(parts)) if parts else None
