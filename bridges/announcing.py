"""The saying of announcements on trunks, beside the messages. A ledger has those alone that had no room."""

from collections.abc import Iterable
from typing import Final
from weakref import WeakSet

from bridges.guard import GuardedPipe
from bus.announcements import ON_TRUNK, on_trunk
from bus.hub import Pipe
from bus.transports.stream import StreamPipe
from bus.wire.batch import Batch, from_payloads

UNSAID: Final = "announcement unsaid"
"""The reason of an announcement for which a peer had no room: it gets the next one."""
_HERE = from_payloads([ON_TRUNK])


class Trunks:
    """The peers of the trunks of a part: who takes announcements, and who was told that we do.

    A peer gets one announcement, and more of them once it has said something of that kind itself: an older
    appliance rejects the first, and never answers.
    """

    def __init__(self) -> None:
        self._takers, self._told = WeakSet[StreamPipe](), WeakSet[StreamPipe]()

    def heard(self, pipe: Pipe | None) -> None:
        """Note that the peer at a pipe takes announcements. Say that we do, if it was told nothing yet."""
        stream = None if pipe is None else _stream(pipe)
        if stream is not None:
            self._takers.add(stream)
            if stream not in self._told:
                self._say(stream, _HERE)

    def say(self, pipes: Iterable[Pipe], frame: bytes, source: Pipe | None = None) -> None:
        """Send an announcement to peers but its `source`; count each that has no room for it.

        A peer that may not hear everything gets none.
        """
        batch, came_by = from_payloads([on_trunk(frame)]), None if source is None else _stream(source)
        for stream in map(_stream, pipes):
            if stream is None or stream is came_by:
                continue
            if stream in self._takers or stream not in self._told:
                self._say(stream, batch)

    def _say(self, stream: StreamPipe, batch: Batch) -> None:
        if stream.closed or stream.gone:
            return
        if not stream.has_room(len(batch.data)):
            return stream.stats.reject(UNSAID)
        stream.say(batch)
        self._told.add(stream)


def _stream(pipe: Pipe) -> StreamPipe | None:
    if isinstance(pipe, GuardedPipe):
        return _stream(pipe.inner) if pipe.hears_all else None
    return pipe if isinstance(pipe, StreamPipe) else None
