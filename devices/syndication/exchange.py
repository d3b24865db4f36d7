"""Takes what clients say, asks the book who is told what, and delivers that. Without I/O."""

from collections.abc import Callable, Iterable

from bus.serving.rejections import Rejections
from devices.syndication.bounds import Bounds
from devices.syndication.client import Client
from devices.syndication.query import QueryError, subscription
from devices.syndication.state.book import Book, Said
from devices.syndication.state.producers import Keeper
from devices.syndication.state.steps import Steps, finish
from devices.syndication.waiting import Waiting
from devices.syndication.wire.messages import Publication


class Exchange:
    """The book, with its clients. What it returns to them waits until `deliver`.

    `clock` says the time in seconds, from any beginning. Refusals are counted by `reject`. `keeper` stores
    what producers said.
    """

    def __init__(
        self, bounds: Bounds, reject: Rejections, clock: Callable[[], float], keeper: Keeper
    ) -> None:
        self.book: Book[Client] = Book(bounds, keeper)
        self._reject, self._clock = reject, clock
        self._waiting = Waiting()
        self._delivering = self._closed = False

    def publish(self, client: Client, publication: Publication) -> bool:
        """Take a publication. Return whether it was accepted."""
        outcome = self.book.publish(client, client.host, publication)
        if outcome.refused:
            self._reject(outcome.refused, client.host)
        self._post(outcome.said)
        return not outcome.refused

    def subscribe(self, client: Client, text: str) -> bool:
        """Take a query in place of the client's last one. Return whether it was accepted."""
        return finish(self.subscribing(client, text))

    def subscribing(self, client: Client, text: str) -> Steps[bool]:
        """Do what `subscribe` does in steps."""
        try:
            query, key = subscription(text)
        except QueryError as error:
            self.refuse(client, "query", str(error))
            return False
        yield
        outcome = yield from self.book.subscribing(client, client.host, query, key)
        if outcome.refused:
            self.refuse(client, outcome.refused)
        self._post(outcome.said)
        return not outcome.refused

    def leave(self, client: Client) -> None:
        """Forget a client that is gone, and tell the others. Idempotent; it is told nothing more."""
        self._waiting.pop(client)
        self.tell(self.book.leave(client, self._clock()))

    def silence(self, client: Client, ids: Iterable[str]) -> None:
        """Note that a client no longer speaks for some producers, and tell the others."""
        self.tell(self.book.silence(client, ids, self._clock()))

    def tell(self, said: Iterable[Said[Client]]) -> None:
        """Say what the book has returned elsewhere."""
        self._post(said)
        self.deliver()

    def refuse(self, client: Client, reason: str, why: str = "") -> None:
        """Refuse a query, behind what its client is still to be told. `why` says more than the reason."""
        self._reject(reason, client.host, detail=why)
        client.take(self._waiting.pop(client))
        client.refuse(why or reason)

    def _post(self, said: Iterable[Said[Client]]) -> None:
        for to, message in said:
            self._waiting.post(to, message)

    def close(self) -> None:
        """Tell nobody anything more: clients that are disconnected because the broker ends are no news."""
        self._closed = True

    def deliver(self) -> None:
        """Give each client all that waits for it, at once; also what ending clients cause meanwhile."""
        if self._delivering or self._closed:
            return
        self._delivering = True
        try:
            while self._waiting:
                client = self._waiting.first()
                client.take(self._waiting.pop(client))
        finally:
            self._delivering = False
