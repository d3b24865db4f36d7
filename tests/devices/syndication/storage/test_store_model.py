"""A book and its store against a plain model, with restarts and kills at any moment."""

import asyncio
import shutil
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book
from devices.syndication.storage.database import Stored
from devices.syndication.storage.store import Owner, Store
from devices.syndication.wire.messages import Publication
from tests.helpers.peers import until

CLIENTS, IDS = "pq", "abc"
BOUNDS = Bounds(producers=2)

said = st.sampled_from([{}, {"x": 1}, {"x": 2}, {"x": None}, {"x": None, "y": 1}])
publications = st.tuples(st.just("publish"), st.sampled_from(CLIENTS), st.sampled_from(IDS), said)
others = st.tuples(st.just("leave"), st.sampled_from(CLIENTS)) | st.tuples(
    st.sampled_from(["turn", "settle", "settle", "end", "kill"])
)
steps = st.tuples(publications, publications, others)


class State(NamedTuple):
    """What is remembered after a restart: metadata by id, the longest gone first."""

    metadata: list[tuple[str, dict[str, Any]]]


class Model:
    """Producers as a plain reader of docs/wire/syndication.md would keep them."""

    def __init__(self, state: State) -> None:
        self.metadata = {id: dict(metadata) for id, metadata in state.metadata}
        self.gone = {id: moment for moment, id in enumerate(self.metadata)}
        self.speaks: dict[str, list[str]] = {client: [] for client in CLIENTS}

    def publish(self, client: str, id: str, said: dict[str, Any]) -> None:
        if id not in self.metadata and len(self.metadata) == BOUNDS.producers:
            if not self.gone:
                return
            longest = next(iter(self.gone))
            del self.metadata[longest], self.gone[longest]
        merged = {**self.metadata.get(id, {}), **said}
        self.metadata[id] = {key: value for key, value in merged.items() if value is not None}
        self.gone.pop(id, None)
        if id not in self.speaks[client]:
            self.speaks[client].append(id)

    def leave(self, client: str) -> None:
        left, self.speaks[client] = self.speaks[client], []
        moment = max(self.gone.values(), default=0) + 1
        self.gone |= {id: moment for id in left if not any(id in ids for ids in self.speaks.values())}

    def state(self) -> State:
        """Return what is remembered if the broker is killed now: who went at one moment comes by id."""
        last = max(self.gone.values(), default=0) + 1
        order = sorted(self.metadata, key=lambda id: (self.gone.get(id, last), id))
        return State([(id, self.metadata[id]) for id in order if self.metadata[id]])


class Broker:
    """A book with its store, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = Store(directory / "s.db", BOUNDS, "s", pause_s=0.0)
        self.book: Book[str] = Book(BOUNDS, self.store)
        self._ready = asyncio.Event()
        owner = Owner(self._restore, self.book.producers.entries, self._ready.set, lambda _: None)
        self.store.open(asyncio.get_running_loop(), owner)

    def _restore(self, row: Stored, gone_s: float) -> None:
        assert not self.book.restore(row.id, row.metadata, gone_s).refused

    async def begun(self) -> State:
        await self._ready.wait()
        assert not self.store.fault
        return State([(entry.id, msgpack.unpackb(entry.packed)) for entry in self.book.producers.entries()])

    def killed(self, directory: Path) -> "Broker":
        """Return the broker that comes after a kill at this moment: it has the files as they are now."""
        directory.mkdir()
        for path in self.directory.glob("s.db*"):
            shutil.copy(path, directory)
        self.store.close()
        return Broker(directory)


async def follow(taken: list[tuple[Any, ...]], root: Path) -> None:
    """Take steps, and compare what is remembered after each restart."""
    broker, model = Broker(root / "0"), Model(State([]))
    assert await broker.begun() == State([])
    possible = [model.state()]  # since all was in the file
    loop = asyncio.get_running_loop()
    for number, step in enumerate([*taken, ("settle",), ("kill",), ("end",)]):
        match step:
            case ("publish", client, id, metadata):
                broker.book.publish(client, "", Publication(id, metadata, b"\1"))
                model.publish(client, id, metadata)
            case ("leave", client):
                broker.book.leave(client, loop.time())
                model.leave(client)
            case ("turn",):
                await asyncio.sleep(0)
            case ("settle",):
                await until(lambda: broker.store.idle)  # noqa: B023 (waits here)
                possible = [deepcopy(model.state())]
            case ("kill",):
                broker = broker.killed(root / f"{number + 1}")
                found = await broker.begun()
                assert found in possible
                model, possible = Model(found), [found]
            case ("end",):
                for client in CLIENTS:
                    broker.book.leave(client, loop.time())
                    model.leave(client)
                broker.store.close()
                broker = Broker(broker.directory)
                assert await broker.begun() == model.state()
                model, possible = Model(model.state()), [model.state()]
        possible.append(deepcopy(model.state()))
    broker.store.close()


@settings(max_examples=60)
@given(st.lists(steps, max_size=12))
def test_a_book_remembers_what_it_knew_when_the_file_was_written_last(taken: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "0").mkdir()
        asyncio.run(follow([step for group in taken for step in group], Path(root)))
