"""An owner of a store, and what comes back from its file."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import Entry
from devices.syndication.storage.database import Stored
from devices.syndication.storage.store import Owner, Store
from devices.syndication.wire.messages import pack
from tests.devices.syndication.fakes import Kept
from tests.helpers.peers import until

BOUNDS = Bounds(producers=100, kept_s=100.0)


class Memory:
    """An owner that has what it is told, and what is restored."""

    def __init__(self, path: Path, bounds: Bounds = BOUNDS) -> None:
        self.kept = Kept()
        self.restored: list[tuple[str, Any, float]] = []
        self.ready = 0
        self.faults: list[str] = []
        self.store = Store(path, bounds, "s", (0.001, 0.01), pause_s=0.0)

    def open(self) -> None:
        owner = Owner(self._restore, self._entries, self._be_ready, self.faults.append)
        self.store.open(asyncio.get_running_loop(), owner)

    def _be_ready(self) -> None:
        self.ready += 1

    def _restore(self, row: Stored, gone_s: float) -> None:
        self.restored.append((row.id, row.metadata, gone_s))
        self.kept[row.id] = Entry(row.id, pack(row.metadata), gone_s)

    def _entries(self) -> list[Entry]:
        return list(self.kept.values())

    def say(self, id: str, metadata: Mapping[str, Any], gone_s: float | None = None) -> None:
        entry = Entry(id, pack(metadata), gone_s)
        self.kept.keep(entry)
        self.store.keep(entry)

    def forget(self, id: str) -> None:
        self.kept.forget(id)
        self.store.forget(id)

    async def written(self) -> None:
        """Wait until what was told is in the file."""
        before = self.store.counts["stored"]
        self.say("last", {"n": before})
        await until(lambda: self.store.counts["stored"] > before and not self.store.fault)


Open = Callable[..., Memory]


async def again(open_store: Open, memory: Memory) -> dict[str, Any]:
    """Close a store, and return what another restores from its file."""
    memory.store.close()
    other = open_store(memory.store.path)
    await until(lambda: other.ready)
    other.store.close()
    return {id: metadata for id, metadata, _ in other.restored}
