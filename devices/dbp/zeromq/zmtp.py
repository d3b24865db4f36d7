"""ZMTP 3.0 with the mechanism NULL, the protocol of ZeroMQ sockets on TCP (23/ZMTP). Pure.

docs/wire/zmtp.md is the description.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from bus.text import SAID_BYTES, quoting

SIGNATURE_BYTES: Final = 10
GREETING_BYTES: Final = 64
COMMAND_BYTES: Final = 1024
IDENTITY_BYTES: Final = 255

_NULL: Final = b"NULL".ljust(20, b"\0")
GREETING: Final = b"\xff".ljust(9, b"\0") + b"\x7f\x03\x00" + _NULL + bytes(32)
"""Signature, version 3.0, mechanism, no server, filler."""

_MORE, _LONG, _COMMAND = 1, 2, 4
_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")

ROUTER: Final = b"ROUTER"
DEALER: Final = b"DEALER"
REQ: Final = b"REQ"
REP: Final = b"REP"
PUB: Final = b"PUB"
XPUB: Final = b"XPUB"
SUB: Final = b"SUB"
XSUB: Final = b"XSUB"

FITS: Final = {
    ROUTER: frozenset((ROUTER, DEALER, REQ)),
    DEALER: frozenset((ROUTER, DEALER, REP)),
    PUB: frozenset((SUB, XSUB)),
    XPUB: frozenset((SUB, XSUB)),
    SUB: frozenset((PUB, XPUB)),
}
"""The types of peers that each type of our sockets can have."""


class Hello(NamedTuple):
    """The peer's signature has come: the peer waits for our greeting."""


class Ready(NamedTuple):
    """The handshake is complete. `identity` is the peer's name at a router; b"" lets the router choose."""

    identity: bytes


class Ping(NamedTuple):
    """The peer asks for a `pong` with its context."""

    context: bytes


Frames = list[bytes]
Said = Hello | Ready | Ping | Frames
"""An item of a peer's stream; a message is the list of its frames."""


def ready(socket_type: bytes) -> bytes:
    """Return the command that follows our greeting."""
    return command(b"READY", _property(b"Socket-Type", socket_type) + _property(b"Identity", b""))


def pong(context: bytes) -> bytes:
    """Return the answer to a ping."""
    return command(b"PONG", context)


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + _U32.pack(len(value)) + value


def command(name: bytes, data: bytes) -> bytes:
    """Return the bytes of a command on the stream."""
    return _frame(_COMMAND, bytes([len(name)]) + name + data)


def refusal(first: bytes, why: str) -> bytes:
    """Return the answer to a refused peer that begins with a signature: a greeting, then ERROR."""
    if not first.startswith(GREETING[:1]):
        return b""
    reason = why.encode()[:255]
    return GREETING + command(b"ERROR", bytes([len(reason)]) + reason)


def pack(frames: Sequence[bytes]) -> bytes:
    """Return the bytes of a message on the stream. It has at least one frame."""
    last = len(frames) - 1
    return b"".join(_frame(0 if number == last else _MORE, frame) for number, frame in enumerate(frames))


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) < 256:
        return bytes((flags, len(body))) + body
    return bytes((flags | _LONG,)) + _U64.pack(len(body)) + body


class Cutter:
    """Cuts the stream of a peer into items (`bus.serving.objects.Cutter`).

    `fits` has the types that the peer's socket may have. A message has at most `message_bytes` bytes and
    `frames` frames; a larger one is a fault as soon as that shows.
    """

    def __init__(self, fits: Collection[bytes], message_bytes: int, frames: int) -> None:
        self.fault = ""
        self._fits, self._message_bytes, self._frames_max = fits, message_bytes, frames
        self._rest = bytearray()
        self._frames: Frames = []  # of a message whose last frame has not come
        self._frames_bytes = 0
        self._step = self._signature

    @property
    def waiting(self) -> int:
        """The bytes that wait for the rest of an item."""
        return len(self._rest) + self._frames_bytes

    def cut(self, data: bytes) -> list[Said]:
        """Take the next bytes, and return the items that are complete."""
        self._rest += data
        said: list[Said] = []
        at = 0
        while not self.fault:
            end = self._step(at, said)
            if end == at:
                break
            at = end
        del self._rest[:at]
        if self.fault:
            self._drop()
        return said

    def _drop(self) -> None:
        self._rest.clear()
        self._frames, self._frames_bytes = [], 0

    def _signature(self, at: int, said: list[Said]) -> int:
        rest = self._rest
        if (rest and rest[0] != 0xFF) or (len(rest) >= SIGNATURE_BYTES and not rest[9] & 1):
            self.fault = quoting("no ZMTP", bytes(rest[:SAID_BYTES]))
        elif len(rest) >= SIGNATURE_BYTES:
            said.append(Hello())
            self._step = self._greeting
            return SIGNATURE_BYTES
        return at

    def _greeting(self, at: int, said: list[Said]) -> int:
        end = at + GREETING_BYTES - SIGNATURE_BYTES
        if len(self._rest) > at and self._rest[at] < 3:
            self.fault = f"ZMTP {self._rest[at]}"
        if self.fault or len(self._rest) < end:
            return at
        if self._rest[at + 2 : at + 22] != _NULL:
            self.fault = "another mechanism than NULL"
            return at
        self._step = self._frame
        self._is_ready = False
        return end

    def _frame(self, at: int, said: list[Said]) -> int:
        rest = self._rest
        if len(rest) - at < 2:
            return at
        flags = rest[at]
        body = at + (9 if flags & _LONG else 2)
        if len(rest) < body:
            return at
        size = _U64.unpack_from(rest, at + 1)[0] if flags & _LONG else rest[at + 1]
        self.fault = self._refusal(flags, size)
        end = body + size
        if self.fault or len(rest) < end:
            return at
        content = bytes(rest[body:end])
        if flags & _COMMAND:
            self._take_command(content, said)
        else:
            self._take_frame(flags, content, said)
        return end

    def _refusal(self, flags: int, size: int) -> str:
        if flags & _COMMAND:
            legal = flags in (_COMMAND, _COMMAND | _LONG) and not self._frames
            return "" if legal and size <= COMMAND_BYTES else "an illegal command"
        if flags > _MORE | _LONG:
            return f"flags 0x{flags:02x}"
        if not self._is_ready:
            return "a message before READY"
        if self._frames_bytes + size > self._message_bytes:
            return f"a message of more than {self._message_bytes} bytes"
        if len(self._frames) >= self._frames_max:
            return f"a message of more than {self._frames_max} frames"
        return ""

    def _take_frame(self, flags: int, content: bytes, said: list[Said]) -> None:
        self._frames.append(content)
        self._frames_bytes += len(content)
        if not flags & _MORE:
            said.append(self._frames)
            self._frames, self._frames_bytes = [], 0

    def _take_command(self, content: bytes, said: list[Said]) -> None:
        size = int.from_bytes(content[:1], "big")
        name, data = content[1 : 1 + size], content[1 + size :]
        if not self._is_ready:
            self._take_ready(name, data, said)
        elif name == b"ERROR":
            size = data[0] if data else 0
            self.fault = quoting("the peer refuses", bytes(data[1 : 1 + size]))
        elif name == b"PING":
            said.append(Ping(data[2:18]))

    def _take_ready(self, name: bytes, data: bytes, said: list[Said]) -> None:
        found = {key.lower(): value for key, value in _properties(data)}
        kind, identity = found.get(b"socket-type", b""), found.get(b"identity", b"")
        if name != b"READY":
            self.fault = "no READY"
        elif kind not in self._fits:
            self.fault = "a type of socket that does not fit"
        elif len(identity) > IDENTITY_BYTES or identity.startswith(b"\0"):
            self.fault = "an illegal identity"
        else:
            self._is_ready = True
            said.append(Ready(identity))


def _properties(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and values, as far as they are complete."""
    at = 0
    while at < len(data):
        name = at + 1 + data[at]
        if name + 4 > len(data):
            return
        end = name + 4 + _U32.unpack_from(data, name)[0]
        if end > len(data):
            return
        yield data[at + 1 : name], data[name + 4 : end]
        at = end
