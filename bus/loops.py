"""Finding loops at run time, where messages have no envelope: a suspicion, and a canary that proves it.

A bus message has no hop count, so a ring of plain links carries it for ever (docs/loops.md). The watch counts
how often the first message of each batch comes back within a second. That alone proves nothing, since equal
readings are legal; so a canary goes out, and if it comes back there is a loop. Pure: time and chance are
arguments.
"""

import zlib
from collections.abc import Callable

from bus.wire.batch import Buffer
from bus.wire.frame import PUB, TOKENS_MAX, is_frame, pack, unpack
from bus.wire.pattern import token

RETURNS = 32  # of one content in a second, by two ways: suspicious
REPEATS = 5000  # batches by one way: equal readings come often, and a loop may turn one way only
URGENT = 128  # copies: it grows, so the canary goes out at once
QUARANTINE = 1000  # copies in a second, by two ways, from when on a suspect stays while its canary is out
GENERATION_S = 1.0
CONTENTS = 4096  # told apart in one generation
DELAY_S = 0.01  # at most, before a canary: of several who suspect, the first to cut ends it for all
CANARY_S = 0.25  # a canary that is out for longer does not come back
STORM = 10_000  # copies in a second, by two ways, that no acquittal covers
QUARANTINE_S = 0.05  # so long a canary that is out keeps its suspect back
PAUSE_S, PAUSE_MAX_S = 5.0, 640.0  # after a canary that found nothing; doubled each time
NAME = "buscoupler/loop"
TOKEN = token(NAME)
_MARK = b"buscoupler canary "


class _Content:
    """One content in one generation: how often it came, by which pipe first, and by how many pipes."""

    __slots__ = ("by", "count", "ways")

    def __init__(self, by: object) -> None:
        self.by, self.count, self.ways = by, 0, 1


class LoopWatch:
    """Watches what crosses one hub: `look` at each batch; all else happens only where that is suspicious.

    `suspect` is the message that seems to go round; None if there is none. `jitter(low, high)` returns a
    random number between both, and `nonce()` bytes that nobody else has.
    """

    def __init__(self, jitter: Callable[[float, float], float], nonce: Callable[[], bytes]) -> None:
        self._jitter, self._make_nonce = jitter, nonce
        self._contents: dict[int, _Content] = {}
        self.suspect: bytes | None = None
        self._nonce: bytes | None = None
        self._pause_s = PAUSE_S
        self._since_s = self._due_s = self._out_s = self._rest_s = float("-inf")

    def look(self, message: Buffer, by: object, now: float, copies: int = 1) -> bool:
        """Note that `message` came by a pipe; return whether it must not go on, as it seems to go round."""
        if now - self._since_s >= GENERATION_S or len(self._contents) >= CONTENTS:
            self._contents, self._since_s = {}, now
        digest = zlib.crc32(message)
        content = self._contents.get(digest)
        if content is None:
            content = self._contents[digest] = _Content(by)
        if content.by is not by:
            content.ways = 2
        content.count += copies if content.ways > 1 else 1
        if content.count < RETURNS:
            return False
        return self._judge(content, message, now)

    def _judge(self, content: _Content, message: Buffer, now: float) -> bool:
        self.expire(now)
        if content.count < (RETURNS if content.ways > 1 else REPEATS):
            return False
        if now < self._rest_s and (content.ways == 1 or content.count < STORM):
            return False
        if self.suspect is None:
            self.suspect = bytes(message)
            self._due_s = now + self._jitter(0, DELAY_S)
        if content.count < QUARANTINE or content.ways == 1:
            if content.count >= URGENT:
                self._due_s = min(self._due_s, now)
            return False
        return self._nonce is None or now - self._out_s < QUARANTINE_S

    def expire(self, now: float) -> None:
        """Drop a suspicion whose canary has not come back by now, or that died of itself."""
        told_s = max(self._due_s, self._out_s) + CANARY_S
        if self.suspect is not None and now > told_s:
            if self._nonce is not None:
                self._rest_s = told_s + self._pause_s
                self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
            self.drop()

    def drop(self) -> None:
        """Suspect nothing any more, and wait for no canary."""
        self.suspect = self._nonce = None

    def canary(self, now: float) -> bytes | None:
        """Return the message to send to everyone now, if one is due."""
        if self.suspect is None or self._nonce is not None or now < self._due_s:
            return None
        self.expire(now)
        return None if self.suspect is None else self.probe(self.suspect, now)

    def probe(self, like: bytes, now: float) -> bytes:
        """Return a canary that resembles a message, so that it passes every filter that lets that by."""
        self.suspect, self._nonce = like, _MARK + self._make_nonce()
        self._due_s = self._out_s = now
        if not is_frame(like):
            return self._nonce
        return pack(PUB, (*unpack(like).tokens[: TOKENS_MAX - 1], TOKEN), self._nonce)

    def came_back(self, data: Buffer) -> bool:
        """Return whether our canary is in `data`; that proves a loop, and the watch begins anew."""
        if self._nonce is None or self._nonce not in bytes(data):
            return False
        self.drop()
        self._contents.clear()
        self._pause_s = PAUSE_S
        return True
