"""The exchange: it gives messages of clients to the book, and delivers what the book returns. Without I/O."""

from collections.abc import Callable, Iterable

from bus.serving.rejections import Rejections
from bus.steps import Steps, finish
from devices.syndication.bounds import Bounds
from devices.syndication.client import Client
from devices.syndication.query import QueryError, subscription
from devices.syndication.state.book import Book, Delivery
from devices.syndication.state.producers import Keeper
from devices.syndication.waiting import Waiting
from devices.syndication.wire.messages import Publication


class Exchange:
    """The book and its clients. Messages to clients wait until `deliver`.

    `clock` returns monotonic seconds. `reject` counts refusals. `keeper` stores the metadata of producers.
    """

    def __init__(
        self, bounds: Bounds, reject: Rejections, clock: Callable[[], float], keeper: Keeper
    ) -> None:
        self.book: Book[Client] = Book(bounds, keeper)
        self._reject, self._clock = reject, clock
        self._waiting = Waiting()
        self._delivering = self._closed = False

    def publish(self, client: Client, publication: Publication, whole: bool = False) -> bool:
        """Take a publication of a client. Return whether it was accepted. `whole` is that of the book."""
        outcome = self.book.publish(client, client.host, publication, whole)
        if outcome.refused:
            self._reject(outcome.refused, client.host)
            client.deny(outcome.refused, publication.form)
        self._post(outcome.deliveries)
        return not outcome.refused

    def subscribe(self, client: Client, text: str) -> bool:
        """Replace the query of a client. Return whether it was accepted."""
        return finish(self.subscribing(client, text))

    def subscribing(self, client: Client, text: str) -> Steps[bool]:
        """Do the work of `subscribe` in steps."""
        try:
            query, key = subscription(text)
        except QueryError as error:
            self.refuse(client, "query", str(error))
            return False
        yield
        outcome = yield from self.book.subscribing(client, client.host, query, key)
        if outcome.refused:
            self.refuse(client, outcome.refused)
        self._post(outcome.deliveries)
        return not outcome.refused

    def leave(self, client: Client) -> None:
        """Forget a client that is gone, and tell the others. It gets no more messages. Idempotent."""
        self._waiting.pop(client)
        self.tell(self.book.leave(client, self._clock()))

    def silence(self, client: Client, ids: Iterable[str]) -> None:
        """Note that a client no longer speaks for some producers, and tell the others."""
        self.tell(self.book.silence(client, ids, self._clock()))

    def tell(self, deliveries: Iterable[Delivery[Client]]) -> None:
        """Deliver what the book has returned to another caller."""
        self._post(deliveries)
        self.deliver()

    def refuse(self, client: Client, reason: str, why: str = "") -> None:
        """Refuse a query of a client, after the messages that wait for it.

        `reason` is counted; `why` is what the client is told, by default the reason.
        """
        self._reject(reason, client.host, detail=why)
        client.take(self._waiting.pop(client))
        client.refuse(why or reason)

    def _post(self, deliveries: Iterable[Delivery[Client]]) -> None:
        for to, message in deliveries:
            self._waiting.post(to, message)

    def close(self) -> None:
        """Deliver nothing more: the broker ends, and its clients need not hear of each other's end."""
        self._closed = True

    def deliver(self) -> None:
        """Give each client all messages that wait for it, also those that ending clients cause meanwhile."""
        if self._delivering or self._closed:
            return
        self._delivering = True
        try:
            while self._waiting:
                client = self._waiting.first()
                client.take(self._waiting.pop(client))
        finally:
            self._delivering = False
