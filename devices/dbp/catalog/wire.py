"""The multipart messages and datagrams of DBP. Pure.

docs/wire/dbp.md is the description. A message is a list of frames that begins with an empty one: as at a
ROUTER, but without the identity.
"""

import struct
from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from devices.dbp.catalog.body import read_objects
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.times import decimal, is_decimal

INFO_REQUEST: Final = b"u_U"
INFO_REPLY: Final = b"o_O"
REGISTRATION: Final = b"UwU"
UPDATE: Final = b"UoU"
APPROVED: Final = b"OwO"
DENIED: Final = b"OmO"
ACKNOWLEDGED: Final = b"u.u"
HEARTBEAT: Final = b"<3"
DISCONNECT: Final = b"</3"
PING: Final = b"ping"
PONG: Final = b"pong"
MONITOR: Final = b"monitor"
EXIT: Final = b"<\\3"

_TEXTS: Final = frozenset((INFO_REQUEST, DENIED, HEARTBEAT, DISCONNECT, PONG, MONITOR))
_FIELDS: Final = frozenset((INFO_REPLY, REGISTRATION, UPDATE))
_OPTIONAL_FIELDS: Final = frozenset((APPROVED, ACKNOWLEDGED))
_WORDS: Final = _TEXTS | _FIELDS | _OPTIONAL_FIELDS | {PING}

_FLOAT: Final = struct.Struct("<f")


class Command(NamedTuple):
    """A command to send, with the frames of its body."""

    word: bytes
    body: tuple[bytes, ...] = ()


class Received(NamedTuple):
    """A received command. `binary_time` says that its time is a 4-byte float; a reply needs the same form.

    `texts` has the frames of a body of names or reasons, without empty ones, `fields` a body in JSON.
    """

    word: bytes
    binary_time: bool
    texts: tuple[str, ...] = ()
    fields: Mapping[str, Any] = MappingProxyType({})


class Refused(NamedTuple):
    """A message that is no command, with a reason of `REFUSED`."""

    reason: str


REFUSED: Final = {
    "size": "too many frames, or too many bytes in them",
    "frames": "fewer frames than the command has",
    "delimiter": "the first frame is not empty",
    "command": "no command",
    "exit": r"<\3 would end a node of the original; no peer may do that",
    "time": "neither 4 bytes of a finite float nor a decimal number",
    "text": "a name or reason that is too long, not UTF-8 or not printable; or a beat of no or several names",
    "json": "no object, not UTF-8, too deep, too many items, or a number that is not finite",
}
"""The reasons of `Refused`, with their meanings."""


def parse(frames: Sequence[bytes], bounds: Bounds) -> Received | Refused:
    """Read a message, whose first frame must be empty."""
    if len(frames) > bounds.frames or sum(map(len, frames)) > bounds.message_bytes:
        return Refused("size")
    if len(frames) < 3:
        return Refused("frames")
    delimiter, word, time, *body = frames
    if delimiter:
        return Refused("delimiter")
    if word not in _WORDS:
        return Refused("exit" if word == EXIT else "command")
    if not is_time(time):
        return Refused("time")
    return _with_body(Received(word, len(time) == 4), body, bounds)


def is_time(time: bytes) -> bool:
    """Return whether a frame is a time in one of the two forms."""
    if len(time) == 4:
        return isfinite(_FLOAT.unpack(time)[0])
    return is_decimal(time)


def _with_body(received: Received, body: list[bytes], bounds: Bounds) -> Received | Refused:
    word = received.word
    if word == PING or (word in _OPTIONAL_FIELDS and not any(body)):
        return received
    if word != DISCONNECT and not body:
        return Refused("frames")
    if word in _TEXTS:
        return _with_texts(received, body, bounds)
    fields = read_objects(b"".join(body), bounds)
    return Refused("json") if fields is None else received._replace(fields=fields)


def _with_texts(received: Received, body: list[bytes], bounds: Bounds) -> Received | Refused:
    texts = tuple(_text(frame, bounds) for frame in body if frame)
    if not all(texts) or (received.word == HEARTBEAT and len(texts) != 1):
        return Refused("text")
    return received._replace(texts=texts)


def _text(frame: bytes, bounds: Bounds) -> str:
    """Return the text of a frame; "" if it is no text within the bounds."""
    try:
        text = frame.decode()
    except UnicodeDecodeError:
        return ""
    return text if is_text(text, bounds) else ""


def is_text(text: str, bounds: Bounds) -> bool:
    """Return whether a text can be a name: printable, not empty, and not too long."""
    return bool(text) and text.isprintable() and len(text.encode()) <= bounds.text_bytes


def pack(command: Command, binary_time: bool, wall_s: float) -> list[bytes]:
    """Return the frames of a command. `wall_s` is in seconds since 1970.

    A command without a body gets one empty frame, for the original implementation ignores a shorter message.
    """
    time = _FLOAT.pack(wall_s) if binary_time else decimal(wall_s)
    return [b"", command.word, time, *(command.body or (b"",))]


def parse_datagram(data: bytes, bounds: Bounds) -> Received | Refused:
    """Read a heartbeat or disconnect by UDP: command, decimal time and name, with a blank between them."""
    received = parse([b"", *data.split(b" ", 2)], bounds)
    if isinstance(received, Refused):
        return received
    if received.word not in (HEARTBEAT, DISCONNECT):
        return Refused("command")
    if received.binary_time:
        return Refused("time")
    return received if received.texts else Refused("text")


def pack_datagram(word: bytes, name: str, wall_s: float) -> bytes:
    """Return the datagram of a heartbeat or disconnect."""
    return b" ".join(pack(Command(word, (name.encode(),)), False, wall_s)[1:])
