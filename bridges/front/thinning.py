"""Frames that do not enter because they say nothing new, or come too often: `unchanged` and `limits`.

Pure: time is an argument, in seconds. Envelopes are ignored: a frame is judged by what it says. Hot loops
over whole batches: a run of equal messages is judged by its columns (`bridges/runs.py`), others by a walk.
"""

from collections import Counter, deque
from collections.abc import Sequence
from math import ceil
from struct import Struct
from typing import NamedTuple, Protocol

from bridges.front.rewriting import Refuse, frame_at
from bridges.front.settings import Limit
from bridges.rules import prefixes
from bridges.runs import Kept, Run, beginning, column, cut, cut_admitted, scan
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, PUB

UNCHANGED = "unchanged"
"""The reason for a frame with the data of the last one of its pattern."""
LIMIT = "limit"
"""The reason for a frame above the limit of its pattern."""
PATTERNS = 16_384  # whose last data are remembered at least, and up to twice as many,
MEMORY_BYTES = 4 << 20  # unless patterns and data take more together
VERDICTS = 4096
_HEAD = Struct(">QBBH")  # of a message that is a frame: its length, and the header of the frame
_PARTS = 64  # of the time of a limit, in which frames are counted together
_JITTER = 0.95  # a steady sender at the limit loses nothing because it is a little early
Passes = Sequence[int] | None
"""A number for each frame: 1 if it passes, else 0. None if all do."""


class Walk(NamedTuple):
    """The frames of a stretch of a batch: where each message begins, the tokens of its frame, and its data.

    `kinds` has the kind of each frame that does other things than publish.
    """

    heads: list[int]
    tokens: list[bytes]
    data: list[bytes]
    kinds: dict[int, int]


class Judge(Protocol):
    """A judge of frames: which of them may pass at a time. Some runs have to be walked instead."""

    def of_run(self, data: bytes, run: Run, now_s: float) -> Passes:
        """Judge the frames of a run. Raises LookupError for a run that has to be walked."""

    def of_each(self, walk: Walk, now_s: float) -> Passes:
        """Judge the frames of a stretch."""


def passing(batch: Batch, judge: Judge, now_s: float, reason: str, refuse: Refuse) -> Batch | None:
    """Return the messages of a batch that `judge` lets pass; `refuse` counts the others by `reason`."""
    data, kept = batch.keep(), Kept()
    end = scan(data, batch.count, _judge_run, _judge_each, judge, now_s, kept)
    if kept.count == batch.count:
        return batch
    refuse(reason, batch.count - kept.count)
    return Batch(kept.joined(data, end), kept.count) if kept.count else None


def _judge_run(data: bytes, run: Run, judge: Judge, now_s: float, kept: Kept) -> bool:
    try:
        passes = judge.of_run(data, run, now_s)
    except LookupError:
        return False
    if passes is None:
        kept.count += run.messages
        return True
    found = cut_admitted(data, run, passes, 0) if any(passes) else ()
    kept.parts += data[kept.begun : run.start], *found
    kept.count += len(found)
    kept.begun = run.stop
    return True


def _judge_each(data: bytes, position: int, count: int, judge: Judge, now_s: float, kept: Kept) -> int:
    walk, stop = _walk(data, position, count)
    passes = judge.of_each(walk, now_s)
    kept.count += count
    if passes is not None:
        gone = [head for head, passed in zip(walk.heads, passes, strict=True) if not passed]
        kept.count -= len(gone)
        for head in gone:
            kept.parts.append(data[kept.begun : head])
            kept.begun = head + LENGTH_BYTES + LENGTH.unpack_from(data, head)[0]
    return stop


def _walk(data: bytes, position: int, count: int) -> tuple[Walk, int]:
    """Return the frames among a number of messages, and where the message behind them begins."""
    head_at, last = _HEAD.unpack_from, len(data) - _HEAD.size
    heads, tokens, said, kinds = walk = Walk([], [], [], {})
    for _ in range(count):
        head, at = position, position + LENGTH_BYTES
        if head > last:  # a message that is too short for a frame
            position = at + LENGTH.unpack_from(data, head)[0]
            continue
        length, kind, number, size = head_at(data, head)
        position = at + length
        # an envelope has a size above that of all data, so most messages take one look
        if FRAME_BYTES_MIN + 4 * number + size != length or size > DATA_BYTES_MAX:
            at = frame_at(data, at, position)
            if at < 0:
                continue
            kind, number = data[at], data[at + 1]
        if kind != PUB:
            kinds[len(heads)] = kind
        begins = at + FRAME_BYTES_MIN + 4 * number
        heads.append(head)
        tokens.append(data[at + FRAME_BYTES_MIN : begins])
        said.append(data[begins:position])
    return walk, position


def _published(walk: Walk) -> tuple[list[int], list[bytes]]:
    """Return the numbers of the frames that publish, and under which keys they are remembered.

    A key of tokens alone has four bytes for each, so none is as one with another kind.
    """
    keys, kinds = walk.tokens, walk.kinds
    numbers = [n for n in range(len(keys)) if kinds.get(n, PUB) & PUB]
    return numbers, [keys[n] + bytes((kinds[n],)) if n in kinds else keys[n] for n in numbers]


class Memory:
    """The last data of each pattern, and when a frame of it last passed. Bounded in patterns and bytes.

    A pattern that is forgotten, because many others were heard since, is as one that was never heard: its
    next frame passes. Two halves bound it: what is heard again moves from the old to the young one, and when
    that is full, it takes the place of the old one.
    """

    def __init__(self, refresh_s: float, patterns: int = PATTERNS, memory_bytes: int = MEMORY_BYTES) -> None:
        self.refresh_s, self._patterns, self._bytes = refresh_s, patterns, memory_bytes
        self._young: dict[bytes, tuple[bytes, float]] = {}
        self._old: dict[bytes, tuple[bytes, float]] = {}
        self._size = 0  # of the young

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def of_run(self, data: bytes, run: Run, now_s: float) -> Passes:
        """Judge the frames of a run. Raises LookupError if some of them do other things than publish."""
        kinds, tokens = column(data, run, run.frame), 4 * data[run.start + run.frame + 1]
        if kinds.count(PUB) < run.messages:
            raise LookupError
        begins = run.frame + FRAME_BYTES_MIN
        keys = cut(data, run, begins, tokens)
        return self._news(keys, cut(data, run, begins + tokens, run.stride - begins - tokens), now_s)

    def of_each(self, walk: Walk, now_s: float) -> Passes:
        """Judge the frames of a stretch. Those that publish nothing always pass."""
        if not walk.kinds:
            return self._news(walk.tokens, walk.data, now_s)
        numbers, keys = _published(walk)
        found = self._news(keys, [walk.data[n] for n in numbers], now_s) or ()
        gone = {n for n, passed in zip(numbers, found, strict=False) if not passed}
        return [n not in gone for n in range(len(walk.data))]

    def forget(self, gone: Batch) -> None:
        """Forget the patterns of frames that passed here, and then nobody heard."""
        for key in _published(_walk(gone.keep(), 0, gone.count)[0])[1]:
            self._old.pop(key, None)  # where the young one became full within a batch
            before = self._young.pop(key, None)
            if before is not None:
                self._size -= len(key) + len(before[0])

    def _news(self, keys: list[bytes], said: list[bytes], now_s: float) -> Passes:
        """Tell which frames have other data than the last of their pattern, or are due again."""
        young, refresh_s, gone = self._young, self.refresh_s, list[int]()
        for n, (key, data) in enumerate(zip(keys, said, strict=True)):
            before = young.get(key)
            if before is None:
                before = self._recall(key)
                young = self._young
            if before is None:
                self._size += len(key) + len(data)
            elif before[0] != data:
                self._size += len(data) - len(before[0])
            elif now_s - before[1] < refresh_s:
                gone.append(n)
                continue
            young[key] = data, now_s
        if not gone:
            return None
        if len(gone) == len(keys):
            return bytes(len(keys))
        passes = bytearray(b"\1") * len(keys)
        for n in gone:
            passes[n] = 0
        return passes

    def _recall(self, key: bytes) -> tuple[bytes, float] | None:
        """Return what is known of a pattern that is not among the young, and move it there."""
        if len(self._young) >= self._patterns or self._size >= self._bytes:
            self._old, self._young, self._size = self._young, {}, 0
        before = self._old.pop(key, None)
        if before is not None:
            self._young[key] = before
            self._size += len(key) + len(before[0])
        return before


class _Window:
    """The count of frames that passed lately: at most as many as one limit allows, whenever one begins to
    count. The time is a second, or longer where less than a frame a second may pass."""

    def __init__(self, frames_per_s: float) -> None:
        self._most = ceil(frames_per_s)
        self._time_s = self._most / frames_per_s * _JITTER
        self._parts: deque[list[float]] = deque()  # when each begins, and its frames
        self._count = 0

    def take(self, frames: int, now_s: float) -> int:
        """Count frames at `now_s`, as many as may pass, and return their number."""
        parts = self._parts
        while parts and parts[0][0] + self._time_s <= now_s:
            self._count -= int(parts.popleft()[1])
        taken = min(frames, self._most - self._count)
        if not taken:
            return 0
        self._count += taken
        if parts and now_s < parts[-1][0] + self._time_s / _PARTS:
            parts[-1][1] += taken
        else:
            parts.append([now_s, taken])
        return taken


class _Found(dict[bytes, _Window | None]):
    """The windows by the first bytes of tokens, as many as decide. Bounded."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        super().__init__()
        heads = prefixes(limit.pattern for limit in limits)
        self._windows = [
            (head, _Window(limit.frames_per_s)) for head, limit in zip(heads, limits, strict=True)
        ]
        self.reach = max(map(len, heads), default=0)

    def __missing__(self, key: bytes) -> _Window | None:
        if len(self) >= VERDICTS:
            self.clear()
        found = self[key] = next((one for head, one in self._windows if key.startswith(head)), None)
        return found


class Limits:
    """Limits in the order of the file: the first whose pattern a frame has is the one that counts."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._found = _Found(limits)

    def of_run(self, data: bytes, run: Run, now_s: float) -> Passes:
        """Judge the frames of a run, and count those that pass."""
        at = run.start + run.frame
        size = min(self._found.reach, 4 * data[at + 1])
        head = data[at + FRAME_BYTES_MIN : at + FRAME_BYTES_MIN + size]
        if beginning(data, run, head) is not None:
            return self._counted(cut(data, run, run.frame + FRAME_BYTES_MIN, size), now_s)
        window, some = self._found[head], run.messages
        taken = some if window is None else window.take(some, now_s)
        return None if taken == some else b"\1" * taken + bytes(some - taken)

    def of_each(self, walk: Walk, now_s: float) -> Passes:
        """Judge the frames of a stretch, and count those that pass."""
        reach = self._found.reach
        return self._counted([key[:reach] for key in walk.tokens], now_s)

    def _counted(self, keys: list[bytes], now_s: float) -> Passes:
        windows = list(map(self._found.__getitem__, keys))
        wanted = Counter(windows)
        free = wanted.pop(None, 0)
        left = {window: window.take(some, now_s) for window, some in wanted.items() if window is not None}
        if left == wanted:
            return None
        if not free and not any(left.values()):
            return bytes(len(keys))
        passes = bytearray(b"\1") * len(keys)
        for n, window in enumerate(windows):
            if window is not None:
                passes[n] = left[window] > 0
                left[window] -= 1
        return passes
