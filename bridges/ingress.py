"""Ingress: messages that enter a bridge are judged, and stamped where the bridge has trunks.

Hot loops over whole batches: a message is judged where it lies and copied once. Inside a bridge that has
trunks every message has its envelope, whose hops are those left for the next appliance.
"""

from collections.abc import Sequence
from itertools import compress
from struct import Struct

from bridges.admission import BARE, SIZES, Admission, hops_of
from bridges.forms import EnvelopedBatch, MixedBatch
from bridges.handover.entrance import KeysOf
from bridges.runs import (
    HEAD,
    RUN_MIN,
    Kept,
    Run,
    column,
    cut,
    cut_admitted,
    keep_run,
    numbers,
    scan,
    stamp,
    verdicts,
)
from bus.ledger import Stats
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Frames
from bus.wire.envelope import (
    ENVELOPE_BYTES,
    HOPS_DEFAULT,
    HOPS_MAX,
    LENGTH_MARK,
    MAGIC,
    OPAQUE,
)
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN

_U32 = 0xFFFFFFFF
_ORIGIN, _KEY, _KEY_AT = Struct(">I"), Struct(">Q"), 4  # in an envelope: origin, and it with the sequence
_HOPS_LEFT = b"\0", *(bytes((hops,)) for hops in range(HOPS_MAX))
_ONE_HOP_LESS = bytes(max(0, hops - 1) for hops in range(256))


def only_frames(batch: Batch) -> bool:
    """Tell whether every message of `batch` is a plain frame, by lengths and headers only."""
    if type(batch) is Frames:
        return True
    count = batch.count
    if count < RUN_MIN:
        return not count or _frames_end(batch.keep(), 0, count) > 0
    return scan(batch.keep(), count, _is_plain, _frames_end) > 0


def _is_plain(_: bytes, run: Run) -> bool:
    return not run.enveloped


def _frames_end(data: bytes, position: int, count: int) -> int:
    """Return where the next message begins if these `count` are all plain frames; else 0."""
    length_at, sizes_at = LENGTH.unpack_from, SIZES.unpack_from
    for _ in range(count):
        start = position + LENGTH_BYTES
        length = length_at(data, position)[0]
        position = start + length
        if length < FRAME_BYTES_MIN:
            return 0
        tokens, size = sizes_at(data, start + 1)
        if length != FRAME_BYTES_MIN + 4 * tokens + size or size > DATA_BYTES_MAX:
            return 0
    return position


def admit_bare(batch: Batch, admission: Admission, stats: Stats) -> Batch | None:
    """Return the messages that may enter a bridge without trunks, bare; the rest is counted as rejected.

    Whole runs of admitted messages are copied at once, and the very batch is returned when all may pass.
    """
    data, kept = batch.keep(), Kept()
    end = scan(data, batch.count, _admit_run, _admit_each, admission, kept, stats)
    if not kept.begun and not kept.opaque:
        return batch if kept.count else None
    if kept.opaque:
        return MixedBatch(kept.joined(data, end), kept.count, tuple(kept.opaque))
    return Batch(kept.joined(data, end), kept.count) if kept.count else None


def _admit_run(data: bytes, run: Run, admission: Admission, kept: Kept, stats: Stats) -> bool:
    if run.enveloped:
        return False
    stats.reject("pattern", keep_run(data, run, admission.rules, kept))
    return True


def _admit_each(
    data: bytes, position: int, count: int, admission: Admission, kept: Kept, stats: Stats
) -> int:
    """Admit one message after the other; return where the next one begins."""
    length_at, sizes_at, parts, begun = LENGTH.unpack_from, SIZES.unpack_from, kept.parts, kept.begun
    heads, tokens_min, more = admission.rules.heads, admission.rules.tokens_min, admission.rules.more
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
                    and (not more or admission.rules.admit(data, start))
                ):
                    kept.count += 1
                    continue
                stats.reject("pattern")
                parts.append(data[begun:head])
                begun = position
                continue
        hops = hops_of(data, start, position, admission, stats)
        if hops > HOPS_MAX:
            kept.opaque.append(kept.count)
        if hops < 0:
            parts.append(data[begun:head])
            begun = position
            continue
        if hops != BARE:
            parts += data[begun:head], LENGTH.pack(length - ENVELOPE_BYTES)
            begun = start + ENVELOPE_BYTES
        kept.count += 1
    kept.begun = begun
    return position


class _Stamped:
    """Messages that `admit_stamped` has let through: `stamped` of `count` came without an envelope."""

    __slots__ = ("count", "opaque", "parts", "sequence", "spent", "stamped")

    def __init__(self, sequence: int) -> None:
        self.parts: list[bytes | bytearray] = []
        self.spent: list[int] = []
        self.opaque: list[int] = []
        self.sequence = sequence
        self.count = self.stamped = 0


def admit_stamped(
    batch: Batch,
    admission: Admission,
    sequence: int,
    stats: Stats,
    keys_of: KeysOf | None = None,
) -> tuple[EnvelopedBatch | None, int]:
    """Return the messages that may enter, each with its envelope, and the last sequence number used.

    `keys_of`, if given, says the stamps; else they count up.
    """
    data, made = batch.keep(), _Stamped(sequence)
    scan(data, batch.count, _take_run, _stamp_each, admission, made, stats)
    if not made.count:
        return None, made.sequence
    bare = batch if made.stamped == batch.count else None
    enveloped = b"".join(made.parts)
    if keys_of is not None:
        enveloped = _restamped(enveloped, made.count, admission.origin, keys_of)
    return EnvelopedBatch(enveloped, made.count, bare, tuple(made.spent), tuple(made.opaque)), made.sequence


def _take_run(data: bytes, run: Run, admission: Admission, made: _Stamped, stats: Stats) -> bool:
    return (_pass_run if run.enveloped else _stamp_run)(data, run, admission, made, stats)


def _stamp_run(data: bytes, run: Run, admission: Admission, made: _Stamped, stats: Stats) -> bool:
    frames = cut_admitted(data, run, verdicts(data, run, admission.rules), LENGTH_BYTES)
    stats.reject("pattern", run.messages - len(frames))
    if frames:
        made.sequence = stamp(frames, admission.origin, made.sequence, made.parts)
        made.stamped += len(frames)
        made.count += len(frames)
    return True


def _pass_run(data: bytes, run: Run, admission: Admission, made: _Stamped, stats: Stats) -> bool:
    """Admit a run that has envelopes already. Return False if some of it must be judged one by one."""
    hops = column(data, run, LENGTH_BYTES + 1)
    ours = admission.origin.to_bytes(4, "big")
    if max(hops) > HOPS_MAX or not min(hops) or ours in set(cut(data, run, LENGTH_BYTES + 4, 4)):
        return False
    keys, passes = numbers(data, run, LENGTH_BYTES + 4), verdicts(data, run, admission.rules)
    if passes is not None:
        keys = list(compress(keys, passes))
        stats.reject("pattern", run.messages - len(keys))
    new: list[int] = list(admission.are_new(keys))
    if not all(new):
        stats.reject("duplicate", new.count(False))
    if passes is not None:
        found = iter(new)
        new = [passes_on and next(found) for passes_on in passes]
    messages = bytearray(data[run.start : run.stop])
    messages[LENGTH_BYTES + 1 :: run.stride] = hops.translate(_ONE_HOP_LESS)
    _pass_on(bytes(messages), run, new, made)
    return True


def _pass_on(messages: bytes, run: Run, passes: Sequence[int], made: _Stamped) -> None:
    if not all(passes):
        messages = b"".join(cut_admitted(messages, run._replace(start=0), passes, 0))
    made.parts.append(messages)
    made.count += sum(passes)


def _stamp_each(
    data: bytes, position: int, count: int, admission: Admission, made: _Stamped, stats: Stats
) -> int:
    """Admit one message after the other; return where the next one begins."""
    origin, rules = admission.origin, admission.rules
    heads, tokens_min, more = rules.heads, rules.tokens_min, rules.more
    length_at, sizes_at, head_of, add = LENGTH.unpack_from, SIZES.unpack_from, HEAD.pack, made.parts.append
    sequence = before = made.sequence
    passed = 0
    for _ in range(count):
        start = position + LENGTH_BYTES
        length = length_at(data, position)[0]
        position = start + length
        if length >= FRAME_BYTES_MIN:
            tokens, size = sizes_at(data, start + 1)
            if length == FRAME_BYTES_MIN + 4 * tokens + size and size <= DATA_BYTES_MAX:
                if (
                    tokens < tokens_min
                    or not data.startswith(heads, start + FRAME_BYTES_MIN)
                    or (more and not rules.admit(data, start))
                ):
                    stats.reject("pattern")
                    continue
                sequence = (sequence + 1) & _U32
                add(
                    head_of(
                        length + ENVELOPE_BYTES, MAGIC, HOPS_DEFAULT, LENGTH_MARK | length, origin, sequence
                    )
                )
                add(data[start:position])
                continue
        hops = hops_of(data, start, position, admission, stats)
        if hops < 0:
            continue
        if hops > HOPS_MAX:
            made.opaque.append(made.count + passed + (sequence - before & _U32))
            if hops == BARE:
                sequence = (sequence + 1) & _U32
                add(head_of(length + ENVELOPE_BYTES, MAGIC, HOPS_DEFAULT, OPAQUE, origin, sequence))
                add(data[start:position])
                continue
            hops &= HOPS_MAX
        if not hops:
            made.spent.append(made.count + passed + (sequence - before & _U32))
        passed += 1
        add(data[start - LENGTH_BYTES : start + 1] + _HOPS_LEFT[hops])
        add(data[start + 2 : position])
    stamped = sequence - before & _U32
    made.sequence = sequence
    made.stamped += stamped
    made.count += stamped + passed
    return position


def _restamped(data: bytes, count: int, origin: int, keys_of: KeysOf) -> bytes:
    """Return messages with the keys that `keys_of(frames)` returns in those just stamped with `origin`."""
    made = bytearray(data)
    scan(data, count, _restamp_run, _restamp_each, made, origin, keys_of)
    return bytes(made)


def _restamp_run(data: bytes, run: Run, made: bytearray, origin: int, keys_of: KeysOf) -> bool:
    at = run.start + LENGTH_BYTES + _KEY_AT
    if cut(data, run, at - run.start, _ORIGIN.size).count(_ORIGIN.pack(origin)) < run.messages:
        return False
    keys = keys_of(cut(data, run, run.frame, run.stride - run.frame))
    packed = Struct(f">{run.messages}Q").pack(*keys)
    for place in range(_KEY.size):
        made[at + place : run.stop : run.stride] = packed[place :: _KEY.size]
    return True


def _restamp_each(
    data: bytes, position: int, count: int, made: bytearray, origin: int, keys_of: KeysOf
) -> int:
    places, frames = list[int](), list[bytes]()
    for _ in range(count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position)[0]
        if _ORIGIN.unpack_from(data, start + _KEY_AT)[0] == origin:
            places.append(start + _KEY_AT)
            frames.append(data[start + ENVELOPE_BYTES : position])
    for place, key in zip(places, keys_of(frames), strict=True):
        _KEY.pack_into(made, place, key)
    return position
