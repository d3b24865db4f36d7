"""Reads what a broker says to an untagged client: differences, publications, refusals of queries. Pure.

Whatever a producer puts into a value, MessagePack's odd corners included, can be read here.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import msgpack

from devices.syndication.bounds import Bounds
from devices.syndication.wire.messages import Difference
from devices.syndication.wire.walk import ARRAY, FAMILY, MAP, Walk

BOUNDS: Final = Bounds(object_bytes=1 << 24, depth=256, items=1 << 22)
"""Of one message from a broker, whose differences are longer than what it takes from clients."""

_SHOWN_BYTES: Final = 8


class Heard(NamedTuple):
    """A publication. `metadata` has what its producer changes: None deletes a key."""

    id: str
    metadata: dict[str, Any]
    value: Any


class Refusal(NamedTuple):
    """The answer to a wrong query."""

    text: str


Answer: TypeAlias = Difference | Heard | Refusal


def read(raw: bytes) -> Any:
    """Return a MessagePack object as Python values.

    A map with a key that cannot be one in Python is a list of pairs; text that is not UTF-8 has surrogates
    for the other bytes; an object that no library can read, such as a date that is none, is its bytes.
    """
    try:
        return msgpack.unpackb(
            raw, strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=_map
        )
    except ValueError:
        return raw


def _map(pairs: list[tuple[Any, Any]]) -> Any:
    try:
        return dict(pairs)
    except TypeError:
        return pairs


class HeardCutter:
    """Cuts the stream of a broker into answers (`bus.serving.objects.Cutter`).

    `fault`: what it says is not of a syndication broker.
    """

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self.fault = ""
        self._rest = bytearray()
        self._walk = Walk(bounds)

    @property
    def waiting(self) -> int:
        return len(self._rest)

    def cut(self, data: bytes) -> list[Answer]:
        """Return the answers that are whole now."""
        self._rest += data
        answers: list[Answer] = []
        start = 0
        while self._is_whole(start):
            answer = _answer(self._rest, start, [*self._walk.marks, self._walk.at])
            if answer is None:
                self._doubt(start)
                break
            answers.append(answer)
            start = self._walk.at
            self._walk.begin(start)
        del self._rest[:start]
        self._walk.shift(start)
        return answers

    def _is_whole(self, start: int) -> bool:
        """Return whether all of the answer that begins at `start` has come."""
        if self.fault or start >= len(self._rest):
            return False
        if FAMILY[self._rest[start]] not in (ARRAY, MAP):
            return True  # it is no answer, however long
        whole = self._walk.go(self._rest)
        self.fault = self._walk.fault
        return whole

    def _doubt(self, start: int) -> None:
        self.fault = f"it says {self._rest[start : start + _SHOWN_BYTES].hex(' ')}"


class Holding:
    """The set of a subscriber, put together from the differences that it hears."""

    def __init__(self) -> None:
        self._items: dict[bytes, Any] = {}

    def note(self, said: Difference | Heard) -> None:
        """Take the next thing that the broker says."""
        if isinstance(said, Difference):
            for packed in _packed(said.gone):
                self._items.pop(packed, None)
            self._items |= _packed(said.new)

    def replaced(self, whole: Difference) -> Difference:
        """Take the set that a new connection begins with. Return how it differs from what was held."""
        before, self._items = self._items, _packed(whole.new)
        return Difference(_without(self._items, before), _without(before, self._items))


def _packed(items: Iterable[Any]) -> dict[bytes, Any]:
    return {msgpack.packb(item, unicode_errors="surrogateescape"): item for item in items}


def _without(items: dict[bytes, Any], others: dict[bytes, Any]) -> list[Any]:
    return [item for packed, item in items.items() if packed not in others]


def _answer(data: bytearray, start: int, ends: list[int]) -> Answer | None:
    """Return what an array or a map says, whose elements are between `ends`; None: no broker says so."""
    parts = [read(bytes(data[begin:end])) for begin, end in pairwise(ends)]
    if FAMILY[data[start]] == ARRAY:
        return Heard(*parts) if len(parts) == 3 and _is_said(*parts[:2]) else None
    fields = {str(key): value for key, value in zip(parts[::2], parts[1::2], strict=True)}
    if isinstance(text := fields.get("Error"), str):
        return Refusal(text)
    new, gone = fields.get("New"), fields.get("Del")
    return Difference(new, gone) if isinstance(new, list) and isinstance(gone, list) else None


def _is_said(id: Any, metadata: Any) -> bool:
    return isinstance(id, str) and isinstance(metadata, dict)
