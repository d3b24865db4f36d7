"""Patterns with Cyphal subjects of their own: frames as payloads, and back. Pure.

docs/wire/can.md has the layouts.
"""

from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

from bridges.media.subject import PRIORITIES, SUBJECT_MAX, Subject
from bus.key_types import Names
from bus.wire.envelope import ENVELOPE_BYTES, HOPS_MAX, LAYOUT, LENGTH_MARK, MAGIC, MARK
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, HEADER, PUB
from bus.wire.pattern import Pattern

COMPACT: Final = 0xE3
"""The first byte of an envelope without tokens."""
COMPACT_BYTES: Final = ENVELOPE_BYTES
_SUBJECT_MARK: Final = SUBJECT_MAX ^ 0xFFFF  # no frame announces so much data
_TOKEN: Final = Struct(">I")


class Mapped(NamedTuple):
    """A pattern with its subject: `tokens` as they are in a frame, `priority` 0 to 7."""

    subject: int
    tokens: bytes
    priority: int
    data_bytes: int | None

    def frame(self, payload: bytes | bytearray) -> bytes | None:
        """Return the frame for the payload of a message; None if it is longer than a frame's data."""
        most = DATA_BYTES_MAX if self.data_bytes is None else self.data_bytes
        if len(payload) > DATA_BYTES_MAX and self.data_bytes is None and any(payload[DATA_BYTES_MAX:]):
            return None
        data = payload[:most]
        return HEADER.pack(PUB, len(self.tokens) // 4, len(data)) + self.tokens + data


class Subjects:
    """The subjects of one link, in both directions."""

    def __init__(self, subjects: Mapping[Names, Subject]) -> None:
        made = list(_mapped(subjects.items()))
        self._of_tokens = {one.tokens: one for one in made}
        self.of_number = {one.subject: one for one in made}

    def __bool__(self) -> bool:
        return bool(self.of_number)

    def find(self, message: bytes, start: int) -> tuple[Mapped, bytes] | None:
        """Return the pattern of the frame that begins at `start`, and its data; None without a subject."""
        data = start + FRAME_BYTES_MIN + 4 * message[start + 1]
        found = self._of_tokens.get(message[start + FRAME_BYTES_MIN : data])
        return None if found is None or message[start] != PUB else (found, message[data:])

    def expand(self, message: bytes) -> bytes | None:
        """Return an envelope and a frame for what has an envelope without tokens.

        None if it is none, or its subject is no pattern's.
        """
        if len(message) < COMPACT_BYTES:
            return None
        _, hops, subject, origin, sequence = LAYOUT.unpack_from(message)
        found = self.of_number.get(subject & SUBJECT_MAX) if subject >= _SUBJECT_MARK else None
        frame = None if found is None else found.frame(message[COMPACT_BYTES:])
        if frame is None:
            return None
        return LAYOUT.pack(MAGIC, hops & HOPS_MAX, LENGTH_MARK | len(frame), origin, sequence) + frame


def _mapped(pairs: Iterable[tuple[Names, Subject]]) -> Iterator[Mapped]:
    for names, one in pairs:
        if one.number is not None:
            tokens = b"".join(map(_TOKEN.pack, Pattern(*names)))
            yield Mapped(one.number, tokens, PRIORITIES.index(one.priority), one.data_bytes)


def is_enveloped(message: bytes) -> bool:
    """Tell whether a whole message, which holds a frame, has an envelope before it."""
    return message[0] == MAGIC and message[2] >= MARK


def compact(envelope: bytes, subject: int, data: bytes, padding: int) -> bytes:
    """Return a message with an envelope without tokens, behind which `padding` zeros follow (0 to 15)."""
    _, hops, _, origin, sequence = LAYOUT.unpack_from(envelope)
    return LAYOUT.pack(COMPACT, padding << 4 | hops, _SUBJECT_MARK | subject, origin, sequence) + data


def compact_bytes(payload: bytes | bytearray, more_bytes: int) -> int:
    """Return the length of a message of this kind without padding and what follows it; 0 if it is none.

    `more_bytes` follow it, before the padding.
    """
    if len(payload) < COMPACT_BYTES or payload[0] != COMPACT or payload[2] < _SUBJECT_MARK >> 8:
        return 0
    found = len(payload) - (payload[1] >> 4) - more_bytes
    return found if found >= COMPACT_BYTES else 0
