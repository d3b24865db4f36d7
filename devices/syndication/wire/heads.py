"""Reads publications that a client repeats, which differ from an earlier one in their value only. Pure.

All before the value, the head, was read and judged when it first came. Then it is enough to compare it, and
to look where the value ends.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from devices.syndication.wire.walk import SIZE

HEAD_BYTES: Final = 256  # longer ones are not remembered
HEADS: Final = 64  # remembered for a client; one more, and it begins anew
_VALUE_BYTES: Final = max(SIZE)


class Head(NamedTuple):
    """The id of a publication without metadata. `same`: its bytes are those that the broker would pack."""

    id: str
    same: bool


class Heads:
    """The heads that a client has sent. Only those of the length of the last one are recognised."""

    __slots__ = ("_known", "_longest", "_size")

    def __init__(self, object_bytes: int) -> None:
        self._longest = min(HEAD_BYTES, object_bytes - _VALUE_BYTES)
        self._known: dict[bytes, Head] = {}
        self._size = 0

    def learn(self, head: bytes, id: str, same: bool) -> None:
        """Remember what stood before the value of a publication without metadata."""
        if len(head) > self._longest:
            return
        if len(self._known) >= HEADS:
            self._known.clear()
        self._known[head] = Head(id, same)
        self._size = len(head)

    def repeated(self, data: bytes | bytearray, start: int) -> Iterator[tuple[Head, int, int]]:
        """Find the publications with known heads that follow each other from `start` on.

        Yields the head, and where the value begins and ends. A value with a length or items is not found.
        """
        known, size = self._known, self._size
        while head := known.get(bytes(data[start : start + size])):
            value = start + size
            if value >= len(data):
                return
            start = value + SIZE[data[value]]
            if start == value or start > len(data):
                return
            yield head, value, start
