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
"""One end of a stream may send so much before the other end gives credit."""
DATA_BYTES: Final = 32 << 10
_BYTES_MAX: Final = {
    HELLO: 4096, OFFER: 1 << 20, OPEN: 4096, DATA: DATA_BYTES, CREDIT: 4, CLOSE: 256, PING: 0, PONG: 0,
}  # fmt: skip
_OF_STREAMS: Final = frozenset((OPEN, DATA, CREDIT, CLOSE))
_BOUNDS: Final = Bounds(depth=18, items=1 << 16)
_CREDIT: Final = Struct(">I")


class Head(NamedTuple):
    """The head of a frame: `stream` is 0 for frames that belong to none."""

    kind: int
    stream: int
    size: int


class Hello(NamedTuple):
    """The first frame of each side. `id` tells proxies apart; `name` is for people."""

    id: str
    name: str


class Target(NamedTuple):
    """An interface of a service, to which a stream leads."""

    service: str
    interface: str


def pack(kind: int, stream: int = 0, body: bytes = b"") -> bytes:
    """Return a frame."""
    return HEAD.pack(kind, stream, len(body)) + body


def read_head(data: bytes) -> Head | None:
    """Return the head in exactly `HEAD.size` bytes; None for one that no frame can have."""
    head = Head(*HEAD.unpack(data))
    if head.size > _BYTES_MAX.get(head.kind, -1) or (head.stream > 0) is not (head.kind in _OF_STREAMS):
        return None
    return head


def pack_hello(hello: Hello) -> bytes:
    return pack(HELLO, body=json.dumps({"version": VERSION, **hello._asdict()}).encode())


def read_hello(body: bytes) -> Hello | str:
    """Return what a first frame says, or why it cannot be talked to."""
    match read_objects(body, _BOUNDS):
        case {"version": int(version)} if version != VERSION and not isinstance(version, bool):
            return f"it speaks version {version}, and this is {VERSION}"
        case {"version": int(version), "id": str(id_), "name": str(name)} if id_ and not isinstance(
            version, bool
        ):
            return Hello(id_[:64], plain(name[:200]))
    return "its first frame is no hello"


def pack_offer(services: dict[str, dict[str, Any]]) -> bytes | None:
    """Return the frame that offers these services; None if they are too many for one."""
    body = json.dumps(services).encode()
    return pack(OFFER, body=body) if len(body) <= _BYTES_MAX[OFFER] else None


def read_offer(body: bytes) -> dict[str, dict[str, Any]] | None:
    """Return what is offered by name; None for a body that is no offer."""
    fields = read_objects(body, _BOUNDS)
    if fields is None:
        return None
    return {name: value for name, value in fields.items() if isinstance(value, dict)}


def pack_open(stream: int, target: Target) -> bytes:
    return pack(OPEN, stream, json.dumps(target._asdict()).encode())


def read_open(body: bytes) -> Target | None:
    match read_objects(body, _BOUNDS):
        case {"service": str(service), "interface": str(interface)}:
            return Target(service, interface)
    return None


def pack_credit(stream: int, size: int) -> bytes:
    return pack(CREDIT, stream, _CREDIT.pack(size))


def read_credit(body: bytes) -> int:
    """Return the credit; 0 for a body that has none."""
    return int(_CREDIT.unpack(body)[0]) if len(body) == _CREDIT.size else 0


def pack_close(stream: int, reason: str = "") -> bytes:
    return pack(CLOSE, stream, reason.encode()[: _BYTES_MAX[CLOSE]])
