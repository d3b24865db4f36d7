"""Finds the end of a MessagePack object without building it. Pure.

An element is checked when its header has come: an object that announces more than the bounds allow is refused
before it arrives. A walk resumes where it stopped, so an object that comes byte by byte takes linear time.
"""

from typing import Final

from devices.syndication.bounds import Bounds

STRING: Final = 1  # str, or bin: what clients that know no str family send
ARRAY: Final = 2
MAP: Final = 3


def _families() -> bytes:
    """Return the family of an object by its first byte: `STRING`, `ARRAY`, `MAP`, or 0 for all else."""
    families = bytearray(256)
    families[0x80:0x90], families[0xDE:0xE0] = bytes([MAP]) * 16, bytes([MAP]) * 2
    families[0x90:0xA0], families[0xDC:0xDE] = bytes([ARRAY]) * 16, bytes([ARRAY]) * 2
    families[0xA0:0xC0], families[0xD9:0xDC] = bytes([STRING]) * 32, bytes([STRING]) * 3
    families[0xC4:0xC7] = bytes([STRING]) * 3
    return bytes(families)


def _sizes() -> bytes:
    """Return the size of an element by its first byte; 0 if a length or items follow, or it is illegal."""
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
    """A walk through one object. `at` is where the next element begins, maybe beyond the data so far.

    `marks` are the offsets of the elements of the outermost container. `fault` says why the object is
    refused, for good; "" if it is not.
    """

    __slots__ = ("_bounds", "_items", "_left", "_start", "at", "fault", "marks")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.fault = ""
        self.begin(0)

    def begin(self, start: int) -> None:
        """Begin an object at the offset `start`."""
        self._start = self.at = start
        self._items = 0
        self._left = [1]  # elements to come: of the object itself, then of each container that is open
        self.marks: list[int] = []

    def shift(self, size: int) -> None:
        """Note that `size` bytes before the object were removed."""
        if not size:  # as while an object comes bit by bit: all its marks each time would be too many
            return
        self._start -= size
        self.at -= size
        self.marks = [mark - size for mark in self.marks]

    def go(self, data: bytes | bytearray) -> bool:
        """Walk on through the data so far. Return whether the object is complete: then it ends at `at`."""
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
        """Return the size of an element or of a container's header, and its items; None if not known yet."""
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
        """Return size and items of a container's header; None, with a fault, if it exceeds the bounds."""
        self._items += items
        if self._items > self._bounds.items:
            self.fault = f"more than {self._bounds.items} items"
        elif len(self._left) > self._bounds.depth:
            self.fault = f"deeper than {self._bounds.depth}"
        return None if self.fault else (head, items)

    def _judge(self) -> None:
        if not self.fault and self.at - self._start > self._bounds.object_bytes:
            self.fault = f"longer than {self._bounds.object_bytes} bytes"
