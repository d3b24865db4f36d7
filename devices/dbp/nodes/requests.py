"""The messages between a client and a service. Pure (docs/wire/dbp.md, "Between client and service")."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from devices.dbp.catalog import wire
from devices.dbp.catalog.wire import Command
from devices.dbp.zeromq.limits import Limits

ERROR: Final = b"Error"
WORD_BYTES: Final = 64
_RESERVED: Final = frozenset((wire.PING, wire.PONG, wire.EXIT, wire.HEARTBEAT, wire.DISCONNECT, ERROR))


class Request(NamedTuple):
    """A request or a reply: its word, and the frames of its body.

    `binary_time` says that its time is a 4-byte float; a reply needs the same form.
    """

    word: str
    body: tuple[bytes, ...]
    binary_time: bool = False

    @property
    def data(self) -> bytes:
        """All frames of the body, joined."""
        return b"".join(self.body)


REFUSED: Final = {
    "frames": "fewer frames than word and time",
    "delimiter": "the first frame is not empty",
    "time": "neither 4 bytes of a finite float nor a decimal number",
    "word": "not 1 to 64 printable characters of ASCII",
}
"""The reasons for which `parse` refuses a message, with their meanings."""


def parse(frames: Sequence[bytes]) -> Request | str:
    """Return the request or reply in a message, whose first frame is empty, or the reason of its refusal."""
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


def check_asked(word: str) -> None:
    """Raise ValueError for a word that no client can ask with: it may be any of a service, or a ping."""
    if word != wire.PING.decode():
        check_word(word)


def check_word(word: str) -> None:
    """Raise ValueError if no request can have this word."""
    raw = word.encode(errors="surrogateescape")  # of what came from a terminal in another encoding
    if not _is_word(raw) or raw in _RESERVED:
        raise ValueError(f"{word[:64]!r} cannot be the word of a request: 1 to {WORD_BYTES} letters of ASCII")


def pack(request: Request, wall_s: float) -> list[bytes]:
    """Return the frames of a request or reply. `wall_s` is in seconds since 1970."""
    return wire.pack(Command(request.word.encode(), request.body), request.binary_time, wall_s)


def fits(frames: Sequence[bytes], limits: Limits) -> bool:
    """Return whether a node with these limits takes a message: beyond them it ends the connection."""
    return len(frames) <= limits.frames and sum(map(len, frames)) <= limits.message_bytes


def refusal(reason: str, binary_time: bool) -> Request:
    """Return the reply that refuses a request for a reason."""
    return Request(ERROR.decode(), (reason.encode(),), binary_time)
