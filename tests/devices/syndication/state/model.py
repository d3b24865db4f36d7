"""A book with the messages of its clients, and a model that evaluates everything."""

from typing import Any

from hypothesis import strategies as st

from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book, Outcome
from devices.syndication.wire.messages import Difference, Publication
from tests.devices.syndication.fakes import FakeQuery, Kept

Heard = list[Any]


class Room:
    """A book, and what each client has heard: pairs of new and gone ids, and ids of publications."""

    def __init__(self, **bounds: Any) -> None:
        self.kept = Kept()
        self.book: Book[str] = Book(Bounds(**bounds), self.kept)
        self.heard: dict[str, Heard] = {}
        self.now_s = 0.0

    def publish(self, client: str, id: str, host: Any = "", **metadata: Any) -> Outcome[str]:
        return self.tell(self.book.publish(client, host, Publication(id, metadata, b"\1")))

    def subscribe(self, client: str, query: str, host: str = "") -> Outcome[str]:
        return self.tell(self.book.subscribe(client, host, FakeQuery(query)))

    def leave(self, client: str) -> None:
        self.tell(Outcome(self.book.leave(client, self.now_s)))

    def silence(self, client: str, *ids: str) -> None:
        self.tell(Outcome(self.book.silence(client, ids, self.now_s)))

    def tell(self, outcome: Outcome[str]) -> Outcome[str]:
        for said in outcome.deliveries:
            assert said.to
            for client in said.to:
                self.heard.setdefault(client, []).append(shown(said.message))
        return outcome

    def of(self, client: str) -> Heard:
        """What a client has heard since the last time."""
        return self.heard.pop(client, [])


def shown(message: Difference | Publication) -> Any:
    return (list(message.new), list(message.gone)) if isinstance(message, Difference) else message.id


CLIENTS, IDS, KEYS = "pqr", "abc", ("x", "y")
QUERIES = ["all", "none", "has x", "no x", "x = 1", "x != 1", "has x| has y", "no x| y = 1", "y != 1| x = 2"]
said = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["1", "2", None]))


class Model:
    """Evaluates every query for every producer after each step."""

    def __init__(self) -> None:
        self.metadata: dict[str, dict[str, Any]] = {}
        self.speakers: dict[str, set[str]] = {}
        self.queries: dict[str, FakeQuery] = {}

    def set_of(self, client: str) -> set[str]:
        query = self.queries.get(client)
        present = [id for id, speakers in self.speakers.items() if speakers]
        return {id for id in present if query and query.matches(self.metadata[id])}

    def step(self, step: tuple[Any, ...]) -> dict[str, Heard]:
        """Return what each client hears."""
        before = {client: self.set_of(client) for client in CLIENTS}
        self._take(*step)
        heard = {client: self._heard(client, before[client], step) for client in CLIENTS}
        return {client: messages for client, messages in heard.items() if messages}

    def _take(self, kind: str, client: str, what: str = "", said: dict[str, Any] | None = None) -> None:
        if kind == "publish":
            merged = {**self.metadata.get(what, {}), **(said or {})}
            self.metadata[what] = {key: value for key, value in merged.items() if value is not None}
            self.speakers.setdefault(what, set()).add(client)
        elif kind == "subscribe":
            self.queries[client] = FakeQuery(what)
        else:
            self.queries.pop(client, None)
            for speakers in self.speakers.values():
                speakers.discard(client)

    def _heard(self, client: str, before: set[str], step: tuple[Any, ...]) -> Heard:
        if client not in self.queries:
            return []
        now, heard = self.set_of(client), Heard()
        if now != before or step[:2] == ("subscribe", client):
            heard.append((sorted(now - before), sorted(before - now)))
        if step[0] == "publish" and step[2] in now:
            heard.append(step[2])
        return heard


def in_order(message: Any) -> Any:
    return message if isinstance(message, str) else (sorted(message[0]), sorted(message[1]))
