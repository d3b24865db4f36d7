"""The ears of alarms: a peer of a bus, which hears the frames of some patterns and says announcements."""

from collections.abc import Callable, Iterable
from functools import cache
from struct import Struct

from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import FRAME_BYTES_MIN, HEADER, PUB, is_frame

_TOKEN = Struct(">I")
Hear = Callable[[bytes], None]


class Ears(Pipe):
    """A peer of a bus, called `alarms` there. `hear` gets the PUB frames of the patterns of `follow`."""

    is_leaf = True

    __slots__ = ("_hear", "_hub", "_starts", "link", "name", "stats")

    def __init__(self, bus: str, hear: Hear) -> None:
        self.name, self.link, self.stats = f"alarms of {bus}", "alarms", Stats()
        self._hear = hear
        self._hub: Hub | None = None
        self._starts: tuple[bytes, ...] = ()

    def follow(self, hub: Hub, patterns: Iterable[tuple[int, ...]]) -> None:
        """Hear these patterns on `hub` from now on."""
        self._starts = tuple({start_of(pattern) for pattern in patterns})
        if self._hub is not hub:
            self.close()
            self._hub = hub
            hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.stats.sent_bytes += len(batch.data)
        data = batch.keep()
        if any(start in data for start in self._starts):  # most batches have none, and cost no more
            for message in payloads(batch):
                if message.startswith(self._starts, FRAME_BYTES_MIN) and _is_said(message):
                    self._hear(message)

    def reject(self, reason: str) -> None:
        """Count an announcement that is not by a gateway of the system."""
        self.stats.reject(reason)

    def say(self, frames: Iterable[bytes]) -> None:
        """Publish frames on the bus."""
        found = list(frames)
        if self._hub is not None and found:
            self._hub.publish(from_payloads(found), self)

    def close(self) -> None:
        """Leave the bus. Idempotent."""
        if self._hub is not None:
            self._hub.detach(self)
            self._hub = None


@cache
def start_of(pattern: tuple[int, ...]) -> bytes:
    """Return the bytes with which the tokens of a frame of a pattern begin."""
    return b"".join(map(_TOKEN.pack, pattern))


def _is_said(message: bytes) -> bool:
    return is_frame(message) and HEADER.unpack_from(message)[0] == PUB
