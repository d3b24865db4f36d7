"""Cuts the stream of a client into the messages of its generation. Pure.

docs/wire/syndication.md is the description. The first byte of a connection tells the generations apart: below
0x80 it is a tag, and no untagged message begins so.
"""

from itertools import pairwise
from typing import Final

from devices.syndication.bounds import Bounds
from devices.syndication.wire.heads import Heads
from devices.syndication.wire.messages import (
    BROKER_REQUEST,
    DIFFERENCE,
    NO_TAG,
    PUBLICATION,
    QUERY,
    Form,
    Message,
    Publication,
    read,
    value_last,
)
from devices.syndication.wire.walk import ARRAY, FAMILY, MAP, STRING, Walk

_LEGAL: Final = {
    NO_TAG: frozenset((STRING, ARRAY, MAP)),
    PUBLICATION: frozenset((ARRAY, MAP)),
    QUERY: frozenset((MAP, STRING)),
    DIFFERENCE: frozenset((MAP,)),
    BROKER_REQUEST: frozenset((MAP,)),
}


class Cutter:
    """Cuts the stream of one client into messages (`bus.serving.objects.Cutter`).

    `tagged` is the generation of the client; None before its first byte.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.tagged: bool | None = None
        self.fault = ""
        self._bounds = bounds
        self._rest = bytearray()
        self._heads = Heads(bounds.object_bytes)
        self._walk = Walk(bounds)
        self._kind: int | None = None  # of the message that has begun

    @property
    def waiting(self) -> int:
        """The bytes that wait for the rest of an item."""
        return len(self._rest)

    def cut(self, data: bytes) -> list[Message]:
        """Take the next bytes, and return the messages that are complete."""
        messages: list[Message] = []
        if self._rest:
            self._rest += data
            done = self._cut(self._rest, messages)
            del self._rest[:done]
        else:
            done = self._cut(data, messages)
            self._rest += data[done:]
        if self.fault:
            self._rest.clear()
        else:
            self._walk.shift(done)
        return messages

    def _cut(self, data: bytes | bytearray, messages: list[Message]) -> int:
        """Append the complete messages, and return where the rest begins."""
        start, walk = 0, self._walk
        while not self.fault:
            if self._kind is None:
                start = self._repeated(data, start, messages)
                if not self._begin(data, start):
                    break
            if not walk.go(data):
                self.fault = walk.fault
                break
            messages.append(self._read(data, start))
            start, self._kind = walk.at, None
        return start

    def _repeated(self, data: bytes | bytearray, start: int, messages: list[Message]) -> int:
        """Append the publications from `start` on whose heads are known, and return where they end."""
        for (id, same), value, end in self._heads.repeated(data, start):
            came = bytes(data[start:end]) if same else b""
            untagged, tagged = (b"", came) if self.tagged else (came, b"")
            made = Publication(id, {}, bytes(data[value:end]), untagged, tagged)
            if self.tagged:
                made.form = Form.TAGGED
            messages.append(made)
            start = end
        return start

    def _begin(self, data: bytes | bytearray, start: int) -> bool:
        """Begin the message at `start`. Return False if too little of it has come to tell its kind."""
        if start >= len(data) or self.fault:
            return False
        if self.tagged is None:
            self.tagged = data[start] < 0x80
        kind = data[start] if self.tagged else NO_TAG
        legal = _LEGAL.get(kind)
        if legal is None:
            self.fault = f"0x{kind:02x} is no tag"
            return False
        return self._begin_body(data, start + self.tagged, kind, legal)

    def _begin_body(self, data: bytes | bytearray, at: int, kind: int, legal: frozenset[int]) -> bool:
        if at >= len(data):
            return False
        if FAMILY[data[at]] not in legal:
            self.fault = f"no message begins with 0x{data[at]:02x}"
            return False
        self._kind = kind
        self._walk.begin(at)
        return True

    def _read(self, data: bytes | bytearray, start: int) -> Message:
        body, marks, end = start + (self._kind != NO_TAG), self._walk.marks, self._walk.at
        parts = [bytes(data[begin:end]) for begin, end in pairwise([*(marks or [body]), end])]
        message = read(self._kind, FAMILY[data[body]], parts, self._bounds)
        if isinstance(message, Publication) and not message.metadata and value_last(parts):
            same = data[start:end] == message.packed(Form.TAGGED if self.tagged else Form.UNTAGGED)
            self._heads.learn(bytes(data[start : marks[-1]]), message.id, same)
        return message
