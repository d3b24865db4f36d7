"""Runs: messages of one layout in a row, as sensors send them, judged and cut without a step of Python each.

Columns of a batch, strided slices through equal messages, are compared in C; whether a message may pass
depends on its first tokens alone and is remembered for them (`bridges.rules.Verdicts`). All other messages
are judged one after the other, by functions of `bridges.ingress` and `bridges.forms`: see `scan`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, compress
from struct import Struct
from typing import NamedTuple, TypeVarTuple

from bridges.rules import Rules
from bus.wire.batch import LENGTH, LENGTH_BYTES, LENGTH_OFFSETS, alike, even
from bus.wire.envelope import (
    ENVELOPE_BYTES,
    HOPS_DEFAULT,
    LENGTH_MARK,
    MAGIC,
    is_enveloped,
    layout,
    message_bytes,
)
from bus.wire.frame import FRAME_BYTES_MIN

Ts = TypeVarTuple("Ts")

RUN_MIN = 16  # equal messages in a row before looking at columns pays
WALK = 256  # other messages between two attempts to find a run
_CHUNK = 16  # messages cut by one structure; few are left over, and it bounds what the cache holds
_U32 = 0xFFFFFFFF
HEAD = Struct(">QBBHII")  # a batch's length and an envelope
_BATCH_BYTES_MAX = 1 << 24
# a whole message whose length differs in the upper bytes alone is longer than `_BATCH_BYTES_MAX`
_LENGTH = LENGTH_OFFSETS[:3]
_LOW = bytes(range(256))


class Run(NamedTuple):
    """A run of `messages` of one layout from `start` of a batch on, `stride` bytes apart.

    Frames begin `frame` bytes in, counted from the length before a message.
    """

    start: int
    messages: int
    stride: int
    frame: int

    @property
    def stop(self) -> int:
        return self.start + self.messages * self.stride

    @property
    def enveloped(self) -> bool:
        return self.frame > LENGTH_BYTES


def find(data: bytes, start: int, left: int) -> Run | None:
    """Return the run of legal messages at `start`, at most `left` long; None if there is none worth it.

    `data` is a whole batch.
    """
    if len(data) >= _BATCH_BYTES_MAX:
        return None
    stride = LENGTH.unpack_from(data, start)[0] + LENGTH_BYTES
    count = min((len(data) - start) // stride, left)
    body, stop = start + LENGTH_BYTES, start + stride
    if count < RUN_MIN or stop == body or message_bytes(data, body, stop) != stop - body:
        return None  # empty messages are as long as they say, but no frames
    frame = LENGTH_BYTES + (ENVELOPE_BYTES if is_enveloped(data, body, stop) else 0)
    count = _alike(data, start, stride, count, frame > LENGTH_BYTES)
    return Run(start, count, stride, frame) if count >= RUN_MIN else None


def _alike(data: bytes, start: int, stride: int, count: int, enveloped: bool) -> int:
    """Count the messages from `start` on, at most `count`, that have the first one's length and layout."""
    body = start + LENGTH_BYTES
    is_even = even(data, start + LENGTH_BYTES // 2, stride, count)  # what differs of it, and a frame's head
    if not is_even:
        if alike(data, start, stride, RUN_MIN, _LENGTH) < RUN_MIN:
            return 0
        count = alike(data, start, stride, count, _LENGTH)
    return count if is_even and not enveloped else alike(data, body, stride, count, layout(data, body))


def column(data: bytes, run: Run, offset: int) -> bytes:
    """Return, of each message, the byte that lies `offset` in, counted from its length on."""
    at = run.start + offset
    return data[at : at + (run.messages - 1) * run.stride + 1 : run.stride]


@lru_cache(maxsize=64)
def _cutter(stride: int, offset: int, size: int) -> Struct:
    return Struct(f"{offset}x{size}s{stride - offset - size}x" * _CHUNK)


def cut(data: bytes, run: Run, offset: int, size: int) -> list[bytes]:
    """Return, of each message, the `size` bytes that lie `offset` in, counted from its length on."""
    whole = run.start + run.messages // _CHUNK * _CHUNK * run.stride
    chunks = _cutter(run.stride, offset, size).iter_unpack(memoryview(data)[run.start : whole])
    found: list[bytes] = list(chain.from_iterable(chunks))
    found += [data[at + offset : at + offset + size] for at in range(whole, run.stop, run.stride)]
    return found


def numbers(data: bytes, run: Run, offset: int) -> list[int]:
    """Return, of each message, the u64 that lies `offset` in."""
    one = Struct(f">{offset}xQ{run.stride - offset - 8}x")
    return [number for (number,) in one.iter_unpack(memoryview(data)[run.start : run.stop])]


def verdicts(data: bytes, run: Run, rules: Rules) -> Sequence[int] | None:
    """Return, for each message of a run, 1 if it passes, else 0; None if all do."""
    if not rules:
        return None
    tokens = data[run.start + run.frame + 1]
    if len(rules.heads) == 1 and not rules.more and tokens >= rules.tokens_min:
        return beginning(data, run, rules.heads[0])
    keys = cut(data, run, run.frame + FRAME_BYTES_MIN, min(rules.reach, 4 * tokens))
    found = list(map(rules.verdicts.__getitem__, keys))
    return None if all(found) else found


@lru_cache(maxsize=256)
def _only(byte: int) -> bytes:
    return bytes(other == byte for other in range(256))


def beginning(data: bytes, run: Run, head: bytes) -> bytes | None:
    """Return 1 where tokens begin with `head`, else 0, by a column for each byte; None if all do."""
    mask = -1
    for offset, byte in enumerate(head, run.frame + FRAME_BYTES_MIN):
        found = column(data, run, offset)
        if found.count(byte) < run.messages:
            mask &= int.from_bytes(found.translate(_only(byte)))
    return None if mask == -1 else mask.to_bytes(run.messages)


def cut_admitted(data: bytes, run: Run, passes: Sequence[int] | None, offset: int) -> list[bytes]:
    """Return the messages of a run that pass, each from `offset` on."""
    found = cut(data, run, offset, run.stride - offset)
    return found if passes is None else list(compress(found, passes))


class Kept:
    """The messages of a batch that were let through: `parts`, and uncopied bytes from `begun` on.

    `opaque` are the numbers of the messages that are no frames.
    """

    __slots__ = ("begun", "count", "opaque", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.opaque: list[int] = []
        self.count = self.begun = 0

    def joined(self, data: bytes, stop: int) -> bytes:
        """Return all kept messages of `data` up to `stop`, where the batch ends."""
        self.parts.append(data[self.begun : stop])
        return b"".join(self.parts)


def keep_run(data: bytes, run: Run, rules: Rules, kept: Kept) -> int:
    """Keep the messages of a run that pass; return the number of the others."""
    passes = verdicts(data, run, rules)
    if passes is None:
        kept.count += run.messages
        return 0
    found = cut_admitted(data, run, passes, 0)
    kept.parts += data[kept.begun : run.start], *found
    kept.count += len(found)
    kept.begun = run.stop
    return run.messages - len(found)


def scan(
    data: bytes,
    count: int,
    take_run: Callable[[bytes, Run, *Ts], bool],
    take_each: Callable[[bytes, int, int, *Ts], int],
    *state: *Ts,
) -> int:
    """Go over the `count` messages of a batch, runs at once and all others one by one. Return where it ends.

    `take_run(data, run, *state)` returns whether it took the run; otherwise its messages are taken one by
    one, too. `take_each(data, position, messages, *state)` takes a number of messages and returns where the
    next one begins; the scan ends when it returns 0. Both are free functions: a closure would cost a lone
    message dearly.
    """
    position, left = 0, count
    while left:
        run = find(data, position, left) if left >= RUN_MIN else None
        if run is not None and take_run(data, run, *state):
            position, left = run.stop, left - run.messages
            continue
        some = min(left, WALK)
        position, left = take_each(data, position, some, *state), left - some
        if not position:
            break
    return position


def stamp(frames: list[bytes], origin: int, sequence: int, parts: list[bytes | bytearray]) -> int:
    """Append `frames`, of one size, to `parts` with lengths and envelopes; return the last sequence number.

    The numbers go up by one, so 256 of them at most share all but their last byte: these are joined by one
    head, and their last bytes are put into it by one strided slice.
    """
    size, done = len(frames[0]), 0
    while done < len(frames):
        first = (sequence + 1) & _U32
        low = first & 0xFF
        some = frames[done : done + 256 - low]
        head = HEAD.pack(size + ENVELOPE_BYTES, MAGIC, HOPS_DEFAULT, LENGTH_MARK | size, origin, first)
        made = bytearray(head).join((b"", *some))
        made[HEAD.size - 1 :: HEAD.size + size] = _LOW[low : low + len(some)]
        parts.append(made)
        done += len(some)
        sequence = first + len(some) - 1
    return sequence
