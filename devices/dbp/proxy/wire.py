"""The frames between two proxies (docs/wire/proxy.md). Pure."""

import json
from struct import Struct
from typing import Any, Final, NamedTuple

from bus.text import plain
from devices.dbp.catalog.body import read_objects
from devices.dbp.catalog.bounds import Bounds

HEAD: Final = Struct(">BII")
VERSION: Final = 1
HELLO, OFFER, OPEN, DATA, CREDIT, CLOSE, PING, PONG = range(1, 9)
WINDOW_BYTES: Final = 256 << 10
"""The bytes that one end of a stream may send before the other end gives credit."""
DATA_BYTES: Final = 32 << 10
_BYTES_MAX: Final = {
    HELLO: 4096, OFFER: 1 << 20, OPEN: 4096, DATA: DATA_BYTES, CREDIT: 4, CLOSE: 256, PING: 0, PONG: 0,
}  # fmt: skip
_OF_STREAMS: Final = frozenset((OPEN, DATA, CREDIT, CLOSE))
_BOUNDS: Final = Bounds(depth=18, items=_BYTES_MAX[OFFER] // 2)  # an item has at least two bytes
_CREDIT: Final = Struct(">I")


class Head(NamedTuple):
    """The head of a frame. `stream` is 0 for a frame that belongs to no stream."""

    kind: int
    stream: int
    size: int


class Hello(NamedTuple):
    """The first frame of each side. `id` tells proxies apart; `name` is for logs."""

    id: str
    name: str


class Target(NamedTuple):
    """The target of a stream: an interface of a service."""

    service: str
    interface: str


def pack(kind: int, stream: int = 0, body: bytes = b"") -> bytes:
    """Return a frame."""
    return HEAD.pack(kind, stream, len(body)) + body


def read_head(data: bytes) -> Head | None:
    """Return the head in exactly `HEAD.size` bytes; None if no frame can have it."""
    head = Head(*HEAD.unpack(data))
    if head.size > _BYTES_MAX.get(head.kind, -1) or (head.stream > 0) is not (head.kind in _OF_STREAMS):
        return None
    return head


def pack_hello(hello: Hello) -> bytes:
    """Return the first frame."""
    return pack(HELLO, body=json.dumps({"version": VERSION, **hello._asdict()}).encode())


def read_hello(body: bytes) -> Hello | str:
    """Return the hello in the body of a first frame, or why it is refused."""
    match read_objects(body, _BOUNDS):
        case {"version": int(version)} if version != VERSION and not isinstance(version, bool):
            return f"it speaks version {version}, and this is {VERSION}"
        case {"version": int(version), "id": str(id_), "name": str(name)} if id_ and not isinstance(
            version, bool
        ):
            return Hello(id_[:64], plain(name[:200]))
    return "its first frame is no hello"


def pack_offer(services: dict[str, dict[str, Any]]) -> bytes | None:
    """Return the frame that offers these services; None if they are too many for one frame."""
    body = json.dumps(services).encode()
    return pack(OFFER, body=body) if len(body) <= _BYTES_MAX[OFFER] else None


def read_offer(body: bytes) -> dict[str, dict[str, Any]] | None:
    """Return the offered services by name; None if the body is malformed."""
    fields = read_objects(body, _BOUNDS)
    if fields is None:
        return None
    return {name: value for name, value in fields.items() if isinstance(value, dict)}


def pack_open(stream: int, target: Target) -> bytes:
    """Return the frame that opens a stream."""
    return pack(OPEN, stream, json.dumps(target._asdict()).encode())


def read_open(body: bytes) -> Target | None:
    """Return the target of a stream that is opened; None if the body is malformed."""
    match read_objects(body, _BOUNDS):
        case {"service": str(service), "interface": str(interface)}:
            return Target(service, interface)
    return None


def pack_credit(stream: int, size: int) -> bytes:
    """Return the frame that gives credit for `size` bytes."""
    return pack(CREDIT, stream, _CREDIT.pack(size))


def read_credit(body: bytes) -> int:
    """Return the credit in bytes; 0 if the body is malformed."""
    return int(_CREDIT.unpack(body)[0]) if len(body) == _CREDIT.size else 0


def pack_close(stream: int, reason: str = "") -> bytes:
    """Return the frame that ends a stream. `reason` is "" for an ordinary end."""
    return pack(CLOSE, stream, reason.encode()[: _BYTES_MAX[CLOSE]])
