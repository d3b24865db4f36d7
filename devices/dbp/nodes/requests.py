"""The messages between a client and a service. Pure (docs/wire/dbp.md, "Between client and service")."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from devices.dbp.catalog import wire
from devices.dbp.catalog.wire import Command

ERROR: Final = b"Error"
WORD_BYTES: Final = 64
_RESERVED: Final = frozenset((wire.PING, wire.PONG, wire.EXIT, wire.HEARTBEAT, wire.DISCONNECT, ERROR))


class Request(NamedTuple):
    """A request or a reply: its word, and the frames of its body.

    `binary_time`: its time is 4 bytes of float, and so must be that of the reply.
    """

    word: str
    body: tuple[bytes, ...]
    binary_time: bool = False

    @property
    def data(self) -> bytes:
        """All frames of the body, joined."""
        return b"".join(self.body)


REFUSED: Final = {
    "frames": "less than word and time",
    "delimiter": "the first frame is not empty",
    "time": "neither 4 bytes of a finite float nor a decimal number",
    "word": "not 1 to 64 printable characters of ASCII",
}
"""The reasons for which `parse` refuses a message, with their meanings."""


def parse(frames: Sequence[bytes]) -> Request | str:
    """Return what a message says, or the reason why it says nothing. Its first frame is the empty one."""
    if len(frames) < 3:
        return "frames"
    delimiter, word, time, *body = frames
    if delimiter:
        return "delimiter"
    if not wire.is_time(time):
        return "time"
    if not _is_word(word):
        return "word"
    return Request(word.decode(), tuple(body), len(time) == 4)


def _is_word(word: bytes) -> bool:
    return 0 < len(word) <= WORD_BYTES and word.isascii() and word.decode().isprintable()


def check_word(word: str) -> None:
    """Raise ValueError if a service cannot answer requests with this word."""
    raw = word.encode()
    if not _is_word(raw) or raw in _RESERVED:
        raise ValueError(f"{word[:64]!r} cannot be the word of a request")


def pack(request: Request, wall_s: float) -> list[bytes]:
    """Return the frames of a request or reply. `wall_s`: seconds since 1970."""
    return wire.pack(Command(request.word.encode(), request.body), request.binary_time, wall_s)


def refusal(reason: str, binary_time: bool) -> Request:
    """Return the reply that says why there is no answer."""
    return Request(ERROR.decode(), (reason.encode(),), binary_time)
