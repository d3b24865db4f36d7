"""The state of a syndication broker: who publishes, who subscribed to what, and who is told what. Pure.

A client is any key, such as its connection; it may publish and subscribe. What is returned is to be said in
its order: a difference comes before the publications that it explains.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from bus.serving.quota import Quota
from devices.syndication.bounds import Bounds
from devices.syndication.producers import NOWHERE, Change, Entry, Keeper, Producers
from devices.syndication.selections import StandingSelection, StandingSelections, Turn, unpacked, weight_of
from devices.syndication.standing import Producer, Query, Standing, StandingQueries
from devices.syndication.steps import Steps, finish
from devices.syndication.wire import Difference, Publication, pack

C = TypeVar("C")
Subscribed: TypeAlias = Standing[C] | StandingSelection[C]


class Said(NamedTuple, Generic[C]):
    """One message, and the clients that it is for."""

    to: tuple[C, ...]
    message: Publication | Difference


class Outcome(NamedTuple, Generic[C]):
    """The outcome of a message: what is to be said, or the reason of a refusal, which changed nothing."""

    said: tuple[Said[C], ...] = ()
    refused: str = ""


class _Client(Generic[C]):
    """`producers`: those that it speaks for. `steps` are those of its last subscribing."""

    __slots__ = ("host", "producers", "steps", "subscribed")

    def __init__(self, host: str) -> None:
        self.host = host
        self.producers: dict[Producer[C], None] = {}
        self.subscribed: Subscribed[C] | None = None
        self.steps: Steps[Outcome[C]] | None = None


class Book(Generic[C]):
    """Producers, clients, standing queries and selections. Every refusal is returned by its reason.

    `keeper` stores what producers said, for the time after a restart.
    """

    def __init__(self, bounds: Bounds, keeper: Keeper = NOWHERE) -> None:
        self.producers: Producers[C] = Producers(bounds, keeper)
        self.queries: StandingQueries[C] = StandingQueries()
        self.selections: StandingSelections[C] = StandingSelections()
        self._bounds = bounds
        self._clients: dict[C, _Client[C]] = {}
        b, whole = bounds, bounds.all_query_bytes
        self._speakers = Quota[C](
            b.speakers, b.speakers_per_client, b.speakers_per_host, 1, "speakers", "client"
        )
        self._subscriptions = Quota[C](b.queries, 1, b.queries_per_host, whole, "queries", "client")

    @property
    def counts(self) -> dict[str, int]:
        """Plain numbers for a status page."""
        return {
            "producers": self.producers.present_count,
            "remembered": len(self.producers) - self.producers.present_count,
            "subscriptions": len(self._subscriptions),
            "queries": len(self.queries),
        }

    def publish(self, client: C, host: str, publication: Publication) -> Outcome[C]:
        """Take a publication: say what it changes, then the publication itself, to all that it is for."""
        producer = self.producers.find(publication.id)
        if producer is not None and not publication.metadata and client in producer.speakers:
            return Outcome(self._heard(producer, publication))
        producer = producer or Producer(publication.id)
        change = Change(producer.metadata, producer.packed, publication.metadata, self._bounds)
        if change.fault:
            return Outcome(refused=change.fault)
        entered, left = self._moves(producer, change)
        turns = self.selections.turns(producer, change.metadata, change.keys, entered, left)
        members = len(entered) - len(left) + sum(turn.members for turn in turns)
        refused = self._refusal(client, host, producer, change, members)
        if refused:
            return Outcome(refused=refused)
        self._accept(client, host, producer, change)
        differences = tuple(self._moved(producer, entered, left, turns))
        return Outcome((*differences, *self._heard(producer, publication)))

    def _moved(
        self,
        producer: Producer[C],
        entered: list[Standing[C]],
        left: list[Standing[C]],
        turns: list[Turn[C]],
    ) -> Iterator[Said[C]]:
        """Change the sets of a producer, and say how."""
        self.queries.move(producer, entered, left)
        for standing in entered:
            yield from _told(standing, new=(producer.id,))
        for standing in left:
            yield from _told(standing, gone=(producer.id,))
        for turn in turns:
            new, gone = self.selections.take(turn)
            yield from _told(turn.selection, unpacked(new), unpacked(gone))

    def _heard(self, producer: Producer[C], publication: Publication) -> tuple[Said[C], ...]:
        """Return the publication for all subscribers that have its producer in their sets."""
        to = tuple(client for standing in producer.sets for client in standing.subscribers)
        return (Said(to, publication),) if to else ()

    def _moves(self, producer: Producer[C], change: Change) -> tuple[list[Standing[C]], list[Standing[C]]]:
        """Return the queries whose sets the producer enters and leaves."""
        if producer.speakers:
            return self.queries.changed(producer, change.metadata, change.keys)
        return self.queries.matched(change.metadata), []

    def _refusal(self, client: C, host: str, producer: Producer[C], change: Change, members: int) -> str:
        """Return why a publication is refused; "": there is room, and the client is a speaker of it."""
        if members > 0 and self._sets_full(members):
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

    def subscribe(self, client: C, host: str, query: Query, key: str | None = None) -> Outcome[C]:
        """Subscribe a client to a query, in place of its last one. Say the difference, also an empty one.

        With a `key`, the set is not the producers that match, but the different values of this key of theirs.
        """
        return finish(self.subscribing(client, host, query, key))

    def subscribing(self, client: C, host: str, query: Query, key: str | None = None) -> Steps[Outcome[C]]:
        """Do what `subscribe` does in steps, each of one evaluation. The last query stands meanwhile.

        Another one of the same client, and its end, give it up.
        """
        self._give_up(client)
        entry = self._client(client, host)
        entry.steps = self._subscribing(client, entry, query, key)
        return entry.steps

    def _subscribing(self, client: C, entry: _Client[C], query: Query, key: str | None) -> Steps[Outcome[C]]:
        weight = query.memory_bytes + len(key or "")
        refused = self._take_place(client, entry, weight)
        if refused:
            self._forget_unused(client, entry)
            return Outcome(refused=refused)
        standing = self._wait_for(query)
        excess = weight
        try:
            while not refused and standing.unseen:
                refused = self._see(standing)
                yield
            now = standing if key is None else self._selected(key, standing)
            refused = refused or self._set_refusal(now)
            if refused:
                return Outcome(refused=refused)
            excess = entry.subscribed.memory_bytes if entry.subscribed else 0
            return Outcome((self._turn(client, entry, now),))
        finally:
            standing.waiting -= 1
            self._close_unneeded(standing)
            self._give_place_back(client, entry, excess)

    def _take_place(self, client: C, entry: _Client[C], weight: int) -> str:
        """Take the place of a subscription, beside that of the last one. Return why not."""
        if entry.subscribed is None:
            return self._subscriptions.take(client, entry.host, weight)
        return self._subscriptions.grow(weight)

    def _give_place_back(self, client: C, entry: _Client[C], weight: int) -> None:
        """Give back what the last subscription took; of a client that has none now, the whole place."""
        if entry.subscribed is None:
            self._subscriptions.give_back(client, entry.host, weight)
        else:
            self._subscriptions.grow(-weight)
        self._forget_unused(client, entry)

    def _forget_unused(self, client: C, entry: _Client[C]) -> None:
        if entry.subscribed is None and not entry.producers:
            self._clients.pop(client, None)

    def _give_up(self, client: C) -> None:
        entry = self._clients.get(client)
        if entry is not None and entry.steps is not None:
            entry.steps.close()

    def _wait_for(self, query: Query) -> Standing[C]:
        """Return the standing query. If it is new, it has seen no producer yet."""
        standing = self.queries.find(query.text)
        if standing is None:
            standing = Standing(query, self.producers.present())
            self.queries.open(standing)
        standing.waiting += 1
        return standing

    def _see(self, standing: Standing[C]) -> str:
        """Evaluate a new query for one producer. Return why there is no room for it in the set; "": there is.

        Producers that came or changed since are in the set already, if they match.
        """
        producer = standing.unseen[0]
        if producer.speakers and standing not in producer.sets and standing.has(producer.metadata):
            if self._sets_full(1):
                return "sets full"
            self.queries.move(producer, (standing,), ())
        standing.unseen.popleft()
        return ""

    def _selected(self, key: str, standing: Standing[C]) -> StandingSelection[C]:
        """Return the standing selection, which may be a new one."""
        found = self.selections.find(key, standing)
        return found or StandingSelection(key, standing, standing.members)

    def _set_refusal(self, now: Subscribed[C]) -> str:
        """Return why there is no room for the set of a selection; "": there is."""
        if isinstance(now, Standing):
            return ""
        if sum(map(len, now.counts)) > self._bounds.selection_bytes:
            return "values of one selection"
        full = not now.subscribers and self._sets_full(weight_of(now.counts))
        return "sets full" if full else ""

    def _sets_full(self, more: int) -> bool:
        return self.queries.members + self.selections.members + more > self._bounds.members

    def _turn(self, client: C, entry: _Client[C], now: Subscribed[C]) -> Said[C]:
        """Turn a client from what it was subscribed to to another, and say how the sets differ."""
        before = entry.subscribed
        old, new = before.items() if before else {}, now.items()
        if isinstance(now, StandingSelection) and not now.subscribers:
            self.selections.open(now)
        now.subscribers[client] = None
        entry.subscribed = now
        if before is not None and before is not now:
            self._drop(client, before)
        return Said((client,), Difference(_without(new, old), _without(old, new)))

    def _drop(self, client: C, subscribed: Subscribed[C]) -> None:
        del subscribed.subscribers[client]
        if isinstance(subscribed, Standing):
            standing = subscribed
        else:
            standing = subscribed.standing
            if not subscribed.subscribers:
                self.selections.close(subscribed)
        self._close_unneeded(standing)

    def _close_unneeded(self, standing: Standing[C]) -> None:
        if not (standing.subscribers or standing.waiting or standing in self.selections):
            self.queries.close(standing)

    def leave(self, client: C, now_s: float) -> tuple[Said[C], ...]:
        """Forget a client that is gone. Say which producers nobody speaks for any more. Idempotent."""
        self._give_up(client)
        entry = self._clients.pop(client, None)
        if entry is None:
            return ()
        if entry.subscribed is not None:
            self._subscriptions.give_back(client, entry.host, entry.subscribed.memory_bytes)
            self._drop(client, entry.subscribed)
        gone = [producer for producer in entry.producers if self._fell_silent(client, entry.host, producer)]
        return self._gone(gone, now_s)

    def silence(self, client: C, ids: Iterable[str], now_s: float) -> tuple[Said[C], ...]:
        """Note that a client no longer speaks for some producers. Say what that changes."""
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

    def _gone(self, producers: Iterable[Producer[C]], now_s: float) -> tuple[Said[C], ...]:
        """Take producers out of all sets: one difference for each set, however many they are."""
        lost: dict[Subscribed[C], list[Any]] = {}
        for producer in producers:
            left = list(producer.sets)
            for standing in left:
                lost.setdefault(standing, []).append(producer.id)
            for turn in self.selections.turns(producer, {}, (), (), left):
                lost.setdefault(turn.selection, []).extend(unpacked(self.selections.take(turn)[1]))
            self.queries.move(producer, (), left)
            self.producers.went(producer, now_s)
            self.producers.keep(producer)
        return tuple(chain.from_iterable(_told(one, gone=items) for one, items in lost.items()))

    def entries(self) -> list[Entry]:
        """Return all that is to be stored, the longest gone first."""
        return self.producers.entries()

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


def _told(subscribed: Subscribed[C], new: Sequence[Any] = (), gone: Sequence[Any] = ()) -> Iterator[Said[C]]:
    """Yield the difference, if there is any, and anybody to hear it."""
    if subscribed.subscribers and (new or gone):
        yield Said(tuple(subscribed.subscribers), Difference(new, gone))


def _without(items: dict[bytes, Any], others: dict[bytes, Any]) -> list[Any]:
    return [item for packed, item in items.items() if packed not in others]
