"""The messages of the syndication broker, in MessagePack, for both generations of clients. Pure.

docs/wire/syndication.md is the description. The first byte of a connection tells the generations apart: below
0x80 it is a tag, and no untagged message begins so. Text is UTF-8; a bin is read as the text in it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgpack

from devices.syndication.bounds import Bounds
from devices.syndication.heads import Heads
from devices.syndication.walk import ARRAY, FAMILY, LENGTH_BYTES, MAP, STRING, Walk

PUBLICATION: Final = 0  # tags
QUERY: Final = 1
DIFFERENCE: Final = 2
UNTAGGED: Final = -1

_LEGAL: Final = {
    UNTAGGED: frozenset((STRING, ARRAY, MAP)),
    PUBLICATION: frozenset((ARRAY, MAP)),
    QUERY: frozenset((MAP,)),
    DIFFERENCE: frozenset((MAP,)),
}
_NO_METADATA: Final = (b"\x80", b"\xc0")
_NIL: Final = b"\xc0"


class Packed:
    """A message to subscribers: packed at most once for each generation, however many they are."""

    __slots__ = ("_tagged_form", "_untagged_form")

    def __init__(self, untagged: bytes = b"", tagged: bytes = b"") -> None:
        self._untagged_form, self._tagged_form = untagged, tagged

    def packed(self, tagged: bool) -> bytes:
        if tagged:
            form = self._tagged_form = self._tagged_form or self._tagged()
        else:
            form = self._untagged_form = self._untagged_form or self._untagged()
        return form

    def _untagged(self) -> bytes:
        raise NotImplementedError

    def _tagged(self) -> bytes:
        raise NotImplementedError


class Publication(Packed):
    """`value` is MessagePack, as it came. `metadata` is what the producer changes: None deletes a key.

    `untagged`, `tagged`: the message in that form, if it came as it would be packed.
    """

    __slots__ = ("id", "metadata", "value")

    def __init__(
        self, id: str, metadata: dict[str, Any], value: bytes, untagged: bytes = b"", tagged: bytes = b""
    ) -> None:
        super().__init__(untagged, tagged)
        self.id, self.metadata, self.value = id, metadata, value

    def _untagged(self) -> bytes:
        return b"\x93" + pack(self.id) + pack(self.metadata) + self.value

    def _tagged(self) -> bytes:
        metadata = pack(self.metadata) if self.metadata else b"\x80"
        return b"\x00\x83\xa4UUID" + pack(self.id) + b"\xa8Metadata" + metadata + b"\xa5Value" + self.value


class Difference(Packed):
    """What enters the set of a subscriber, and what leaves it: ids of producers, or values of a selection."""

    __slots__ = ("gone", "new")

    def __init__(self, new: Sequence[Any] = (), gone: Sequence[Any] = ()) -> None:
        super().__init__()
        self.new, self.gone = tuple(new), tuple(gone)

    def _untagged(self) -> bytes:
        return pack({"New": self.new, "Del": self.gone})

    def _tagged(self) -> bytes:
        return b"\x02" + self.packed(False)


class Subscription(NamedTuple):
    """A query, as a client wrote it, in place of its last one. `tagged`: the client's generation."""

    query: str
    tagged: bool


class Refused(NamedTuple):
    """A whole object that is no message, with a reason of `REFUSED`, and the generation of its client.

    `answer` says why, if it is a wrong query.
    """

    reason: str
    tagged: bool
    answer: str = ""


REFUSED: Final = {
    "publication": "no array of three, or a map without UUID",
    "id": "no string, not UTF-8, or too long",
    "metadata": "no map of strings to values, or not UTF-8",
    "query": "no string, or not UTF-8",
    "difference": "only a broker sends differences",
}
"""The reasons of `Refused`, with their meanings."""

Message = Publication | Subscription | Refused


def pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def error(text: str) -> bytes:
    """Return the answer to a wrong query of an untagged client. The tagged take an unknown tag for fatal."""
    return pack({"Error": text})


class Cutter:
    """Cuts the stream of one client into messages (`bus.serving.objects.Cutter`).

    `tagged`: the generation of the client; None before its first byte.
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
        return len(self._rest)

    def cut(self, data: bytes) -> list[Message]:
        """Return the messages that are whole now."""
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
        """Cut what is whole, and return where the rest begins."""
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
        """Read what follows of the publications that the client repeats, and return where they end."""
        for (id, same), value, end in self._heads.repeated(data, start):
            came = bytes(data[start:end]) if same else b""
            untagged, tagged = (b"", came) if self.tagged else (came, b"")
            messages.append(Publication(id, {}, bytes(data[value:end]), untagged, tagged))
            start = end
        return start

    def _begin(self, data: bytes | bytearray, start: int) -> bool:
        """Begin the message at `start`, if enough of it has come to tell what it is."""
        if start >= len(data) or self.fault:
            return False
        if self.tagged is None:
            self.tagged = data[start] < 0x80
        kind = data[start] if self.tagged else UNTAGGED
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
        body, marks, end = start + (self._kind != UNTAGGED), self._walk.marks, self._walk.at
        parts = [bytes(data[begin:end]) for begin, end in pairwise([*(marks or [body]), end])]
        message = _message(self._kind, FAMILY[data[body]], parts, self._bounds)
        if isinstance(message, Publication) and not message.metadata and _value_last(parts):
            same = data[start:end] == message.packed(self._kind != UNTAGGED)
            self._heads.learn(bytes(data[start : marks[-1]]), message.id, same)
        return message


def _message(kind: int | None, family: int, parts: list[bytes], bounds: Bounds) -> Message:
    """Read a message from its kind, and the elements of its array or map, or the string that it is."""
    tagged = kind != UNTAGGED
    if family == STRING:
        return _subscription(parts[0], tagged)
    if kind == QUERY:
        return _subscription(_fields(parts).get("Query", _NIL), tagged)
    if family == MAP and kind != PUBLICATION:
        return Refused("difference", tagged)
    three = parts if family == ARRAY else _three(_fields(parts))
    read = _publication(three[0], three[1], three[2], bounds) if len(three) == 3 else "publication"
    return Refused(read, tagged) if isinstance(read, str) else read


def _value_last(parts: list[bytes]) -> bool:
    """Return whether the value of a publication, an array or a map, is what comes last."""
    return len(parts) == 3 or _text(parts[-2]) == "Value"


def _three(fields: Mapping[str | None, bytes]) -> list[bytes]:
    """Return id, metadata and value of a tagged publication; nothing if it has no id."""
    if "UUID" not in fields:
        return []
    return [fields["UUID"], fields.get("Metadata", _NIL), fields.get("Value", _NIL)]


def _fields(parts: list[bytes]) -> dict[str | None, bytes]:
    """Return the values of a map by their keys, each as it came; of equal keys the last."""
    return dict(zip(map(_text, parts[::2]), parts[1::2], strict=False))


def _subscription(raw: bytes, tagged: bool) -> Subscription | Refused:
    text = _text(raw)
    if text is None:
        return Refused("query", tagged, "a query is a string in UTF-8")
    return Subscription(text, tagged)


def _publication(raw_id: bytes, raw_metadata: bytes, value: bytes, bounds: Bounds) -> Publication | str:
    """Return a publication, or the reason why it is none."""
    id = _text(raw_id)
    if id is None or len(id.encode()) > bounds.id_bytes:
        return "id"
    metadata = {} if raw_metadata in _NO_METADATA else _metadata(raw_metadata)
    return "metadata" if metadata is None else Publication(id, metadata, value)


def _text(raw: bytes) -> str | None:
    """Return the text of a str or a bin; None for all else, and for what is not UTF-8."""
    if FAMILY[raw[0]] != STRING:
        return None
    try:
        return raw[1 + LENGTH_BYTES.get(raw[0], 0) :].decode()
    except UnicodeDecodeError:
        return None


def _metadata(raw: bytes) -> dict[str, Any] | None:
    """Return the map that `raw` is, with text for each bin. None: no map, a key is no string, not UTF-8."""
    if FAMILY[raw[0]] != MAP:
        return None
    try:
        read: dict[str, Any] = _as_text(msgpack.unpackb(raw))
        return read
    except ValueError:  # also UnicodeDecodeError, and a timestamp that is none
        return None


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_as_text(part) for part in value]
    if isinstance(value, dict):
        return {_as_text(key): _as_text(part) for key, part in value.items()}
    return value
