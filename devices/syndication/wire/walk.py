"""Finds where a MessagePack object ends, without building it. Pure.

An element is judged when its header is there: what announces more than the bounds allow is refused before it
has come. A walk goes on where it stopped, so an object that comes byte by byte takes linear time.
"""

from typing import Final

from devices.syndication.bounds import Bounds

STRING: Final = 1  # str, or bin: what clients that know no str family send
ARRAY: Final = 2
MAP: Final = 3


def _families() -> bytes:
    """Return by first byte what an object is: a string, an array, a map, or 0 for all else."""
    families = bytearray(256)
    families[0x80:0x90], families[0xDE:0xE0] = bytes([MAP]) * 16, bytes([MAP]) * 2
    families[0x90:0xA0], families[0xDC:0xDE] = bytes([ARRAY]) * 16, bytes([ARRAY]) * 2
    families[0xA0:0xC0], families[0xD9:0xDC] = bytes([STRING]) * 32, bytes([STRING]) * 3
    families[0xC4:0xC7] = bytes([STRING]) * 3
    return bytes(families)


def _sizes() -> bytes:
    """Return by first byte the size of an element; 0: a length follows, or items, or it is illegal."""
    sizes = bytearray([1]) * 256
    sizes[0x80:0xA0] = bytes(32)
    sizes[0xA0:0xC0] = bytes(range(1, 33))
    sizes[0xC1] = 0
    sizes[0xC4:0xCA] = bytes(6)
    sizes[0xCA:0xD4] = bytes([5, 9, 2, 3, 5, 9, 2, 3, 5, 9])
    sizes[0xD4:0xD9] = bytes([3, 4, 6, 10, 18])
    sizes[0xD9:0xE0] = bytes(7)
    return bytes(sizes)


FAMILY: Final = _families()
SIZE: Final = _sizes()
LENGTH_BYTES: Final = {
    **dict.fromkeys(range(0x80, 0xA0), 0),
    **dict.fromkeys((0xC4, 0xC7, 0xD9), 1),
    **dict.fromkeys((0xC5, 0xC8, 0xDA, 0xDC, 0xDE), 2),
    **dict.fromkeys((0xC6, 0xC9, 0xDB, 0xDD, 0xDF), 4),
}
_EXT: Final = frozenset((0xC7, 0xC8, 0xC9))


class Walk:
    """The way through one object. `at` is where the next element begins, maybe beyond what has come.

    `marks`: where the elements of the outermost container begin. `fault`: why there is no end, for good.
    """

    __slots__ = ("_bounds", "_items", "_left", "_start", "at", "fault", "marks")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.fault = ""
        self.begin(0)

    def begin(self, start: int) -> None:
        """Begin an object at an offset."""
        self._start = self.at = start
        self._items = 0
        self._left = [1]  # elements to come: of the object itself, then of each container that is open
        self.marks: list[int] = []

    def shift(self, size: int) -> None:
        """Note that `size` bytes in front of the object are no longer there."""
        if not size:  # as while an object comes bit by bit: all its marks each time would be too many
            return
        self._start -= size
        self.at -= size
        self.marks = [mark - size for mark in self.marks]

    def go(self, data: bytes | bytearray) -> bool:
        """Walk on through what has come of the object. Return whether it is whole: then it ends at `at`."""
        at, end, left, marks = self.at, len(data), self._left, self.marks
        while left and at < end:
            first = data[at]
            items, size = 0, SIZE[first]
            if not size:
                announced = self._announced(data, at, first)
                if announced is None:
                    break
                size, items = announced
            if len(left) == 2:
                marks.append(at)
            at += size
            left[-1] -= 1
            if items:
                left.append(items)
            while left and not left[-1]:
                left.pop()
        self.at = at
        self._judge()
        return not left and at <= end and not self.fault

    def _announced(self, data: bytes | bytearray, at: int, first: int) -> tuple[int, int] | None:
        """Return the size of an element or of a container's header, and its items; None: not known."""
        length_bytes = LENGTH_BYTES.get(first)
        if length_bytes is None:
            self.fault = f"0x{first:02x} is no MessagePack"
            return None
        head = 1 + length_bytes
        if at + head > len(data):
            return None
        count = int.from_bytes(data[at + 1 : at + head], "big") if length_bytes else first & 15
        family = FAMILY[first]
        if family < ARRAY:
            return head + (first in _EXT) + count, 0
        return self._opened(head, count * 2 if family == MAP else count)

    def _opened(self, head: int, items: int) -> tuple[int, int] | None:
        """Return what `_announced` does, for a container within the bounds."""
        self._items += items
        if self._items > self._bounds.items:
            self.fault = f"more than {self._bounds.items} items"
        elif len(self._left) > self._bounds.depth:
            self.fault = f"deeper than {self._bounds.depth}"
        return None if self.fault else (head, items)

    def _judge(self) -> None:
        if not self.fault and self.at - self._start > self._bounds.object_bytes:
            self.fault = f"longer than {self._bounds.object_bytes} bytes"
