"""Remembers producers that are gone: a memory ends with age, and survives restarts of the broker."""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book, Said
from devices.syndication.state.producers import NOWHERE, Keeper
from devices.syndication.storage.database import Stored
from devices.syndication.storage.store import OnFault, Store

C = TypeVar("C")
TICK_S: Final = 60.0


class Memory:
    """The memory of one broker. Make its book with `keeper`. `path` None: nothing survives a restart.

    `on_fault` is told why nothing can be stored, and "" when it can be again. Each `tick_s` those that are
    gone for too long are forgotten.
    """

    def __init__(
        self, path: Path | None, bounds: Bounds, name: str, on_fault: OnFault, tick_s: float = TICK_S
    ) -> None:
        self._store = Store(path, bounds, name, on_fault) if path else None
        self._tick_s = tick_s
        self._timer: TimerHandle | None = None

    @property
    def keeper(self) -> Keeper:
        return self._store or NOWHERE

    @property
    def counts(self) -> Mapping[str, int]:
        """Plain numbers for a status page."""
        return self._store.counts if self._store else {}

    @property
    def known(self) -> Path | None:
        """The file, if the book has all that was in it."""
        return self._store.known if self._store else None

    def inherit(self, book: Book[C], other: Book[C], known: Path | None) -> None:
        """Let a book that nobody uses yet remember what another one does, whose clients have left.

        `known`: the file of which the other one has all.
        """
        book.producers.inherit(other.producers, time.monotonic())
        if self._store is not None:
            self._store.inherit(known)

    def open(
        self,
        loop: AbstractEventLoop,
        book: Book[C],
        tell: Callable[[Iterable[Said[C]]], object],
        ready: Callable[[], object],
    ) -> None:
        """Begin; call `ready` when what is stored is remembered, which may be at once. Raises `LinkError`.

        `tell` says what changes if something is read later.
        """
        if self._store is not None:

            def restore(row: Stored, gone_s: float) -> None:
                tell(book.restore(row.id, row.metadata, gone_s).said)

            self._store.open(loop, restore, book.producers.entries, ready)
        else:
            ready()
        self._expire(loop, book)

    def _expire(self, loop: AbstractEventLoop, book: Book[Any]) -> None:
        book.producers.expire(time.monotonic())
        self._timer = loop.call_later(self._tick_s, self._expire, loop, book)

    def close(self) -> None:
        """End. Takes as long as a disk does that is not stuck. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._store is not None:
            self._store.close()
