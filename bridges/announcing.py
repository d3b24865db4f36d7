"""The saying of announcements on trunks, beside the messages, where no ledger counts them."""

from collections.abc import Iterable

from bridges.guard import GuardedPipe
from bus.announcements import on_trunk
from bus.hub import Pipe
from bus.transports.stream import StreamPipe
from bus.wire.batch import from_payloads


def say_on(pipes: Iterable[Pipe], frame: bytes) -> None:
    """Send an announcement to the peers of trunks, as far as there is room now.

    A peer that may not hear everything gets none.
    """
    batch = from_payloads([on_trunk(frame)])
    for pipe in pipes:
        stream = _stream(pipe)
        if stream is not None and stream.has_room(len(batch.data)):
            stream.say(batch)


def _stream(pipe: Pipe) -> StreamPipe | None:
    if isinstance(pipe, GuardedPipe):
        return _stream(pipe.inner) if pipe.hears_all else None
    return pipe if isinstance(pipe, StreamPipe) else None
