"""Loops of plain links, noticed: how often the same message crosses a hub by two pipes.

A bus message has no hop count, so a ring of plain links carries it for ever (docs/policies.md). The watch
counts how often the first message of each batch comes within a second. That proves nothing, since equal
readings are legal: it only names a suspect, which `bus/watch/trials.py` examines. Pure: time and chance are
arguments.
"""

import zlib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from bus.watch.canaries import is_canary
from bus.wire.batch import Buffer

RETURNS = 32  # of one content in a generation, by two ways: suspicious, or up to half as many again by chance
SPREAD = 1.5
REPEATS = 5000  # batches by one way: a loop may turn one way only
AGAIN = 3  # copies of what was in a proved ring, by two ways, for PAUSE_S; RETURNS by one
BUSY = 3  # of one content by two ways: from then on more than the first message of a batch is counted
SAMPLE = 256  # messages of such a batch
GENERATION_S = 1.5
CONTENTS = 4096  # told apart in one generation
PAUSE_S, PAUSE_MAX_S = 5.0, 640.0  # that an acquittal lasts; doubled each time
GROWTH = 4  # an acquittal covers so many times as many copies a second as there were
SHORT_S = 0.01  # a shorter time is no measure of a rate
TOLERANCE_MAX = 256
ACQUITTED = 64  # contents remembered

Way = TypeVar("Way")


class Content(Generic[Way]):
    """One content in one generation: how often it came since `since_s`, and how often by which ways.

    `ways` is None while it has come by one way only. `rate` is of copies a second, when it was suspected.
    """

    __slots__ = ("by", "count", "digest", "due", "rate", "since_s", "ways")

    def __init__(self, digest: int, by: Way, now: float) -> None:
        self.digest, self.by, self.count, self.since_s = digest, by, 1, now
        self.ways: dict[Way, int] | None = None
        self.due = self.rate = 0.0


First = tuple[Way, float]
"""The way by which a content came, and when, while it has come once: most never come again."""
Contents = dict[int, Content[Way] | First[Way]]


def _since_s(known: Content[Way] | First[Way]) -> float:
    return known[1] if isinstance(known, tuple) else known.since_s


class LoopWatch(Generic[Way]):
    """The watch on what crosses one hub: call `look` for each batch.

    `jitter(low, high)` returns a random number between both: hubs of one ring must not suspect at once.
    `is_busy`: the last message that `look` saw comes so often that the rest of its batch is to be seen too.
    """

    def __init__(self, jitter: Callable[[float, float], float]) -> None:
        self._jitter = jitter
        self._contents: Contents[Way] = {}
        self._before: Contents[Way] = {}
        self._last: Content[Way] | None = None
        self._levels: dict[int, tuple[float, bool]] = {}
        self._tolerance = 1
        self._pause_s = PAUSE_S
        self._returns, self._repeats = RETURNS, REPEATS
        self._since_s = self._rest_s = float("-inf")

    @property
    def is_busy(self) -> bool:
        last = self._last
        return last is not None and last.ways is not None and last.count >= BUSY

    def look(self, message: Buffer, by: Way, now: float, copies: int = 1) -> Content[Way] | None:
        """Note that `message` came by a way, `copies` times. Return its content if that is suspicious.

        A canary is at the second way: in a mesh its copies would multiply.
        """
        if now - self._since_s >= GENERATION_S or len(self._contents) >= CONTENTS:
            self._before, self._contents, self._since_s = self._contents, {}, now
        digest = zlib.crc32(message)
        known = self._contents.get(digest)
        if known is None:
            self._last, self._contents[digest] = None, (by, now)
            return None
        if isinstance(known, tuple):
            known = self._contents[digest] = Content(digest, *known)
        content = self._last = known
        if content.ways is None:
            if content.by is by:
                content.count += 1 if copies == 1 or self._repeats == REPEATS else copies
                return self._judged(content, now) if content.count >= self._repeats else None
            content.ways = {content.by: content.count}
            if is_canary(message):
                return content
        content.ways[by] = content.ways.get(by, 0) + copies
        content.count += copies
        return self._judged(content, now) if content.count >= self._returns else None

    def look_on(self, messages: Iterable[Buffer], by: Way, now: float) -> Content[Way] | None:
        """Note more messages of a batch. Return the first content that is suspicious."""
        found = (self.look(message, by, now) for message in messages)
        return next((content for content in found if content is not None), None)

    def _judged(self, content: Content[Way], now: float) -> Content[Way] | None:
        if now >= self._rest_s:
            self._begin()
        level, _ = self._levels.get(content.digest, (0.0, False))
        if not level:
            if not content.due:
                low = RETURNS if content.ways else REPEATS
                content.due = self._jitter(low, SPREAD * low) * self._tolerance
            level = content.due
        if content.count < (level if content.ways else max(level, RETURNS)):
            return None
        content.rate = content.count / max(now - content.since_s, SHORT_S)
        return content

    def span_s(self, content: Content[Way], now: float) -> float:
        """Return about how long so many copies of a suspect took as make it suspicious."""
        before = self._before.get(content.digest)
        since_s = content.since_s if before is None else _since_s(before)
        return min(now - since_s, SPREAD * RETURNS / content.rate)

    def rates(self, content: Content[Way], now: float) -> dict[Way, float]:
        """Return how often a content has come by each way, in copies a second."""
        time_s = max(now - content.since_s, SHORT_S)
        counts = content.ways or {content.by: content.count}
        return {way: count / time_s for way, count in counts.items()}

    def is_it(self, content: Content[Way], message: Buffer) -> bool:
        """Tell whether a message has this content."""
        return zlib.crc32(message) == content.digest

    def was_legal(self, content: Content[Way]) -> bool:
        """Tell whether a content was acquitted lately, when it came less often."""
        return self._levels.get(content.digest, (0.0, False))[1]

    def was_tried(self, content: Content[Way]) -> bool:
        """Tell whether a content was acquitted lately, for whatever reason."""
        return content.digest in self._levels

    def acquit(self, content: Content[Way], now: float, is_sure: bool, asked: bool = False) -> None:
        """Suspect a content again only when it comes far more often.

        If it `is_sure` that there was no ring, contents that come a little more often are not suspected
        either, for a while that doubles each time.
        """
        level = 2.0 * content.count
        if is_sure and (asked or self.was_legal(content)):
            level = max(level, GROWTH * content.rate * GENERATION_S)
        self._levels.pop(content.digest, None)
        self._levels[content.digest] = level, is_sure
        self._bound()
        if is_sure:
            self._tolerance = min(2 * self._tolerance, TOLERANCE_MAX)
            self._rest_s = now + self._pause_s
            self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
        else:
            self._rest_s = max(self._rest_s, now + PAUSE_S)

    def ignore(self, content: Content[Way]) -> None:
        """Count a content anew, as nothing can be found out about it."""
        content.count = 0

    def prove(self, content: Content[Way] | None, now: float) -> None:
        """Note that a ring was proved, and begin anew.

        There may be more rings, or copies that still go round: of what was in one, few more are suspicious.
        """
        self._contents, self._before, self._last = {}, {}, None
        proved = [digest for digest, (level, _) in self._levels.items() if level == AGAIN]
        self._begin()
        self._pause_s, self._rest_s = PAUSE_S, now + PAUSE_S
        self._returns, self._repeats = AGAIN, RETURNS
        if content is not None:
            proved.append(content.digest)
        for digest in proved:
            self._levels[digest] = AGAIN, False
        self._bound()

    def _begin(self) -> None:
        self._levels.clear()
        self._tolerance = 1
        self._returns, self._repeats = RETURNS, REPEATS

    def _bound(self) -> None:
        while len(self._levels) > ACQUITTED:
            self._levels.pop(next(iter(self._levels)))
