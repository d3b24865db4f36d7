"""A patch as a link: a side of a bridge joined to a bus of the same process."""

from asyncio import AbstractEventLoop
from collections.abc import Callable

from bus.hub import Hub, Link, Pipe, State
from bus.patch import join


class Patch:
    """Joins the hub that it is opened on with the one that `bus()` returns, without a queue."""

    condition = fault = ""
    losses = queue_bytes = 0

    def __init__(self, name: str, bus: Callable[[], Hub]) -> None:
        self.name = self.url = name
        self._bus = bus
        self._hub = self._joined = Hub()
        self._pipe: Pipe | None = None

    @property
    def state(self) -> State:
        return "closed" if self._pipe is None else "up"

    def open(self, hub: Hub, _: AbstractEventLoop) -> None:
        self._hub, self._joined = hub, self._bus()
        self._pipe = join(self._joined, hub, self.name)[0]

    def follow(self) -> None:
        """Join the bus anew if it has another hub now. Nothing is lost between two batches."""
        if self._pipe is not None and self._bus() is not self._joined:
            self._pipe.close()
            self._joined = self._bus()
            self._pipe = join(self._joined, self._hub, self.name)[0]

    def revise(self, other: Link) -> bool:
        """Return True: it has no queue."""
        return True

    def close(self) -> None:
        """Part the hubs. Idempotent."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
