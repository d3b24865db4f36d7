"""Reads what a broker sends to an untagged client: differences, publications, refusals of queries. Pure.

Every value that MessagePack allows is read, its odd corners included.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import msgpack

from bus.text import SAID_BYTES, quoting
from devices.syndication.bounds import Bounds
from devices.syndication.wire.messages import Difference
from devices.syndication.wire.walk import ARRAY, FAMILY, MAP, Walk

BOUNDS: Final = Bounds(object_bytes=1 << 24, depth=256, items=1 << 22)
"""Bounds of one message from a broker, whose differences may be longer than messages of clients."""

_SHOWN_BYTES: Final = 8


class ReceivedPublication(NamedTuple):
    """A publication from the broker. `metadata` has the changes of its producer: None deletes a key."""

    id: str
    metadata: dict[str, Any]
    value: Any


class Refusal(NamedTuple):
    """The answer of a broker to a wrong query."""

    text: str


Answer: TypeAlias = Difference | ReceivedPublication | Refusal


def read(raw: bytes) -> Any:
    """Return a MessagePack object as Python values.

    A map with a key that Python cannot hash becomes a list of pairs; bytes of text that are not UTF-8 become
    surrogates; an object that the library cannot read, such as an impossible date, stays bytes.
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


class AnswerCutter:
    """Cuts the stream of a broker into answers (`bus.serving.objects.Cutter`).

    `fault` says why the stream is not that of a syndication broker; "" while it is.
    """

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self.fault = ""
        self._rest = bytearray()
        self._walk = Walk(bounds)

    @property
    def waiting(self) -> int:
        """The bytes that wait for the rest of an item."""
        return len(self._rest)

    def cut(self, data: bytes) -> list[Answer]:
        """Take the next bytes, and return the answers that are complete."""
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
            return True  # no answer begins so
        whole = self._walk.go(self._rest)
        self.fault = self._walk.fault
        return whole

    def _doubt(self, start: int) -> None:
        begun = bytes(self._rest[start : start + SAID_BYTES])
        self.fault = quoting(f"it says {begun[:_SHOWN_BYTES].hex(' ')}", begun)


class HeldSet:
    """The set of a subscriber, kept up to date by the differences that the broker sends."""

    def __init__(self) -> None:
        self._items: dict[bytes, Any] = {}

    def note(self, update: Difference | ReceivedPublication) -> None:
        """Apply the next update of the broker, if it is a difference."""
        if isinstance(update, Difference):
            for packed in _packed(update.gone):
                self._items.pop(packed, None)
            self._items |= _packed(update.new)

    def replaced(self, whole: Difference) -> Difference:
        """Replace the set by the first one of a new connection. Return the difference between both."""
        before, self._items = self._items, _packed(whole.new)
        return Difference(_without(self._items, before), _without(before, self._items))


def _packed(items: Iterable[Any]) -> dict[bytes, Any]:
    return {msgpack.packb(item, unicode_errors="surrogateescape"): item for item in items}


def _without(items: dict[bytes, Any], others: dict[bytes, Any]) -> list[Any]:
    return [item for packed, item in items.items() if packed not in others]


def _answer(data: bytearray, start: int, ends: list[int]) -> Answer | None:
    """Return the answer in an array or map whose elements are between `ends`; None if it is no answer."""
    parts = [read(bytes(data[begin:end])) for begin, end in pairwise(ends)]
    if FAMILY[data[start]] == ARRAY:
        return ReceivedPublication(*parts) if len(parts) == 3 and _is_head(*parts[:2]) else None
    fields = {str(key): value for key, value in zip(parts[::2], parts[1::2], strict=True)}
    if isinstance(text := fields.get("Error"), str):
        return Refusal(text)
    new, gone = fields.get("New"), fields.get("Del")
    return Difference(new, gone) if isinstance(new, list) and isinstance(gone, list) else None


def _is_head(id: Any, metadata: Any) -> bool:
    return isinstance(id, str) and isinstance(metadata, dict)
