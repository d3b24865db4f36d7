"""The numbers of chunks of several streams, by which a gap shows. Pure."""

from collections import OrderedDict
from typing import Final, NamedTuple

STREAMS_MAX: Final = 64
_NUMBERS: Final = 1 << 32


class ChunkPlace(NamedTuple):
    """The place of a chunk in its stream.

    `missing`: how many chunks before it never came. `is_late`: a later one came before. `is_joined`: it is
    the first that is known of a stream that had begun before.
    """

    missing: int = 0
    is_late: bool = False
    is_joined: bool = False


class Streams:
    """The next number of each stream. The stream that was quiet for longest is forgotten above 64."""

    def __init__(self) -> None:
        self._next: OrderedDict[int, int] = OrderedDict()

    def place(self, stream: int, number: int) -> ChunkPlace:
        """Return the place of a chunk, and note that it came."""
        expected = self._next.get(stream)
        ahead = 0 if expected is None else (number - expected) % _NUMBERS
        if ahead >= _NUMBERS // 2:
            return ChunkPlace(is_late=True)
        self._next[stream] = (number + 1) % _NUMBERS
        self._next.move_to_end(stream)
        if len(self._next) > STREAMS_MAX:
            self._next.popitem(last=False)
        return ChunkPlace(ahead, is_joined=expected is None and number != 0)
