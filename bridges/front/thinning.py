"""Frames that do not enter because they say nothing new, or come too often: `unchanged` and `limits`.

Pure: time is an argument, in seconds. Envelopes are ignored: a frame is judged by what it says.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf

from bridges.forms import without
from bridges.front.rewriting import Refuse, frame_at
from bridges.front.settings import Limit
from bridges.rules import prefixes
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.frame import FRAME_BYTES_MIN, PUB

UNCHANGED = "unchanged"
"""The reason for a frame with the data of the last one of its pattern."""
LIMIT = "limit"
"""The reason for a frame above the limit of its pattern."""
PATTERNS = 16_384  # whose last data are remembered, at most
DATA_BYTES = 4 << 20  # of them together
VERDICTS = 4096
_PARTS = 64  # of the time of a limit, in which frames are counted together
_JITTER = 0.95  # a steady sender at the limit loses nothing because it is a little early
Judge = Callable[[bytes, int, int, float], bool]
"""Tells whether the frame in these bytes, from one place to another, may pass at this time."""


def passing(batch: Batch, judge: Judge, now_s: float, reason: str, refuse: Refuse) -> Batch | None:
    """Return the messages of a batch that `judge` lets pass; `refuse` counts the others by `reason`."""
    data = batch.keep()
    gone = [n for n, at, stop in _frames(data, batch.count) if not judge(data, at, stop, now_s)]
    if not gone:
        return batch
    refuse(reason, len(gone))
    return without(batch, gone) if len(gone) < batch.count else None


def _frames(data: bytes, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number of each message that has a frame, and where that begins and ends."""
    position = 0
    for number in range(count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, position)[0]
        at = frame_at(data, start, position)
        if at >= 0:
            yield number, at, position


class Memory:
    """The last data of each pattern, and when a frame of it last passed. Bounded in patterns and bytes.

    A pattern that is forgotten, because others were heard since, is as one that was never heard: its next
    frame passes.
    """

    def __init__(self, refresh_s: float, patterns: int = PATTERNS, data_bytes: int = DATA_BYTES) -> None:
        self.refresh_s, self._patterns, self._data_bytes = refresh_s, patterns, data_bytes
        self._last: OrderedDict[bytes, tuple[bytes, float]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._last)

    def is_news(self, data: bytes, at: int, stop: int, now_s: float) -> bool:
        """Tell whether a frame has other data than the last of its pattern, or it is time for one again.

        Frames that publish nothing are always news.
        """
        if not data[at] & PUB:
            return True
        begins = at + FRAME_BYTES_MIN + 4 * data[at + 1]
        key, said = data[at : at + 2] + data[at + FRAME_BYTES_MIN : begins], data[begins:stop]
        before, passed_s = self._last.get(key, (b"", -inf))
        if said == before and now_s - passed_s < self.refresh_s:
            self._last.move_to_end(key)
            return False
        self._keep(key, said, now_s)
        return True

    def _keep(self, key: bytes, said: bytes, now_s: float) -> None:
        old = self._last.pop(key, None)
        self._size += len(said) - (0 if old is None else len(old[0]))
        self._last[key] = said, now_s
        while len(self._last) > self._patterns or self._size > self._data_bytes:
            self._size -= len(self._last.popitem(last=False)[1][0])


class _Window:
    """The count of frames that passed lately: at most as many as one limit allows, whenever one begins to
    count. The time is a second, or longer where less than a frame a second may pass."""

    def __init__(self, frames_per_s: float) -> None:
        self._most = ceil(frames_per_s)
        self._time_s = self._most / frames_per_s * _JITTER
        self._parts: deque[list[float]] = deque()  # when each begins, and its frames
        self._count = 0

    def take(self, now_s: float) -> bool:
        """Count a frame, and return True, if one more may pass at `now_s`."""
        parts = self._parts
        while parts and parts[0][0] + self._time_s <= now_s:
            self._count -= int(parts.popleft()[1])
        if self._count >= self._most:
            return False
        self._count += 1
        if parts and now_s < parts[-1][0] + self._time_s / _PARTS:
            parts[-1][1] += 1
        else:
            parts.append([now_s, 1])
        return True


class Limits:
    """Limits in the order of the file: the first whose pattern a frame has is the one that counts."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._heads = prefixes(limit.pattern for limit in limits)
        self._windows = [_Window(limit.frames_per_s) for limit in limits]
        self._reach = max(map(len, self._heads), default=0)
        self._found: dict[bytes, _Window | None] = {}

    def admits(self, data: bytes, at: int, _: int, now_s: float) -> bool:
        """Tell whether a frame may pass at `now_s`, and count it if it does."""
        begins = at + FRAME_BYTES_MIN
        key = data[begins : begins + min(self._reach, 4 * data[at + 1])]
        try:
            window = self._found[key]
        except KeyError:
            window = self._find(key)
        return window is None or window.take(now_s)

    def _find(self, key: bytes) -> _Window | None:
        if len(self._found) >= VERDICTS:
            self._found.clear()
        pairs = zip(self._heads, self._windows, strict=True)
        found = self._found[key] = next((one for head, one in pairs if key.startswith(head)), None)
        return found
