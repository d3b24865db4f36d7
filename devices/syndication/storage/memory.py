"""The memory of a broker for producers that are gone: it ends with age, and survives a restart."""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book, Delivery
from devices.syndication.state.producers import NOWHERE, Keeper
from devices.syndication.storage.database import Stored
from devices.syndication.storage.store import OnFault, Store

C = TypeVar("C")
TICK_S: Final = 60.0


class Memory:
    """The memory of one broker, whose book must be made with its `keeper`.

    Without a `path` nothing survives a restart. `on_fault(why)` is called when nothing can be stored, and
    with "" when it can again. Producers that are gone for too long are forgotten each `tick_s`.
    """

    def __init__(
        self, path: Path | None, bounds: Bounds, name: str, on_fault: OnFault, tick_s: float = TICK_S
    ) -> None:
        self._store = Store(path, bounds, name, on_fault) if path else None
        self._tick_s = tick_s
        self._timer: TimerHandle | None = None

    @property
    def keeper(self) -> Keeper:
        """The keeper for the broker's book."""
        return self._store or NOWHERE

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for a status page, by their keys."""
        return self._store.counts if self._store else {}

    @property
    def known(self) -> Path | None:
        """The file, if all of it has been restored into the book; else None."""
        return self._store.known if self._store else None

    def inherit(self, book: Book[C], other: Book[C], known: Path | None) -> None:
        """Let a new book take over the producers of another one, whose clients have left.

        `known` is the file that the other book has restored completely, or None.
        """
        book.producers.inherit(other.producers, time.monotonic())
        if self._store is not None:
            self._store.inherit(known)

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

            self._store.open(loop, restore, book.producers.entries, ready)
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
