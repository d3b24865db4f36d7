"""Helpers of the tap's tests: pipes without a wire, and readers of whole captures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pyarrow import parquet

from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.transports.links import make_link
from bus.wire.batch import Batch, from_payloads
from capture.schema import Direction, Kind
from tests.bridges.support import RecordingPipe
from tests.helpers.peers import until


class Silent(Pipe):
    """A pipe that accepts every message and does nothing."""

    def __init__(self, name: str, peer: str = "") -> None:
        self.name, self.link, self.stats = peer or name, f"link of {name}", Stats()

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count

    def close(self) -> None: ...


def joined(hub: Hub, name: str, peer: str = "") -> Silent:
    pipe = Silent(name, peer)
    hub.attach(pipe)
    return pipe


def locate(pipe: Pipe | None) -> tuple[str, str, Direction]:
    return "bus plant", pipe.name if pipe else "", Direction.RX


def files_in(root: Path) -> list[Path]:
    return sorted(root.rglob("*.parquet"), key=lambda path: path.name)


def rows_in(root: Path) -> list[dict[str, Any]]:
    """Return all rows of all finished files, by number, without the summaries of contents."""
    every = [row for path in files_in(root) for row in parquet.ParquetFile(path).read().to_pylist()]
    rows = [row for row in every if row["kind"] != Kind.CONTENTS]
    return sorted(rows, key=lambda row: (row["boot"], row["cap_seq"]))


def numbered(first: int, count: int) -> list[bytes]:
    """Return messages that are no frames: each is its number, in 8 bytes."""
    return [number.to_bytes(8, "big") for number in range(first, first + count)]


def say(hub: Hub, pipe: Pipe, messages: list[bytes]) -> None:
    hub.publish(from_payloads(messages), pipe)


@asynccontextmanager
async def member(url: str) -> AsyncIterator[tuple[Hub, RecordingPipe]]:
    """Return an application on a bus."""
    hub, ear, link = Hub(), RecordingPipe(), make_link(url, "dial")
    hub.attach(ear)
    link.open(hub, asyncio.get_running_loop())
    try:
        await until(lambda: len(hub.pipes) == 2)
        yield hub, ear
    finally:
        link.close()
