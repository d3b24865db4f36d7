"""Finding loops at run time, where messages have no envelope: a suspicion, and a canary that proves it.

A bus message has no hop count, so a ring of plain links carries it for ever (docs/policies.md). The watch
counts how often the first message of each batch comes back within a second. That alone proves nothing, since
equal readings are legal; so a canary goes out by each way, and if a canary comes back there is a loop. Each
canary is different and cannot be guessed, so it tells by which way it went out. Pure: time and chance are
arguments.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

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
SPENT_S = 1.0  # so long canaries are taken out that are not asked about any more
STORM = 10_000  # copies in a second, by two ways, that no acquittal covers
QUARANTINE_S = 0.05  # so long a canary that is out keeps its suspect back
PAUSE_S, PAUSE_MAX_S = 5.0, 640.0  # after a canary that found nothing; doubled each time
NONCE_BYTES = 12
NAME = "buscoupler/loop"
TOKEN = token(NAME)
_MARK = b"buscoupler canary "


Way = TypeVar("Way")


class _Content:
    """One content in one generation: how often it came, by which pipe first, and whether by others too."""

    __slots__ = ("by", "count", "crossed")

    def __init__(self, by: object) -> None:
        self.by, self.count, self.crossed = by, 0, False


class LoopWatch(Generic[Way]):
    """The watch on what crosses one hub: call `look` for each batch; all else happens only after a suspicion.

    `suspect` is the message that seems to go round; None if there is none. `alert`: canaries may come in.
    `copies` is how often the busiest suspect came in a second. `jitter(low, high)` returns a random number
    between both, and `nonce()` `NONCE_BYTES` random bytes.
    """

    def __init__(self, jitter: Callable[[float, float], float], nonce: Callable[[], bytes]) -> None:
        self._jitter, self._make_nonce = jitter, nonce
        self._contents: dict[int, _Content] = {}
        self.suspect: bytes | None = None
        self.copies = 0
        self.alert = False
        self._name = self._spent = b""  # in all canaries that are out, and in those before
        self._keys: dict[bytes, Way] = {}
        self._pause_s = PAUSE_S
        self._since_s = self._due_s = self._out_s = self._rest_s = float("-inf")

    def look(self, message: Buffer, by: Way, now: float, copies: int = 1) -> bool:
        """Note that `message` came by a pipe. Return whether it seems to go round and must be stopped."""
        if now - self._since_s >= GENERATION_S or len(self._contents) >= CONTENTS:
            self._contents, self._since_s = {}, now
        digest = zlib.crc32(message)
        content = self._contents.get(digest)
        if content is None:
            content = self._contents[digest] = _Content(by)
        if content.by is not by:
            content.crossed = True
        content.count += copies if content.crossed else 1
        if content.count < RETURNS:
            return False
        return self._judge(content, message, now)

    def _judge(self, content: _Content, message: Buffer, now: float) -> bool:
        self.expire(now)
        if content.count < (RETURNS if content.crossed else REPEATS):
            return False
        if now < self._rest_s and (not content.crossed or content.count < STORM):
            return False
        if self.suspect is None:
            self.suspect = bytes(message)
            self._due_s = now + self._jitter(0, DELAY_S)
        self.copies = max(self.copies, content.count)
        if content.count < QUARANTINE or not content.crossed:
            if content.count >= URGENT:
                self._due_s = min(self._due_s, now)
            return False
        return not self._name or now - self._out_s < QUARANTINE_S

    def expire(self, now: float) -> None:
        """Drop a suspicion whose canaries have not come back in time, or whose message comes no more."""
        if self._spent and now > self._out_s + SPENT_S:
            self._spent, self.alert = b"", bool(self._name)
        told_s = max(self._due_s, self._out_s) + CANARY_S
        if self.suspect is not None and now > told_s:
            if self._name:
                self._rest_s = told_s + self._pause_s
                self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
            self.drop()

    def drop(self) -> None:
        """Drop the suspicion, and wait for no canary."""
        self._call_off()
        self.suspect, self.copies = None, 0

    def _call_off(self) -> None:
        if self._name:
            self._name, self._spent, self._keys = b"", self._name, {}

    def canaries(self, ways: Sequence[Way], now: float) -> list[bytes] | None:
        """Return the messages to send now, one for each way, if they are due."""
        if self.suspect is None or self._name or now < self._due_s:
            return None
        self.expire(now)
        return None if self.suspect is None else self.probe(self.suspect, ways, now)

    def probe(self, like: bytes, ways: Sequence[Way], now: float) -> list[bytes]:
        """Return a canary for each way.

        Canaries resemble a message, so they pass each filter that passes it.
        """
        self._call_off()
        self.suspect, self._name, self.alert = like, _MARK + self._make_nonce(), True
        self._keys = {self._make_nonce(): way for way in ways}
        self._due_s = self._out_s = now
        return [_resembling(like, self._name + key) for key in self._keys]

    def left_by(self, data: bytes) -> Way | None:
        """Return by which way the first of our canaries in `data` went out; None if there is none."""
        if not self._name:
            return None
        keys = [text[:NONCE_BYTES] for text in data.split(self._name)[1:]]
        return next((self._keys[key] for key in keys if key in self._keys), None)

    def is_ours(self, data: bytes) -> bool:
        """Tell whether `data` holds a canary of ours, also one that is not expected any more."""
        return any(name and name in data for name in (self._name, self._spent))

    def prove(self) -> None:
        """Note that the suspicion is proved, and begin anew."""
        self.drop()
        self._contents.clear()
        self._pause_s = PAUSE_S


def _resembling(like: bytes, text: bytes) -> bytes:
    """Return `text` as a frame with `TOKEN` behind the tokens of a frame; unchanged if there is no frame."""
    if not is_frame(like):
        return text
    return pack(PUB, (*unpack(like).tokens[: TOKENS_MAX - 1], TOKEN), text)
