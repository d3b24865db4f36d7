"""Messages that are no frames, as frames under a pattern, and back: `opaque` of a side. Pure.

So a bus whose programs know no frames, such as nanocat, talks to devices through filters, failover and
captures. Envelopes keep their keys.
"""

from collections.abc import Callable

from bridges.front.rewriting import Refuse
from bridges.runs import Kept, Run, beginning, scan
from bus.key_types import Names
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import is_enveloped, take_apart, wrap
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, PUB, is_frame, pack
from bus.wire.pattern import Pattern

OVERSIZE = "oversize"
"""The reason for a message that is longer than the data of a frame can be."""
INNER = "frame inside"
"""The reason for data that look like a frame or an envelope: receivers would not take them as they are."""

Stays = Callable[[bytes, Run], bool]
Change = Callable[[bytes, Refuse], bytes | None]


class Wrapping:
    """The frames of one pattern in place of messages that are no frames."""

    def __init__(self, pattern: Names) -> None:
        self._tokens = tuple(Pattern(*pattern))
        self._head = pack(PUB, self._tokens)[FRAME_BYTES_MIN:]

    def wrapped(self, batch: Batch, refuse: Refuse) -> Batch | None:
        """Return a batch with frames of the pattern in place of messages that are none."""
        return _changed(batch, lambda *_: True, self._wrap, refuse)

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
        return _changed(batch, self._is_other, self._unwrap, refuse)

    def _is_other(self, data: bytes, run: Run) -> bool:
        """Tell whether no frame of a run can begin with the pattern."""
        if len(self._head) > 4 * data[run.start + run.frame + 1]:
            return True
        found = beginning(data, run, self._head)
        return found is not None and not any(found)

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


def _changed(batch: Batch, stays: Stays, change: Change, refuse: Refuse) -> Batch | None:
    """Return a batch with each message changed; a run of frames that `stays` is looked at once."""
    data, kept = batch.keep(), Kept()
    end = scan(data, batch.count, _stay, _change_each, stays, change, refuse, kept)
    if not kept.begun:
        return batch
    return Batch(kept.joined(data, end), kept.count) if kept.count else None


def _stay(data: bytes, run: Run, stays: Stays, change: Change, refuse: Refuse, kept: Kept) -> bool:
    found = stays(data, run)
    kept.count += run.messages if found else 0
    return found


def _change_each(
    data: bytes, position: int, count: int, stays: Stays, change: Change, refuse: Refuse, kept: Kept
) -> int:
    for _ in range(count):
        head, start = position, position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, head)[0]
        message = data[start:position]
        made = change(message, refuse)
        kept.count += made is not None
        if made is not message:
            kept.parts += (data[kept.begun : head], *(() if made is None else (LENGTH.pack(len(made)), made)))
            kept.begun = position
    return position
