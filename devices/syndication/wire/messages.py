"""The messages of the syndication broker, in MessagePack, for both generations of clients. Pure.

docs/wire/syndication.md is the description. Text is UTF-8; a bin is read as the text in it.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgpack

from devices.syndication.bounds import Bounds
from devices.syndication.wire.walk import ARRAY, FAMILY, LENGTH_BYTES, MAP, STRING

PUBLICATION: Final = 0  # tags
QUERY: Final = 1
DIFFERENCE: Final = 2
BROKER_REQUEST: Final = 3
ASSIGNMENT: Final = 8
NO_TAG: Final = -1

_NO_METADATA: Final = (b"\x80", b"\xc0")
_NIL: Final = b"\xc0"
_UUID_BYTES: Final = 16
_BINS: Final = (0xC4, 0xC5, 0xC6)


class Form(IntEnum):
    """The form of messages to a client. The client's first byte chooses tags, and its query `ARRAYS`.

    `ARRAYS` has a tag before each untagged message, for clients of March and April 2016.
    """

    UNTAGGED = 0
    TAGGED = 1
    ARRAYS = 2


class Packed:
    """A message to subscribers, packed at most once for each form."""

    __slots__ = ("_tagged_form", "_untagged_form")

    tag: int

    def __init__(self, untagged: bytes = b"", tagged: bytes = b"") -> None:
        self._untagged_form, self._tagged_form = untagged, tagged

    def packed(self, form: Form) -> bytes:
        """Return the message in MessagePack, in a form."""
        if form is Form.TAGGED:
            packed = self._tagged_form = self._tagged_form or self._tagged()
        elif form is Form.UNTAGGED:
            packed = self._untagged_form = self._untagged_form or self._untagged()
        else:
            packed = bytes((self.tag,)) + self.packed(Form.UNTAGGED)
        return packed

    def _untagged(self) -> bytes:
        raise NotImplementedError

    def _tagged(self) -> bytes:
        raise NotImplementedError


class Publication(Packed):
    """A publication. `value` is the MessagePack that came; in `metadata`, None deletes a key.

    `untagged` and `tagged` are the message in that form, if it came as it would be packed. `form` is that of
    its producer.
    """

    __slots__ = ("form", "id", "metadata", "value")

    tag = PUBLICATION

    def __init__(
        self, id: str, metadata: dict[str, Any], value: bytes, untagged: bytes = b"", tagged: bytes = b""
    ) -> None:
        super().__init__(untagged, tagged)
        self.id, self.metadata, self.value = id, metadata, value
        self.form = Form.UNTAGGED

    def _untagged(self) -> bytes:
        return b"\x93" + pack(self.id) + pack(self.metadata) + self.value

    def _tagged(self) -> bytes:
        metadata = pack(self.metadata) if self.metadata else b"\x80"
        return b"\x00\x83\xa4UUID" + pack(self.id) + b"\xa8Metadata" + metadata + b"\xa5Value" + self.value


class Difference(Packed):
    """The items that enter and leave the set of a subscriber: ids of producers, or values of a selection."""

    __slots__ = ("gone", "new")

    tag = DIFFERENCE

    def __init__(self, new: Sequence[Any] = (), gone: Sequence[Any] = ()) -> None:
        super().__init__()
        self.new, self.gone = tuple(new), tuple(gone)

    def __repr__(self) -> str:
        return f"Difference(new={self.new!r}, gone={self.gone!r})"

    def _untagged(self) -> bytes:
        return pack({"New": self.new, "Del": self.gone})

    def _tagged(self) -> bytes:
        return self.packed(Form.ARRAYS)


class Subscription(NamedTuple):
    """A query of a client, in its words. `form` is that of messages to the client from now on."""

    query: str
    form: Form


class BrokerRequest:
    """A request for the address of a broker. Clients of the original send it to their coordinator."""

    __slots__ = ()


class Refused(NamedTuple):
    """A complete object that is no message, with a reason of `REFUSED`, and the form of its client.

    `answer` says why a query is wrong; it is "" for other messages.
    """

    reason: str
    form: Form
    answer: str = ""


REFUSED: Final = {
    "publication": "no array of three, or a map without UUID",
    "id": "no string, neither UTF-8 nor the 16 bytes of a UUID, or too long",
    "metadata": "no map of strings to values, or not UTF-8",
    "query": "no string, or not UTF-8",
    "difference": "only a broker sends differences",
}
"""The reasons of `Refused`, with their meanings."""

Message = Publication | Subscription | BrokerRequest | Refused


def pack(value: Any) -> bytes:
    """Return a value in MessagePack."""
    packed: bytes = msgpack.packb(value)
    return packed


def error(text: str) -> bytes:
    """Return the answer to a wrong query of an untagged client. Tagged clients have no such answer."""
    return pack({"Error": text})


def refusal(first: bytes, why: str) -> bytes:
    """Return the answer to a refused client that begins as an untagged one; a tagged one takes none."""
    return error(why) if first[:1] >= b"\x80" else b""


def assignment(address: str) -> bytes:
    """Return the answer to a request for a broker. `address` is `HOST:PORT`."""
    info = {"BrokerID": address, "ClientBrokerAddr": address, "CoordBrokerAddr": address}
    return bytes((ASSIGNMENT,)) + pack({"BrokerInfo": info})


def read(kind: int | None, family: int, parts: list[bytes], bounds: Bounds) -> Message:
    """Read a message from its kind (a tag, or `NO_TAG`) and the elements of its array or map.

    A message that is a string has itself as its one element.
    """
    form = Form.UNTAGGED if kind == NO_TAG else Form.TAGGED
    if family == STRING:
        return _subscription(parts[0], Form.ARRAYS if form else form)
    if kind == QUERY:
        return _subscription(_fields(parts).get("Query", _NIL), form)
    if kind == BROKER_REQUEST:
        return BrokerRequest()
    if family == MAP and kind != PUBLICATION:
        return Refused("difference", form)
    three = parts if family == ARRAY else _three(_fields(parts))
    found = _publication(three[0], three[1], three[2], bounds) if len(three) == 3 else "publication"
    if isinstance(found, str):
        return Refused(found, form)
    found.form = form
    return found


def value_last(parts: list[bytes]) -> bool:
    """Return whether the value is the last element of a publication, which is an array or a map."""
    return len(parts) == 3 or _text(parts[-2]) == "Value"


def _three(fields: Mapping[str | None, bytes]) -> list[bytes]:
    """Return id, metadata and value of a tagged publication; an empty list if it has no id."""
    if "UUID" not in fields:
        return []
    return [fields["UUID"], fields.get("Metadata", _NIL), fields.get("Value", _NIL)]


def _fields(parts: list[bytes]) -> dict[str | None, bytes]:
    """Return the packed values of a map by their keys; of equal keys the last one."""
    return dict(zip(map(_text, parts[::2]), parts[1::2], strict=False))


def _subscription(raw: bytes, form: Form) -> Subscription | Refused:
    text = _text(raw)
    if text is None:
        return Refused("query", form, "a query is a string in UTF-8")
    return Subscription(text, form)


def _publication(raw_id: bytes, raw_metadata: bytes, value: bytes, bounds: Bounds) -> Publication | str:
    """Return the publication, or the reason why it is refused."""
    id = _id(raw_id)
    if id is None or len(id.encode()) > bounds.id_bytes:
        return "id"
    metadata = {} if raw_metadata in _NO_METADATA else _metadata(raw_metadata)
    return "metadata" if metadata is None else Publication(id, metadata, value)


def _id(raw: bytes) -> str | None:
    """Return the id in a text, or in the 16 bytes of a UUID; None for all else.

    A bin of 16 bytes that is printable text is taken as that.
    """
    text = _text(raw)
    if text is not None and (raw[0] not in _BINS or text.isprintable()):
        return text
    packed = raw[1 + LENGTH_BYTES.get(raw[0], 0) :] if FAMILY[raw[0]] == STRING else b""
    return str(UUID(bytes=packed)) if len(packed) == _UUID_BYTES else text


def _text(raw: bytes) -> str | None:
    """Return the text of a str or a bin in UTF-8; None for all else."""
    if FAMILY[raw[0]] != STRING:
        return None
    try:
        return raw[1 + LENGTH_BYTES.get(raw[0], 0) :].decode()
    except UnicodeDecodeError:
        return None


def _metadata(raw: bytes) -> dict[str, Any] | None:
    """Return a map with text for each bin. None if it is no map, or a key or text is not UTF-8."""
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
