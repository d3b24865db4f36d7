"""What a broker remembers with time, and when another one takes its place."""

import asyncio
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgpack")

from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book
from devices.syndication.storage.memory import Memory
from devices.syndication.wire.messages import Publication
from tests.helpers.peers import until

BOUNDS = Bounds()


class Broker:
    """A book with its memory, as in a broker that stores it in a file."""

    def __init__(self, path: Path) -> None:
        self.memory = Memory(path, BOUNDS, "s", lambda _: None)
        self.book: Book[str] = Book(BOUNDS, self.memory)
        self.ready = False

    def open(self) -> None:
        self.memory.open(asyncio.get_running_loop(), self.book, list, self._be_ready)

    def _be_ready(self) -> None:
        self.ready = True

    def say(self, metadata: dict[str, Any]) -> None:
        self.book.publish("client", "", Publication("a", metadata, b"\1"))

    async def end(self) -> Any:
        """Close it when it is ready, and return the metadata of the producer."""
        await until(lambda: self.ready)
        self.book.leave("client", 0.0)
        self.memory.close()
        producer = self.book.producers.find("a")
        return producer and producer.metadata


async def test_who_is_gone_for_too_long_is_forgotten_while_the_broker_runs() -> None:
    memory = Memory(None, BOUNDS, "s", lambda _: None, tick_s=0.001)
    book: Book[str] = Book(Bounds(kept_s=0.001))
    memory.open(asyncio.get_running_loop(), book, list, list)
    with closing(memory):
        book.publish("client", "", Publication("a", {"Room": "410"}, b"\1"))
        book.leave("client", time.monotonic() - 1.0)
        await until(lambda: len(book.producers) == 0)


@pytest.mark.parametrize("file", ["s.db", "other.db"])
async def test_what_is_deleted_right_after_a_reload_does_not_come_back(file: str, tmp_path: Path) -> None:
    first = Broker(tmp_path / "s.db")
    first.open()
    first.say({"Room": "410", "Number": 4})
    await first.end()
    second = Broker(tmp_path / file)
    second.memory.inherit(second.book, first.memory, first.book)
    second.open()
    second.say({"Number": None})
    assert await second.end() == {"Room": "410"}
    third = Broker(tmp_path / file)
    third.open()
    assert await third.end() == {"Room": "410"}


async def test_another_file_is_still_read_after_a_reload(tmp_path: Path) -> None:
    """What is in it completes what the last broker remembers."""
    for path, metadata in ((tmp_path / "p.db", {"Type": "T"}), (tmp_path / "q.db", {"Room": "410"})):
        last = Broker(path)
        last.open()
        last.say(metadata)
        await last.end()
    second = Broker(tmp_path / "p.db")
    second.memory.inherit(second.book, last.memory, last.book)
    second.open()
    assert await second.end() == {"Type": "T", "Room": "410"}


@pytest.mark.parametrize("turns", range(8))
async def test_a_reload_at_any_moment_hands_the_file_over_and_nothing_reads_it_twice(
    turns: int, tmp_path: Path
) -> None:
    last = Broker(tmp_path / "s.db")
    last.open()
    last.say({"Room": "410", "Type": "T"})
    await last.end()
    first, second = Broker(tmp_path / "s.db"), Broker(tmp_path / "s.db")
    first.open()
    for _ in range(turns):
        await asyncio.sleep(0)
    first.say({"Room": "12"})
    second.memory.inherit(second.book, first.memory, first.book)
    first.book.leave("client", 0.0)
    first.memory.close()
    second.open()
    second.say({"Number": 4})
    assert await second.end() == {"Room": "12", "Type": "T", "Number": 4}
    third = Broker(tmp_path / "s.db")
    third.open()
    assert await third.end() == {"Room": "12", "Type": "T", "Number": 4}


async def test_a_reload_of_an_idle_memory_stores_what_changed_by_it(tmp_path: Path) -> None:
    first, second = Broker(tmp_path / "s.db"), Broker(tmp_path / "s.db")
    first.open()
    first.say({"Room": "410"})
    await until(lambda: first.memory.idle)
    second.memory.inherit(second.book, first.memory, first.book)
    first.memory.close()
    second.open()
    before = second.memory.counts["stored"]
    await until(lambda: second.memory.counts["stored"] > before)
    assert await second.end() == {"Room": "410"}
