"""The messages that the ends of a durable trunk send each other (docs/wire/durable.md). Pure."""

from collections.abc import Sequence
from struct import Struct, error
from typing import Final, NamedTuple

from bus.errors import BusError
from bus.journal.ranges import Range
from bus.wire.batch import LENGTH_BYTES, Batch, Buffer

HEAD: Final = bytes.fromhex("e120f000")
"""The beginning of all of them; an appliance that does not know it rejects it as `malformed`."""
VERSION: Final = 1
HELLO, HAVE, RECORD = b"\1", b"\2", b"\3"
LIVE, BACKLOG, REPLAYED = 0, 1, 2
"""The lane of a record; `REPLAYED` is added to it for what a stand-in sent at a takeover."""
SYNCS: Final = 1
"""The flag of a hello: this end acknowledges after its fdatasync."""
NO_JOURNAL: Final = 0
"""The journal of a `have` that acknowledges nothing: so much of a backlog is taken. Older ends ignore it."""
RANGES_MAX: Final = 2048
"""Ranges of one `have`."""
NAME_BYTES_MAX: Final = 255

_KIND_AT: Final = len(HEAD)
_BODY_AT: Final = _KIND_AT + 1
_HELLO, _HAVE, _RANGE, _RECORD = Struct(">BBQ"), Struct(">QH"), Struct(">QQ"), Struct(">BIQ")
_U32: Final = 0xFFFFFFFF


class DurableError(BusError):
    """A message of a durable trunk that cannot be read."""


class EndName(NamedTuple):
    """The name of an end: a bus of a gateway of a system."""

    system: str
    gateway: str
    bus: str


class Hello(NamedTuple):
    """A hello: the name of this end, its journal, 0 for none, and whether it syncs before it acknowledges."""

    name: EndName
    journal: int
    syncs: bool


class Have(NamedTuple):
    """The numbers of `journal` that an end has: the acknowledgement."""

    journal: int
    ranges: tuple[Range, ...]


class Carried(NamedTuple):
    """A record on its way: the lane, and its age in ms when it was sent.

    All numbers from `since` to the record are settled: the end has them, or they are not for it.
    """

    lane: int
    age_ms: int
    since: int
    record: bytes


Message = Hello | Have | Carried


def is_durable(message: Buffer) -> bool:
    """Tell whether a message belongs to a durable trunk."""
    return len(message) > _KIND_AT and bytes(message[:_KIND_AT]) == HEAD


def begins_durable(batch: Batch) -> bool:
    """Tell whether the first message of a batch belongs to a durable trunk."""
    return bytes(batch.data[LENGTH_BYTES : LENGTH_BYTES + _KIND_AT]) == HEAD


def hello(said: Hello) -> bytes:
    """Return the message of a hello."""
    names = b"".join(map(_text, said.name))
    return HEAD + HELLO + _HELLO.pack(VERSION, SYNCS if said.syncs else 0, said.journal) + names


def _text(text: str) -> bytes:
    data = text.encode()[:NAME_BYTES_MAX]
    return bytes((len(data),)) + data


def have(journal: int, ranges: Sequence[Range]) -> bytes:
    """Return the acknowledgement of the numbers in `ranges`; the last `RANGES_MAX`, if they are more."""
    some = ranges[-RANGES_MAX:]
    return HEAD + HAVE + _HAVE.pack(journal, len(some)) + b"".join(_RANGE.pack(*one) for one in some)


def carried(lane: int, age_ms: int, since: int, record: bytes) -> bytes:
    """Return the message that carries a record."""
    return HEAD + RECORD + _RECORD.pack(lane, max(0, min(age_ms, _U32)), since) + record


def parse(message: bytes) -> Message:
    """Return what a message says. Raises `DurableError`."""
    kind, body = message[_KIND_AT:_BODY_AT], message[_BODY_AT:]
    try:
        if kind == RECORD:
            lane, age_ms, since = _RECORD.unpack_from(body)
            return Carried(lane, age_ms, since, body[_RECORD.size :])
        if kind == HAVE:
            return _parse_have(body)
        if kind == HELLO:
            return _parse_hello(body)
    except (error, ValueError) as fault:
        raise DurableError(f"a message of a durable trunk cannot be read: {fault}") from None
    raise DurableError("a message of a durable trunk is of an unknown kind")


def _parse_hello(body: bytes) -> Hello:
    version, flags, journal = _HELLO.unpack_from(body)
    if version != VERSION:
        raise DurableError(f"the other end speaks version {version} of durable trunks, this one {VERSION}")
    names, at = list[str](), _HELLO.size
    for _ in range(3):
        size = body[at] if at < len(body) else 0
        names.append(_name(body[at + 1 : at + 1 + size], size))
        at += 1 + size
    return Hello(EndName(*names), journal, bool(flags & SYNCS))


def _name(data: bytes, size: int) -> str:
    text = data.decode()
    if not size or len(data) != size or not text.isprintable():
        raise ValueError("a name is missing or not printable")
    return text


def _parse_have(body: bytes) -> Have:
    journal, count = _HAVE.unpack_from(body)
    ranges = tuple(_RANGE.unpack_from(body, _HAVE.size + at * _RANGE.size) for at in range(count))
    ends = [number for one in ranges for number in one]
    if ends != sorted(ends):
        raise ValueError("ranges that are out of order")
    return Have(journal, ranges)
