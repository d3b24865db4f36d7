"""The envelope with a time, and how two ends of a trunk agree to send it (docs/wire/envelope.md). Pure.

It is the envelope of `bus.wire.envelope` with one flag more and, behind it, the time at which the message
entered the enveloped network. An appliance that does not know the flag rejects it as `malformed`, so only who
has offered to take such envelopes is sent any; everybody else gets the same message without its time.
"""

from struct import Struct
from typing import Final, NamedTuple

from bus.errors import FrameError
from bus.wire.batch import Buffer
from bus.wire.envelope import (
    ENVELOPE_BYTES,
    HOPS_MAX,
    LAYOUT,
    LENGTH_MARK,
    MAGIC,
    Envelope,
    is_enveloped,
    wrap,
)
from bus.wire.frame import is_frame

FLAG_TIMED: Final = 0x4
TIMED_BYTES: Final = ENVELOPE_BYTES + 4
SAME_MS: Final = 10_000
"""Times of copies of one message are no further apart; a number comes back after twice that."""
TAKES_TIME: Final = 1
"""The bit of an offer that says: I take envelopes with a time."""
_TIME: Final = Struct(">I")
_U32: Final = 0xFFFFFFFF
_HALF: Final = 1 << 31


class Timed(NamedTuple):
    """The parts of a message that has an envelope with a time; `time_ms` is in ms since 1970, modulo 2^32."""

    envelope: Envelope
    time_ms: int
    content: bytes
    is_frame: bool


def time_ms_at(unix_s: float) -> int:
    """Return a time in seconds since 1970 as envelopes have it: in ms modulo 2^32, some 49.7 days."""
    return int(unix_s * 1000) & _U32


def age_ms(time_ms: int, now_ms: int) -> int:
    """Return how old a message of `time_ms` is at `now_ms`, both modulo 2^32; below 0 if it is of the future.

    The result is right up to 24.8 days each way.
    """
    return ((now_ms - time_ms + _HALF) & _U32) - _HALF


def is_same(key: int, time_ms: int, other_key: int, other_time_ms: int) -> bool:
    """Tell whether two envelopes, by key and time, are of one message; see `Envelope.key`."""
    return key == other_key and abs(age_ms(time_ms, other_time_ms)) <= SAME_MS


def wrap_timed(content: bytes, envelope: Envelope, time_ms: int) -> bytes:
    """Put an envelope with a time in front of a frame or an opaque message.

    Raises `FrameError` for illegal fields; flags other than the time's are.
    """
    if envelope.flags or not 0 <= time_ms <= _U32:
        raise FrameError(f"{envelope} at {time_ms} does not fit: no flags, and a time u32")
    plain = wrap(content, envelope)
    head = bytes((MAGIC, FLAG_TIMED << 4 | envelope.hops)) + plain[2:ENVELOPE_BYTES]
    return head + _TIME.pack(time_ms) + content


def take_apart_timed(message: Buffer) -> Timed | None:
    """Return the parts of a message in an envelope with a time; None for any other message."""
    if len(message) < TIMED_BYTES or not is_enveloped(message):
        return None
    _, bits, length, origin, sequence = LAYOUT.unpack_from(message)
    content = bytes(message[TIMED_BYTES:])
    framed = is_frame(content)
    if bits >> 4 != FLAG_TIMED or length != LENGTH_MARK | (len(content) if framed else 0):
        return None
    time_ms: int = _TIME.unpack_from(message, ENVELOPE_BYTES)[0]
    return Timed(Envelope(origin, sequence, bits & HOPS_MAX), time_ms, content, framed)


def untimed(message: bytes) -> bytes:
    """Return a message without its time, as ends take it that have not offered; others stay as they are."""
    found = take_apart_timed(message)
    return message if found is None else wrap(found.content, found.envelope)


def offer(takes: int = TAKES_TIME) -> bytes:
    """Return the message that offers to take what the bits of `takes` name.

    It is the head of an envelope with a time, cut off before it, with the bits for a sequence: no message.
    """
    return LAYOUT.pack(MAGIC, FLAG_TIMED << 4, LENGTH_MARK, 0, takes & _U32)


def offered(message: Buffer) -> int | None:
    """Return the bits of an offer; None if the message is none."""
    if len(message) != ENVELOPE_BYTES or bytes(message[:8]) != offer(0)[:8]:
        return None
    return int.from_bytes(message[8:ENVELOPE_BYTES], "big")


class Agreement:
    """The knowledge that one end of a connection has of the other: what that takes.

    Each end may offer once, and sends with a time only after it has heard an offer. So which end begins, and
    whether the other knows of offers, do not matter.

    `wants`: this end has something to send with a time, so it offers first; another only answers.
    """

    __slots__ = ("_offered", "_wants", "takes")

    def __init__(self, wants: bool) -> None:
        self._wants, self._offered = wants, False
        self.takes = 0

    def begin(self) -> bytes | None:
        """Return the first message to send, if there is one."""
        return self._offer() if self._wants else None

    def _offer(self) -> bytes | None:
        first, self._offered = not self._offered, True
        return offer() if first else None

    def hear(self, message: Buffer) -> tuple[bool, bytes | None]:
        """Return whether a message was an offer, and what to answer. An offer is no message of the bus.

        A second one is an offer too: what the other end takes only grows.
        """
        takes = offered(message)
        if takes is None:
            return False, None
        self.takes |= takes
        return True, self._offer()

    def leaving(self, message: bytes) -> bytes:
        """Return a message as the other end may get it."""
        return message if self.takes & TAKES_TIME else untimed(message)
