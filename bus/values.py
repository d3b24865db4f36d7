"""The newest frame of each pattern, within bounds. Pure: time is an argument."""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from bus import events
from bus.watch import canaries
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, HEADER, PUB
from bus.wire.pattern import Pattern

VALUES: Final = 4096
"""The number of patterns that are remembered, by default."""
VALUES_BYTES: Final = 1 << 20
"""The bytes that their frames may have together, by default."""

COMMAND: Final = "set"
"""The last name of a command to a device. A command is no value: said again later, it would act again."""

RESULT: Final = "result"
"""The last name of what became of a command to a device."""

RESULTS_FULL: Final = "results full"
"""The reason for results that are not told."""

RESULTS_MAX: Final = 1024
"""The most results that wait to be told, and commands that wait for one: more are not told."""

_TOKEN: Final = Struct(">I")
_OWN: Final = _TOKEN.pack(events.PATTERN[0])
_NO_VALUES: Final = _TOKEN.pack(canaries.TOKEN), _TOKEN.pack(Pattern(COMMAND)[0])  # as the last token
_read = HEADER.unpack_from


class Value(NamedTuple):
    """A frame, and when it was heard, in seconds on its keeper's clock."""

    frame: bytes
    at_s: float


def keyed(messages: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the messages that are values, each behind its tokens as bytes: the PUB frames of others."""
    for message in messages:
        size = len(message)
        if size <= FRAME_BYTES_MIN:
            continue
        kind, count, data_bytes = _read(message)
        end = FRAME_BYTES_MIN + 4 * count
        if kind != PUB or not count or size != end + data_bytes or data_bytes > DATA_BYTES_MAX:
            continue
        key = message[FRAME_BYTES_MIN:end]
        if not (key.startswith(_OWN) or key.endswith(_NO_VALUES)):
            yield key, message


class LastValues:
    """The newest PUB frame of each pattern, except the product's own frames: events, logs, canaries;
    and except commands.

    At most `values` patterns whose frames have `values_bytes` together: beyond that, the pattern that was
    silent for longest is forgotten, and counted in `forgotten`.
    """

    __slots__ = ("_all", "bytes", "forgotten", "values", "values_bytes")

    def __init__(self, values: int = VALUES, values_bytes: int = VALUES_BYTES) -> None:
        self.values, self.values_bytes = values, values_bytes
        self.bytes = self.forgotten = 0
        self._all: dict[bytes, Value] = {}  # by the tokens as bytes; the one heard last stands last

    def __len__(self) -> int:
        return len(self._all)

    def take(self, messages: Iterable[bytes], at_s: float) -> None:
        """Remember the messages that are values, unless there are newer ones of their patterns."""
        known = self._all
        for key, message in keyed(messages):
            old = known.get(key)
            if old is not None and old.at_s > at_s:
                continue
            known.pop(key, None)
            known[key] = Value(message, at_s)
            self.bytes += len(message) - (len(old.frame) if old is not None else 0)
            while self.bytes > self.values_bytes or len(known) > self.values:
                self.bytes -= len(known.pop(next(iter(known))).frame)
                self.forgotten += 1

    def read(self, pattern: Pattern = Pattern()) -> Iterator[Value]:  # noqa: B008 (a tuple)
        """Yield the values whose tokens start with `pattern`, the oldest first."""
        return (value for value in self.look(pattern) if value is not None)

    def look(self, pattern: Pattern) -> Iterator[Value | None]:
        """Yield as `read` does, and None for each other value, so that a reader can pause between any two."""
        start, count = b"".join(map(_TOKEN.pack, pattern)), len(pattern)
        for value in list(self._all.values()):  # of values alone: a pair for each takes ten times as long
            has = value.frame[1] >= count and value.frame.startswith(start, FRAME_BYTES_MIN)
            yield value if has else None
