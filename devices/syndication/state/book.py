"""The book of a syndication broker: producers, subscriptions, and which clients get which messages. Pure.

A client is any key, such as its connection; it may publish and subscribe. Deliveries must be sent in the
order in which they are returned: a difference comes before the publications that it explains.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from bus.serving.limits import Quota
from bus.steps import Steps, finish
from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import NOWHERE, Change, Keeper, Producers
from devices.syndication.state.queries import Producer, Query
from devices.syndication.state.sets import Moved, Moves, Sets, Subscribed
from devices.syndication.wire.messages import Difference, Publication

C = TypeVar("C")


class Delivery(NamedTuple, Generic[C]):
    """A message, and the clients that get it."""

    to: tuple[C, ...]
    message: Publication | Difference


class Outcome(NamedTuple, Generic[C]):
    """The outcome of a client's message: deliveries, or the reason of a refusal, which changed nothing."""

    deliveries: tuple[Delivery[C], ...] = ()
    refused: str = ""


class _Client(Generic[C]):
    """A client in the book. `producers` has those that it speaks for.

    `steps` are the unfinished steps of its last `subscribing`.
    """

    __slots__ = ("host", "producers", "steps", "subscribed")

    def __init__(self, host: str) -> None:
        self.host = host
        self.producers: dict[Producer[C], None] = {}
        self.subscribed: Subscribed[C] | None = None
        self.steps: Steps[Outcome[C]] | None = None


class Book(Generic[C]):
    """Producers, clients, and the sets that clients subscribe to. Refusals are returned by their reason.

    `keeper` stores the metadata of producers beyond a restart.
    """

    def __init__(self, bounds: Bounds, keeper: Keeper = NOWHERE) -> None:
        self.producers: Producers[C] = Producers(bounds, keeper)
        self.sets: Sets[C] = Sets(bounds)
        self._bounds = bounds
        self._clients: dict[C, _Client[C]] = {}
        b, whole = bounds, bounds.all_query_bytes
        self._speakers = Quota[C](
            b.speakers, b.speakers_per_client, b.speakers_per_host, 1, "speakers", "client"
        )
        self._subscriptions = Quota[C](
            b.queries, 1, b.queries_per_host, whole, "queries", "client", whole // 2
        )

    @property
    def counts(self) -> dict[str, int]:
        """Numbers for a status page, by their keys."""
        return {
            "producers": self.producers.present_count,
            "remembered": len(self.producers) - self.producers.present_count,
            "subscriptions": len(self._subscriptions),
            "queries": len(self.sets.queries),
            "selections": len(self.sets.selections),
        }

    def publish(self, client: C, host: str, publication: Publication, whole: bool = False) -> Outcome[C]:
        """Take a publication. Return the differences that it causes, then its own deliveries.

        `whole`: its metadata are all that its producer has, and `restore` adds none.
        """
        producer = self.producers.find(publication.id)
        if producer is not None and not publication.metadata and client in producer.speakers:
            return Outcome(self._heard(producer, publication))
        producer = producer or Producer(publication.id)
        outcome = self._upsert(client, host, producer, publication.metadata)
        if outcome.refused:
            return outcome
        producer.whole |= whole
        return Outcome((*outcome.deliveries, *self._heard(producer, publication)))

    def _upsert(self, client: C, host: str, producer: Producer[C], metadata: Mapping[str, Any]) -> Outcome[C]:
        """Apply changes of a producer's metadata by a client. Return the differences that this causes."""
        change = Change(producer.metadata, producer.packed, metadata, self._bounds)
        if change.fault or self.sets.is_costly(producer, change.metadata, change.keys):
            return Outcome(refused=change.fault or "metadata too costly")
        moves = self.sets.moves(producer, change.metadata, change.keys)
        refused = self._refusal(client, host, producer, change, moves)
        if refused:
            return Outcome(refused=refused)
        self._accept(client, host, producer, change)
        return Outcome(tuple(_told(m) for m in self.sets.move(moves) if m.subscribed.subscribers))

    def _heard(self, producer: Producer[C], publication: Publication) -> tuple[Delivery[C], ...]:
        """Return the delivery of a publication to all subscribers whose sets have its producer."""
        found = [standing.subscribers.all for standing in producer.sets]
        to = found[0] if len(found) == 1 else tuple(chain.from_iterable(found))
        return (Delivery(to, publication),) if to else ()

    def _refusal(self, client: C, host: str, producer: Producer[C], change: Change, moves: Moves[C]) -> str:
        """Return why a publication is refused; "" if there is room, which is then taken."""
        if refused := self.sets.refusal_of(moves):
            return refused
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

    def subscribe(self, client: C, host: str, query: Query, key: str | None = None) -> Outcome[C]:
        """Subscribe a client to a query, in place of its last one. Return the difference, even an empty one.

        With a `key`, the set has not the producers that match, but the different values of their `key`.
        """
        return finish(self.subscribing(client, host, query, key))

    def subscribing(self, client: C, host: str, query: Query, key: str | None = None) -> Steps[Outcome[C]]:
        """Do the work of `subscribe` in steps, each of one evaluation. The last query stands meanwhile.

        A further query of the same client, and its end, abandon it.
        """
        self._give_up(client)
        entry = self._client(client, host)
        entry.steps = self._subscribing(client, entry, query, key)
        return entry.steps

    def _subscribing(self, client: C, entry: _Client[C], query: Query, key: str | None) -> Steps[Outcome[C]]:
        weight = query.memory_bytes + len(key or "")
        refused = self.sets.pattern_refusal(query) or self._take_place(client, entry, weight)
        if refused:
            self._forget_unused(client, entry)
            return Outcome(refused=refused)
        waits: list[Subscribed[C]] = []
        excess = weight
        try:
            now, refused = yield from self.sets.making(query, key, self.producers.present, waits)
            if refused:
                return Outcome(refused=refused)
            excess = entry.subscribed.memory_bytes if entry.subscribed else 0
            return Outcome((self._switch(client, entry, now),))
        finally:
            self.sets.release(waits)
            self._give_place_back(client, entry, excess)

    def _take_place(self, client: C, entry: _Client[C], weight: int) -> str:
        """Take quota for a subscription, beside that of the client's last one. Return why not, or ""."""
        if entry.subscribed is None:
            return self._subscriptions.take(client, entry.host, weight)
        return self._subscriptions.grow(weight, entry.host)

    def _give_place_back(self, client: C, entry: _Client[C], weight: int) -> None:
        """Give back `weight` of quota; for a client without a subscription, its whole place."""
        if entry.subscribed is None:
            self._subscriptions.give_back(client, entry.host, weight)
        else:
            self._subscriptions.grow(-weight, entry.host)
        self._forget_unused(client, entry)

    def _forget_unused(self, client: C, entry: _Client[C]) -> None:
        if entry.subscribed is None and not entry.producers:
            self._clients.pop(client, None)

    def _give_up(self, client: C) -> None:
        entry = self._clients.get(client)
        if entry is not None and entry.steps is not None:
            entry.steps.close()

    def _switch(self, client: C, entry: _Client[C], now: Subscribed[C]) -> Delivery[C]:
        """Switch a client to another set. Return the delivery of the difference between both sets."""
        before = entry.subscribed
        old, new = before.items() if before else {}, now.items()
        now.subscribers.add(client)
        entry.subscribed = now
        if before is not None and before is not now:
            self._drop(client, before)
        return Delivery((client,), Difference(_without(new, old), _without(old, new)))

    def _drop(self, client: C, subscribed: Subscribed[C]) -> None:
        subscribed.subscribers.remove(client)
        self.sets.close_unneeded(subscribed)

    def leave(self, client: C, now_s: float) -> tuple[Delivery[C], ...]:
        """Forget a client that is gone. Return the differences by producers of it alone. Idempotent."""
        self._give_up(client)
        entry = self._clients.pop(client, None)
        if entry is None:
            return ()
        if entry.subscribed is not None:
            self._subscriptions.give_back(client, entry.host, entry.subscribed.memory_bytes)
            self._drop(client, entry.subscribed)
        gone = [producer for producer in entry.producers if self._fell_silent(client, entry.host, producer)]
        return self._gone(gone, now_s)

    def silence(self, client: C, ids: Iterable[str], now_s: float) -> tuple[Delivery[C], ...]:
        """Note that a client no longer speaks for some producers. Return the differences that this causes."""
        entry = self._clients.get(client) or _Client("")
        silent = [producer for id in ids if (producer := self.producers.find(id)) in entry.producers]
        for producer in silent:
            del entry.producers[producer]
        gone = [producer for producer in silent if self._fell_silent(client, entry.host, producer)]
        return self._gone(gone, now_s)

    def _fell_silent(self, client: C, host: str, producer: Producer[C]) -> bool:
        self._speakers.give_back(client, host)
        del producer.speakers[client]
        return not producer.speakers

    def _gone(self, producers: Iterable[Producer[C]], now_s: float) -> tuple[Delivery[C], ...]:
        """Take producers out of all sets. Return one difference for each set."""
        lost: dict[Subscribed[C], list[Any]] = {}
        for producer in producers:
            for moved in self.sets.move(self.sets.leaves(producer)):
                lost.setdefault(moved.subscribed, []).extend(moved.gone)
            self.producers.went(producer, now_s)
            self.producers.keep(producer)
        return tuple(_told(Moved(one, gone=items)) for one, items in lost.items() if one.subscribers)

    def restore(self, id: str, metadata: Mapping[str, Any], gone_s: float) -> Outcome[C]:
        """Restore the metadata of a producer from before a restart. Call it for the longest gone first.

        If the producer has published since, its new metadata hold; missing keys are added and delivered,
        unless it has said that there are none.
        """
        producer = self.producers.find(id)
        if producer is not None:
            return Outcome() if producer.whole else self._complete(producer, metadata)
        producer = Producer(id)
        refused = self._hold(producer, metadata)
        if not refused:
            self.producers.went(producer, gone_s)
        return Outcome(refused=refused)

    def _complete(self, producer: Producer[C], metadata: Mapping[str, Any]) -> Outcome[C]:
        said = {key: value for key, value in metadata.items() if key not in producer.metadata}
        speaker = next(iter(producer.speakers), None)
        if speaker is not None:
            return self._upsert(speaker, "", producer, said)
        refused = self._hold(producer, said)
        if not refused:
            self.producers.keep(producer)
        return Outcome(refused=refused)

    def _hold(self, producer: Producer[C], said: Mapping[str, Any]) -> str:
        """Add metadata to a producer that is gone. Return why not, or ""."""
        change = Change(producer.metadata, producer.packed, said, self._bounds)
        refused = change.fault or self.producers.make_room(producer, len(change.packed))
        if not refused:
            self.producers.hold(producer, change.metadata, change.packed)
        return refused

    def _host(self, client: C, host: str) -> str:
        """Return the host that counts for a client: the one that it first came with."""
        return self._clients[client].host if client in self._clients else host

    def _client(self, client: C, host: str) -> _Client[C]:
        found = self._clients.get(client)
        if found is None:
            found = self._clients[client] = _Client(host)
        return found


def _told(moved: Moved[C]) -> Delivery[C]:
    return Delivery(moved.subscribed.subscribers.all, Difference(moved.new, moved.gone))


def _without(items: dict[bytes, Any], others: dict[bytes, Any]) -> list[Any]:
    return [item for packed, item in items.items() if packed not in others]
