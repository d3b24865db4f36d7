"""The memory of a broker for producers that are gone: it ends with age, and survives a restart."""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book, Delivery
from devices.syndication.state.producers import Entry
from devices.syndication.storage.database import Stored
from devices.syndication.storage.store import OnFault, Owner, Store

C = TypeVar("C")
TICK_S: Final = 60.0


class Memory:
    """The memory of one broker, and the keeper of its book.

    Without a `path` nothing survives a restart. `on_fault(why)` is called when nothing can be stored, and
    with "" when it can again. Producers that are gone for too long are forgotten each `tick_s`.
    """

    def __init__(
        self, path: Path | None, bounds: Bounds, name: str, on_fault: OnFault, tick_s: float = TICK_S
    ) -> None:
        self._store = Store(path, bounds, name) if path else None
        self._on_fault, self._tick_s = on_fault, tick_s
        self._timer: TimerHandle | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for a status page, by their keys."""
        return self._store.counts if self._store else {}

    @property
    def idle(self) -> bool:
        """True if all changes are in the file, or there is none."""
        return self._store is None or self._store.idle

    def keep(self, entry: Entry) -> None:
        """Store an entry in place of the producer's last one."""
        if self._store is not None:
            self._store.keep(entry)

    def forget(self, id: str) -> None:
        """Delete the entry of a producer, which may have none."""
        if self._store is not None:
            self._store.forget(id)

    def inherit(self, book: Book[C], last: "Memory", other: Book[C]) -> None:
        """Let a new book take over the producers of another one, of which nobody stores more.

        Of one file, this memory takes over the store of the `last` one, which may be reading it.
        """
        if self._store is not None:
            self._store = last.hand_over(self._store.path) or self._store
            self._store.renew()
        book.producers.inherit(other.producers, time.monotonic())

    def hand_over(self, path: Path) -> Store | None:
        """Give away the store of a file, open or not; return None if this is not its file."""
        if self._store is None or self._store.path != path:
            return None
        store, self._store = self._store, None
        return store

    def open(
        self,
        loop: AbstractEventLoop,
        book: Book[C],
        tell: Callable[[Iterable[Delivery[C]]], object],
        ready: Callable[[], object],
    ) -> None:
        """Begin to restore and to store. Call `ready` once all is restored. Raises `LinkError`.

        `tell` gets the deliveries that a later restored producer causes.
        """
        if self._store is not None:

            def restore(row: Stored, gone_s: float) -> None:
                tell(book.restore(row.id, row.metadata, gone_s).deliveries)

            owner = Owner(restore, book.producers.entries, ready, self._on_fault)
            self._store.open(loop, owner)
        else:
            ready()
        self._expire(loop, book)

    def _expire(self, loop: AbstractEventLoop, book: Book[Any]) -> None:
        book.producers.expire(time.monotonic())
        self._timer = loop.call_later(self._tick_s, self._expire, loop, book)

    def close(self) -> None:
        """Store the last changes and end, within a bound if the disk is stuck. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._store is not None:
            self._store.close()
