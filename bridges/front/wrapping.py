"""Messages that are no frames, as frames under a pattern, and back: `opaque` of a side. Pure.

So a bus whose programs know no frames, such as nanocat, talks to devices through filters, failover and
captures. Envelopes keep their keys.
"""

from collections.abc import Iterable

from bridges.front.rewriting import Refuse
from bus.schema import Names
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import is_enveloped, take_apart, wrap
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, PUB, is_frame, pack
from bus.wire.pattern import Pattern

OVERSIZE = "oversize"
"""The reason for a message that is longer than the data of a frame can be."""
INNER = "frame inside"
"""The reason for data that look like a frame or an envelope: receivers would not take them as they are."""


class Wrapping:
    """The frames of one pattern in place of messages that are no frames."""

    def __init__(self, pattern: Names) -> None:
        self._tokens = tuple(Pattern(*pattern))
        self._head = pack(PUB, self._tokens)[FRAME_BYTES_MIN:]

    def wrapped(self, batch: Batch, refuse: Refuse) -> Batch | None:
        """Return a batch with frames of the pattern in place of messages that are none."""
        return _joined(batch, (self._wrap(message, refuse) for message in payloads(batch)))

    def _wrap(self, message: bytes, refuse: Refuse) -> bytes | None:
        envelope, content, is_whole = take_apart(message)
        if is_whole or (envelope is None and is_enveloped(message)):
            return message
        if len(content) > DATA_BYTES_MAX:
            refuse(OVERSIZE, 1)
            return None
        made = pack(PUB, self._tokens, content)
        return made if envelope is None else wrap(made, envelope)

    def unwrapped(self, batch: Batch, refuse: Refuse) -> Batch | None:
        """Return a batch with their bare data in place of frames of the pattern."""
        return _joined(batch, (self._unwrap(message, refuse) for message in payloads(batch)))

    def _unwrap(self, message: bytes, refuse: Refuse) -> bytes | None:
        envelope, content, is_whole = take_apart(message)
        if not is_whole or not content[0] & PUB or not content.startswith(self._head, FRAME_BYTES_MIN):
            return message
        begins = FRAME_BYTES_MIN + 4 * content[1]
        if FRAME_BYTES_MIN + len(self._head) > begins:
            return message  # fewer tokens, and data that are alike
        data = content[begins:]
        if is_frame(data) or is_enveloped(data):
            refuse(INNER, 1)
            return None
        return data if envelope is None else wrap(data, envelope)


def _joined(batch: Batch, messages: Iterable[bytes | None]) -> Batch | None:
    found = [message for message in messages if message is not None]
    return from_payloads(found) if found else None
