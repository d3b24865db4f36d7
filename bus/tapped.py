"""A pipe that calls its taps with each batch that it is handed."""

from bus.hub import Pipe, Tap
from bus.wire.batch import Batch


class TappedPipe(Pipe):
    """Stands in front of `inner`, with the same ledger; `taps` see each batch first, as going to `port`."""

    __slots__ = ("inner", "name", "port", "stats", "taps")

    inner: Pipe

    def __init__(self, inner: Pipe, port: Pipe, taps: tuple[Tap, ...]) -> None:
        self.name, self.stats = inner.name, inner.stats
        self.inner, self.port, self.taps = inner, port, taps

    def send(self, batch: Batch) -> None:
        for tap in self.taps:
            tap(batch, self.port)
        self.inner.send(batch)

    def purge(self, reason: str) -> list[bytes]:
        return self.inner.purge(reason)

    def close(self) -> None:
        self.inner.close()
