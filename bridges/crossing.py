"""Batches on their way through a bridge: what enters is judged and stamped, what leaves is cut to its side.

Hot loops over whole batches: a message is looked at where it lies and copied once. Inside a bridge that has
trunks every message has its envelope, whose hops are those left for the next appliance.
"""

from collections.abc import Callable
from struct import Struct

from bridges.rules import Rules
from bus.batch import LENGTH, LENGTH_BYTES, Batch
from bus.envelope import ENVELOPE_BYTES, HOPS_DEFAULT, LAYOUT, MAGIC
from bus.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, frame_bytes
from bus.hub import Stats

U32 = 0xFFFFFFFF
MARK = 0xF0  # in byte 2 of an envelope; no frame has it there (docs/wire/envelope.md)

_HEAD = Struct(">QBBHII")  # a batch's length and an envelope
_SIZES = Struct(">BH")  # of a frame: tokens, data bytes
_LENGTH_MARK = 0xF000


class Crossing(Batch):
    """Admitted messages inside the bridge: `data` as trunks take it, `bare()` as all others do.

    `spent` are the numbers of those that no trunk may take: their hops have run out.
    """

    __slots__ = ("_bare", "spent")

    def __init__(self, data: bytes, count: int, bare: Batch | None, spent: tuple[int, ...]) -> None:
        super().__init__(data, count)
        self._bare, self.spent = bare, spent

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


def only_frames(batch: Batch) -> bool:
    """Whether every message of `batch` is a plain frame; reads lengths and headers only."""
    data, position, length_at = batch.data, 0, LENGTH.unpack_from
    for _ in range(batch.count):
        length = length_at(data, position)[0]
        position += LENGTH_BYTES
        if not length or frame_bytes(data, position) != length:
            return False
        position += length
    return True


def admit(batch: Batch, entry: Entry, stats: Stats) -> Batch | None:
    """The frames that may enter a bridge without trunks, bare; the rest is counted as rejected.

    Whole runs of admitted messages are copied at once, and the very batch is returned when all may pass.
    """
    data, length_at, sizes_at = batch.keep(), LENGTH.unpack_from, _SIZES.unpack_from
    heads, tokens_min, more = entry.rules.heads, entry.rules.tokens_min, entry.rules.more
    parts: list[bytes] = []
    count = position = run = 0
    for _ in range(batch.count):
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
                    count += 1
                    continue
                stats.reject("pattern")
            elif _enveloped(data, start, position, entry, stats) >= 0:
                parts += data[run:head], LENGTH.pack(length - ENVELOPE_BYTES)
                run = start + ENVELOPE_BYTES
                count += 1
                continue
        else:
            stats.reject("malformed")
        parts.append(data[run:head])
        run = position
    if not run:
        return batch if count else None
    parts.append(data[run:position])
    return Batch(b"".join(parts), count) if count else None


def admit_stamped(batch: Batch, entry: Entry, sequence: int, stats: Stats) -> tuple[Crossing | None, int]:
    """The messages that may enter, each with its envelope, and the last sequence number used."""
    data, origin = batch.keep(), entry.origin
    heads, tokens_min, more = entry.rules.heads, entry.rules.tokens_min, entry.rules.more
    length_at, sizes_at, head_of = LENGTH.unpack_from, _SIZES.unpack_from, _HEAD.pack
    parts: list[bytes] = []
    add = parts.append
    spent: list[int] = []
    stamped = position = 0
    for _ in range(batch.count):
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
            stamped += 1
            add(
                head_of(length + ENVELOPE_BYTES, MAGIC, HOPS_DEFAULT, _LENGTH_MARK | length, origin, sequence)
            )
            add(data[start:position])
        elif (hops := _enveloped(data, start, position, entry, stats)) >= 0:
            if not hops:
                spent.append(len(parts) // 2)
            add(data[start - LENGTH_BYTES : start + 1] + _HOPS_LEFT[hops])
            add(data[start + 2 : position])
    count = len(parts) // 2
    if not count:
        return None, sequence
    bare = batch if stamped == batch.count else None
    return Crossing(b"".join(parts), count, bare, tuple(spent)), sequence


_HOPS_LEFT = b"\0", *(bytes((hops,)) for hops in range(15))


def _enveloped(data: bytes, start: int, stop: int, entry: Entry, stats: Stats) -> int:
    """The hops of an admissible envelope; -1 where the message may not enter, counted with its reason."""
    frame = start + ENVELOPE_BYTES
    if stop < frame + FRAME_BYTES_MIN or data[start] != MAGIC or data[start + 2] < MARK:
        stats.reject("malformed")
        return -1
    _, hops, length, origin, sequence = LAYOUT.unpack_from(data, start)
    tokens, size = _SIZES.unpack_from(data, frame + 1)
    inner = FRAME_BYTES_MIN + 4 * tokens + size
    if hops > 15 or inner != stop - frame or length & 0xFFF != inner or size > DATA_BYTES_MAX:
        stats.reject("malformed")
    elif origin == entry.origin:
        stats.reject("echo")
    elif not entry.is_new(origin << 32 | sequence):
        stats.reject("duplicate")
    elif entry.rules and not entry.rules.admit(data, frame):
        stats.reject("pattern")
    else:
        return int(hops)
    return -1


def strip(batch: Batch) -> Batch:
    """Enveloped messages without their envelopes."""
    data, length_at, length_of, position = batch.keep(), LENGTH.unpack_from, LENGTH.pack, 0
    parts: list[bytes] = []
    add = parts.append
    for _ in range(batch.count):
        length = length_at(data, position)[0]
        start = position + LENGTH_BYTES + ENVELOPE_BYTES
        position += LENGTH_BYTES + length
        add(length_of(length - ENVELOPE_BYTES))
        add(data[start:position])
    return Batch(b"".join(parts), batch.count)


def select(batch: Batch, skip: int, rules: Rules, stats: Stats) -> Batch | None:
    """The messages whose frame, `skip` bytes in, passes `rules`; the rest is counted as dropped."""
    data, length_at, admit = batch.keep(), LENGTH.unpack_from, rules.admit
    parts: list[bytes] = []
    kept = position = run = 0
    for _ in range(batch.count):
        head = position
        position += LENGTH_BYTES + length_at(data, head)[0]
        if admit(data, head + LENGTH_BYTES + skip):
            kept += 1
        else:
            parts.append(data[run:head])
            run = position
    if kept == batch.count:
        return batch
    stats.drop("pattern", batch.count - kept)
    parts.append(data[run:position])
    return Batch(b"".join(parts), kept) if kept else None


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
