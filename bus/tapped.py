"""A pipe that shows its taps what it is handed."""

from bus.hub import Pipe, Tap, purge
from bus.wire.batch import Batch


class TappedPipe:
    """Stands before `pipe`; `taps` see each batch before it does, as going to `port`."""

    __slots__ = ("name", "pipe", "port", "stats", "taps")

    def __init__(self, pipe: Pipe, port: Pipe, taps: tuple[Tap, ...]) -> None:
        self.name, self.stats = pipe.name, pipe.stats
        self.pipe, self.port, self.taps = pipe, port, taps

    def send(self, batch: Batch) -> None:
        for tap in self.taps:
            tap(batch, self.port)
        self.pipe.send(batch)

    def purge(self, reason: str) -> list[bytes]:
        return purge(self.pipe, reason)

    def close(self) -> None:
        self.pipe.close()
