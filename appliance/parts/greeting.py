"""The greeting of newcomers with the last values of a bus, at the addresses that ask for it."""

import time
from collections.abc import Iterator, Mapping, Sequence

from bus.hub import Hub, Pipe
from bus.lateness import late_ms
from bus.ledger import Stats
from bus.report import Report
from bus.values import LastValues
from bus.wire.batch import Batch, from_payloads, payloads

_AT_ONCE = 64  # values in one batch, so that a small queue takes the first of them


class Greeter(Pipe):
    """A peer of a bus that keeps the last values, and greets the newcomers of some links with these.

    It is on the bus only while there are such links.
    """

    is_leaf = True

    __slots__ = ("_bus", "_hub", "_links", "link", "name", "stats", "values")

    def __init__(self, bus: str) -> None:
        self._bus, self.name = bus.removeprefix("bus "), f"last values of {bus}"
        self.link = "last values"
        self.stats = Stats()
        self.values = LastValues()
        self._hub: Hub | None = None
        self._links: dict[str, str] = {}

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.values.take(payloads(batch), time.monotonic() - late_ms() / 1000)
        self.stats.sent += batch.count
        self.stats.sent_bytes += len(batch.data)

    def serve(self, hub: Hub, links: Mapping[str, str]) -> None:
        """Greet on `hub` the newcomers of these links from now on, and no others. URLs by their names."""
        if self._hub is hub and self._links == links:
            return
        self._leave()
        self._links = dict(links)
        if self._links:
            self._hub = hub
            hub.attach(self)
            for link in self._links:
                hub.greet(link, self._greeting)

    def _greeting(self) -> Iterator[Batch]:
        frames = [value.frame for value in self.values.read()]
        for start in range(0, len(frames), _AT_ONCE):
            yield from_payloads(frames[start : start + _AT_ONCE])

    def _leave(self) -> None:
        if self._hub is not None:
            for link in self._links:
                self._hub.ungreet(link)
            self._hub.detach(self)
            self._hub = None

    @property
    def urls(self) -> Sequence[str]:
        """The addresses whose newcomers are greeted."""
        return list(self._links.values())

    def report(self) -> Report:
        """Return what a status shows: the values that the bus keeps, and how many they are."""
        kept = self.values
        counts = {"values": len(kept), "values_bytes": kept.bytes, "forgotten": kept.forgotten}
        return Report(self.name, "values", self.urls, counts, values={self._bus: kept.read()})

    def close(self) -> None:
        self._leave()
        self._links = {}
