"""The state of a syndication broker: who publishes, who subscribed to what, and who is told what. Pure.

A client is any key, such as its connection; it may publish and subscribe. What is returned is to be said in
its order: a difference comes before the publications that it explains.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from bus.serving.quota import Quota
from devices.syndication.bounds import Bounds
from devices.syndication.producers import NOWHERE, Change, Keeper, Producers
from devices.syndication.standing import Producer, Query, Standing, StandingQueries
from devices.syndication.wire import Difference, Publication, pack

C = TypeVar("C")


class Said(NamedTuple, Generic[C]):
    """One message, and the clients that it is for."""

    to: tuple[C, ...]
    message: Publication | Difference


class Outcome(NamedTuple, Generic[C]):
    """The outcome of a message: what is to be said, or the reason of a refusal, which changed nothing."""

    said: tuple[Said[C], ...] = ()
    refused: str = ""


class _Client(Generic[C]):
    """`producers`: those that it speaks for."""

    __slots__ = ("host", "producers", "standing")

    def __init__(self, host: str) -> None:
        self.host = host
        self.producers: dict[Producer[C], None] = {}
        self.standing: Standing[C] | None = None


class Book(Generic[C]):
    """Producers, standing queries and clients. Every refusal is returned by its reason.

    `keeper` stores what producers said, for the time after a restart.
    """

    def __init__(self, bounds: Bounds, keeper: Keeper = NOWHERE) -> None:
        self.producers: Producers[C] = Producers(bounds, keeper)
        self.queries: StandingQueries[C] = StandingQueries()
        self._bounds = bounds
        self._clients: dict[C, _Client[C]] = {}
        b, whole = bounds, bounds.all_query_bytes
        self._speakers = Quota[C](
            b.speakers, b.speakers_per_client, b.speakers_per_host, 1, "speakers", "client"
        )
        self._subscriptions = Quota[C](b.queries, 1, b.queries_per_host, whole, "queries", "client")

    def publish(self, client: C, host: str, publication: Publication) -> Outcome[C]:
        """Take a publication: say what it changes, then the publication itself, to all that it is for."""
        producer = self.producers.find(publication.id)
        if producer is not None and not publication.metadata and client in producer.speakers:
            return Outcome(self._heard(producer, publication))
        producer = producer or Producer(publication.id)
        change = Change(producer.metadata, producer.packed, publication.metadata, self._bounds)
        entered, left = self._moves(producer, change)
        refused = self._refusal(client, host, producer, change, len(entered) - len(left))
        if refused:
            return Outcome(refused=refused)
        self._accept(client, host, producer, change)
        self.queries.move(producer, entered, left)
        differences = [_told(standing, new=(producer.id,)) for standing in entered]
        differences += [_told(standing, gone=(producer.id,)) for standing in left]
        return Outcome((*differences, *self._heard(producer, publication)))

    def _heard(self, producer: Producer[C], publication: Publication) -> tuple[Said[C], ...]:
        """Return the publication for all subscribers that have its producer in their sets."""
        to = tuple(client for standing in producer.sets for client in standing.subscribers)
        return (Said(to, publication),) if to else ()

    def _moves(self, producer: Producer[C], change: Change) -> tuple[list[Standing[C]], list[Standing[C]]]:
        """Return the queries whose sets the producer enters and leaves."""
        if change.fault:
            return [], []
        if producer.speakers:
            return self.queries.changed(producer, change.metadata, change.keys)
        return self.queries.matched(change.metadata), []

    def _refusal(self, client: C, host: str, producer: Producer[C], change: Change, members: int) -> str:
        """Return why a publication is refused; "": there is room, and the client is a speaker of it."""
        if change.fault:
            return change.fault
        if members > 0 and self.queries.members + members > self._bounds.members:
            return "sets full"
        host, known = self._host(client, host), client in producer.speakers
        refused = "" if known else self._speakers.take(client, host)
        if refused:
            return refused
        refused = self.producers.make_room(producer, len(change.packed))
        if refused and not known:
            self._speakers.give_back(client, host)
        return refused

    def _accept(self, client: C, host: str, producer: Producer[C], change: Change) -> None:
        self.producers.hold(producer, change.metadata, change.packed)
        back = self.producers.came(producer)
        producer.speakers[client] = None
        if change.keys or back:
            self.producers.keep(producer)
        self._client(client, host).producers[producer] = None

    def subscribe(self, client: C, host: str, query: Query) -> Outcome[C]:
        """Subscribe a client to a query, in place of its last one. Say the difference, also an empty one."""
        before = self._clients[client].standing if client in self._clients else None
        standing = self.queries.find(query.text)
        members: list[Producer[C]] = []
        if standing is None:
            standing = Standing(query)
            members = [p for p in self.producers.present() if standing.has(p.metadata)]
        if self.queries.members + len(members) > self._bounds.members:
            return Outcome(refused="sets full")
        refused = self._swap(client, self._host(client, host), before, query)
        if refused:
            return Outcome(refused=refused)
        if not standing.subscribers:
            self.queries.open(standing, members)
        return Outcome((self._turn(client, self._client(client, host), before, standing),))

    def _swap(self, client: C, host: str, before: Standing[C] | None, query: Query) -> str:
        """Take the place of a subscription, and give back that of the last one. Return why not."""
        weight = before.query.memory_bytes if before else 0
        if before:
            self._subscriptions.give_back(client, host, weight)
        refused = self._subscriptions.take(client, host, query.memory_bytes)
        if refused and before:
            self._subscriptions.take(client, host, weight)
        return refused

    def _turn(self, client: C, entry: _Client[C], before: Standing[C] | None, now: Standing[C]) -> Said[C]:
        """Turn a client from one standing query to another, and say how the sets differ."""
        old = before.members if before else {}
        new = [producer.id for producer in now.members if producer not in old]
        gone = [producer.id for producer in old if producer not in now.members]
        now.subscribers[client] = None
        entry.standing = now
        if before is not None and before is not now:
            self._drop(client, before)
        return Said((client,), Difference(new, gone))

    def _drop(self, client: C, standing: Standing[C]) -> None:
        del standing.subscribers[client]
        if not standing.subscribers:
            self.queries.close(standing)

    def leave(self, client: C, now_s: float) -> tuple[Said[C], ...]:
        """Forget a client that is gone. Say which producers nobody speaks for any more. Idempotent."""
        entry = self._clients.pop(client, None)
        if entry is None:
            return ()
        if entry.standing is not None:
            self._subscriptions.give_back(client, entry.host, entry.standing.query.memory_bytes)
            self._drop(client, entry.standing)
        gone = [producer for producer in entry.producers if self._fell_silent(client, entry.host, producer)]
        return self._gone(gone, now_s)

    def _fell_silent(self, client: C, host: str, producer: Producer[C]) -> bool:
        self._speakers.give_back(client, host)
        del producer.speakers[client]
        return not producer.speakers

    def _gone(self, producers: Iterable[Producer[C]], now_s: float) -> tuple[Said[C], ...]:
        """Take producers out of all sets: one difference for each query, however many they are."""
        lost: dict[Standing[C], list[str]] = {}
        for producer in producers:
            for standing in producer.sets:
                lost.setdefault(standing, []).append(producer.id)
            self.queries.move(producer, (), list(producer.sets))
            self.producers.went(producer, now_s)
            self.producers.keep(producer)
        return tuple(_told(standing, gone=ids) for standing, ids in lost.items())

    def restore(self, id: str, metadata: Mapping[str, Any], gone_s: float) -> str:
        """Remember what a producer said before a restart. Call it for the longest gone first.

        Returns "", or why it cannot be remembered. What a client has said since holds.
        """
        if self.producers.find(id) is not None:
            return ""
        producer: Producer[C] = Producer(id)
        packed = pack(metadata)
        refused = self.producers.make_room(producer, len(packed))
        if not refused:
            self.producers.hold(producer, metadata, packed)
            self.producers.went(producer, gone_s)
        return refused

    def _host(self, client: C, host: str) -> str:
        """Return the host that a client first came with."""
        return self._clients[client].host if client in self._clients else host

    def _client(self, client: C, host: str) -> _Client[C]:
        found = self._clients.get(client)
        if found is None:
            found = self._clients[client] = _Client(host)
        return found


def _told(standing: Standing[C], new: Iterable[str] = (), gone: Iterable[str] = ()) -> Said[C]:
    return Said(tuple(standing.subscribers), Difference(tuple(new), tuple(gone)))
