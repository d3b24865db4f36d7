"""Recognises publications that differ from an earlier one of the client in their value only. Pure.

The head, all bytes before the value, was read and checked when it first came. Later it is only compared, and
the end of the value is found.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from devices.syndication.wire.walk import SIZE

HEAD_BYTES: Final = 256  # longer heads are not remembered
HEADS: Final = 64  # remembered for a client; beyond, all are forgotten
_VALUE_BYTES: Final = max(SIZE)


class Head(NamedTuple):
    """The head of a publication without metadata. `same`: the broker would pack it to the same bytes."""

    id: str
    same: bool


class Heads:
    """The heads that a client has sent. Only heads as long as the last one are recognised."""

    __slots__ = ("_known", "_longest", "_size")

    def __init__(self, object_bytes: int) -> None:
        self._longest = min(HEAD_BYTES, object_bytes - _VALUE_BYTES)
        self._known: dict[bytes, Head] = {}
        self._size = 0

    def learn(self, head: bytes, id: str, same: bool) -> None:
        """Remember the head of a publication without metadata."""
        if len(head) > self._longest:
            return
        if len(self._known) >= HEADS:
            self._known.clear()
        self._known[head] = Head(id, same)
        self._size = len(head)

    def repeated(self, data: bytes | bytearray, start: int) -> Iterator[tuple[Head, int, int]]:
        """Yield the publications with known heads that follow each other from `start` on.

        Each is its head, and where its value begins and ends. A value with a length or items ends the search.
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
