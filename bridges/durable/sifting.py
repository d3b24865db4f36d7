"""The choice of the messages that a durable trunk keeps. Pure."""

from collections.abc import Callable
from struct import Struct

from bridges.durable.keys import bounds
from bridges.rules import Patterns, Rule, Rules
from bus.watch.canaries import is_canary
from bus.wire.batch import LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES, OPAQUE

_LENGTH_AT, _LENGTH = 2, Struct(">H")


class Sieve:
    """The division of enveloped messages in those to keep, by patterns, and the rest.

    Without patterns all are kept but canaries, which look for loops of this moment.
    """

    def __init__(self, patterns: Patterns = ()) -> None:
        self._rules = Rules(Rule(patterns)) if patterns else None

    def divided(self, batch: Batch) -> tuple[Batch | None, Batch | None]:
        """Return the messages to keep and the rest, each None if there are none."""
        if self._rules is None and batch.count > 1:
            return batch, None
        return parted(batch, self._keeps)

    def _keeps(self, data: bytes, start: int, stop: int) -> bool:
        if self._rules is None:
            return not is_canary(data[start:stop])
        frame = frame_at(data, start, stop)
        return frame is not None and self._rules.admit(data, frame)


def frame_at(data: bytes, start: int, stop: int) -> int | None:
    """Return where the frame of an enveloped message begins; None for an opaque one."""
    frame = start + ENVELOPE_BYTES
    is_frame = stop > frame and _LENGTH.unpack_from(data, start + _LENGTH_AT)[0] != OPAQUE
    return frame if is_frame else None


def parted(batch: Batch, chosen: Callable[[bytes, int, int], bool]) -> tuple[Batch | None, Batch | None]:
    """Return the messages of a batch that are `chosen`, and the rest, each None if there are none."""
    kept, rest, data = list[bytes](), list[bytes](), batch.keep()
    for start, stop in bounds(data, batch.count):
        (kept if chosen(data, start, stop) else rest).append(data[start - LENGTH_BYTES : stop])
    return _joined(batch, kept), _joined(batch, rest)


def _joined(batch: Batch, parts: list[bytes]) -> Batch | None:
    if len(parts) == batch.count:
        return batch
    return Batch(b"".join(parts), len(parts)) if parts else None


KEEP_ALL = Sieve()
