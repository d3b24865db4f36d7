"""A fixture that opens stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devices.syndication.bounds import Bounds
from tests.devices.syndication.storage.store_support import BOUNDS, Memory, Open


@pytest.fixture
async def open_store(tmp_path: Path) -> AsyncIterator[Open]:
    """Open a store in the directory of the test; all are closed at its end."""
    opened: list[Memory] = []

    def open_one(path: Path = tmp_path / "d" / "s.db", bounds: Bounds = BOUNDS) -> Memory:
        opened.append(Memory(path, bounds))
        opened[-1].open()
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.store.close()
