"""A patch: a pair of pipes that joins two hubs of one process. It has no queue."""

from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch


class _Half(Pipe):
    """A pipe on one hub, half of a patch: its twin publishes every batch on the other hub."""

    takes_late = True

    __slots__ = ("_hub", "_twin", "link", "name", "stats")

    def __init__(self, name: str, link: str, hub: Hub) -> None:
        self.name, self.link = name, link
        self.stats = Stats()
        self._hub = hub
        self._twin: _Half | None = None

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._twin is None:
            return self.stats.drop("closed", batch.count)
        self.stats.sent += batch.count
        self.stats.sent_bytes += len(batch.data)
        return self._twin.arrive(batch)

    def arrive(self, batch: Batch) -> None:
        self._hub.publish(batch, self)

    def close(self) -> None:
        twin, self._twin = self._twin, None
        self._hub.detach(self)
        if twin is not None:
            twin.close()

    def meet(self, twin: "_Half") -> None:
        self._twin = twin
        self._hub.attach(self)


def join(a: Hub, b: Hub, name: str = "patch") -> tuple[Pipe, Pipe]:
    """Join two hubs by a link called `name`. Return the pipe on `a` and the pipe on `b`.

    Closing either pipe separates the hubs.

    A ring of patches would send a message round for ever; `check` of the topology rejects that beforehand.
    """
    on_a, on_b = _Half(f"{name} >", name, a), _Half(f"{name} <", name, b)
    on_a.meet(on_b)
    on_b.meet(on_a)
    return on_a, on_b


def is_patch(pipe: Pipe) -> bool:
    """Return whether `pipe` leads to another hub of this process."""
    return isinstance(pipe, _Half)
