"""A book with selections, and what its clients are told."""

from typing import Any

from bus.steps import Steps
from devices.syndication.bounds import Bounds
from devices.syndication.state.book import Book, Outcome
from devices.syndication.wire.messages import Difference, Publication
from tests.devices.syndication.fakes import FakeQuery

Changes = list[tuple[list[Any], list[Any]]]


class Rooms:
    """A book, and what each client was told. Nobody is told of publications but by `heard`."""

    def __init__(self, **bounds: Any) -> None:
        self.book: Book[str] = Book(Bounds(**bounds))
        self.told: dict[str, Changes] = {}
        self.heard: list[tuple[str, str]] = []
        self.begun: dict[str, Steps[Outcome[str]]] = {}

    def publish(self, client: str, id: str, **metadata: Any) -> Outcome[str]:
        return self._tell(self.book.publish(client, "", Publication(id, metadata, b"\1")))

    def select(self, client: str, key: str | None, query: str = "all") -> Outcome[str]:
        return self._tell(self.book.subscribe(client, "", FakeQuery(query), key))

    def begin(self, client: str, key: str | None, query: str = "all") -> None:
        self.begun[client] = self.book.subscribing(client, "", FakeQuery(query), key)

    def go_on(self, client: str) -> bool:
        """Take one step. Return whether it was the last."""
        try:
            next(self.begun[client])
        except StopIteration as end:
            del self.begun[client]
            self._tell(end.value)
            return True
        return False

    def leave(self, client: str) -> None:
        self.begun.pop(client, None)
        self._tell(Outcome(self.book.leave(client, 0.0)))

    def _tell(self, outcome: Outcome[str]) -> Outcome[str]:
        for said in outcome.deliveries:
            assert said.to
            for client in said.to:
                if isinstance(said.message, Difference):
                    change = list(said.message.new), list(said.message.gone)
                    self.told.setdefault(client, []).append(change)
                else:
                    self.heard.append((client, said.message.id))
        return outcome

    def of(self, client: str) -> Changes:
        """The differences that a client was told since the last time."""
        return self.told.pop(client, [])


# against a plain recount

CLIENTS, IDS, KEYS = "pqr", "abc", ("x", "y")
