"""The broker's memory of subscribers and publishers, without sockets or clocks.

A registration is (role, pattern, address). It is *own* once a client made it here, and stays until it is
taken back or the address is found dead (a reference client never repeats itself). A registration that another
broker sent is *shared*. If its broker does not repeat it, it is forgotten while that broker is there. If that
broker is silent, the registration has *lapsed*: it stays until its client is found dead, or alive and
*adopted*. Then it is our own until that broker is back.

A change counts at once. The news for publishers comes in steps, of which each has a bounded cost, so that the
broker can do something else between two of them. A step looks at the registrations of that moment: where
changes overlap, publishers are told the outcome of all of them.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Literal, NamedTuple, TypeVar

from bus.serving.limits import Quota, lower
from bus.tmq.wire import Address, Tokens, prefixes
from bus.wire.frame import PUB, SUB

Role = int  # SUB or PUB
Key = tuple[Role, Tokens, Address]
K = TypeVar("K")
M = TypeVar("M")


class Tell(NamedTuple):
    """News for `publisher`: `subscribers` are to be added to (or taken from) those of its pattern."""

    publisher: Address
    tokens: Tokens
    change: Literal["add", "remove"]
    subscribers: tuple[Address, ...]


Step = tuple[int, Tell | None]
"""Units of work, and the news of this step, if any."""
_ADDRESSES = 128  # told in one step
_ENTRIES = 64  # looked at in one step


@dataclass(slots=True)
class _Entry:
    """A registration that is held."""

    host: str = ""  # whose client said it here, or was adopted; "" where only other brokers did
    exact: bool = False
    lapsed: int | None = None  # the broker that said it and was silent after that
    dead: bool = False  # its client is, and it counts no more: it is about to be removed
    shared: dict[int, float] = field(default_factory=dict)


class Registry:
    """The registrations of a broker.

    At most `limit` in all, `per_address` for one client, `per_host` made by one host, and `tokens` in all
    patterns together: a long pattern takes a hundred times the memory of a short one.
    """

    def __init__(
        self, limit: int = 65536, per_address: int = 1024, per_host: int = 16384, tokens: int = 1 << 20
    ) -> None:
        self.limit = limit
        self._quota = Quota[Address](
            limit, per_address, per_host, tokens, key="address", host_weight=tokens // 2
        )
        self._entries: dict[Key, _Entry] = {}
        self._by_address: dict[Address, dict[tuple[Role, Tokens], None]] = {}
        self._subscribers: dict[Tokens, dict[Address, None]] = {}
        self._lengths = Counter[int]()
        self._publishers: dict[Tokens, dict[Address, None]] = {}
        self._nodes: set[int] = set()  # brokers that said what is here
        self.expired = 0
        self._published: list[Tokens] = []  # sorted: those that start with a pattern are a run

    def __len__(self) -> int:
        return len(self._entries)

    def knows(self, address: Address) -> bool:
        return any(not self._entries[(*what, address)].dead for what in self._by_address.get(address, ()))

    def host_of(self, address: Address) -> str:
        """Return the host that made the first registration of `address`; "" for other brokers."""
        return next((self._entries[(*what, address)].host for what in self._by_address.get(address, ())), "")

    def of(self, address: Address) -> list[tuple[Role, Tokens]]:
        """Return the registrations of `address`."""
        return list(self._by_address.get(address, ()))

    def first(self, count: int) -> list[Key]:
        """Return up to `count` of all registrations, those made longest ago."""
        return list(islice(self._entries, count))

    def own(self) -> Iterator[Key]:
        """Yield what clients registered here, which other brokers are to be told."""
        return (key for key, entry in self._entries.items() if entry.host)

    def own_by_pattern(self) -> Iterator[tuple[Role, Tokens, list[Address]]]:
        """Yield what clients registered here, some addresses at a time; it may change meanwhile."""
        for role, table in ((SUB, self._subscribers), (PUB, self._publishers)):
            for tokens in list(table):
                for addresses in _some(table.get(tokens, ())):
                    found = ((a, self._entries.get((role, tokens, a))) for a in addresses)
                    yield role, tokens, [address for address, entry in found if entry and entry.host]

    def said_by(self, node: int) -> Iterator[Key | None]:
        """Yield the registrations that only broker `node` made; None where there is none for a while."""
        for number, key in enumerate(list(self._entries)):
            entry = self._entries.get(key)
            if entry is not None and node in entry.shared and not entry.host:
                yield key
            elif not number % _ENTRIES:
                yield None

    def is_own(self, address: Address) -> bool:
        return any(self._entries[(*what, address)].host for what in self._by_address.get(address, ()))

    def subscribers(self, tokens: Tokens) -> list[Address]:
        """Return the subscribers whose pattern `tokens` start with, each once, shortest pattern first."""
        return list(self.each_subscriber(tokens))

    def each_subscriber(self, tokens: Tokens) -> Iterator[Address]:
        """Yield the subscribers whose pattern `tokens` start with, each once; they may change meanwhile."""
        found: set[Address] = set()
        for pattern in prefixes(tokens, sorted(self._lengths)):
            for address in tuple(self._subscribers.get(pattern, ())):
                entry = self._entries.get((SUB, pattern, address))
                if address not in found and entry and not entry.dead and _covers(pattern, entry, tokens):
                    found.add(address)
                    yield address

    def add(
        self, role: Role, tokens: Tokens, address: Address, host: str, exact: bool = False, again: bool = True
    ) -> tuple[Iterator[Step], str]:
        """Register what a client at `host` asked for. Registering again is no error.

        `exact`: this subscriber can take nothing but the pattern itself. `again`: publishers are told of a
        subscriber that they know. Return the news, and "" or the bound that refused it.
        """
        key = role, tokens, address
        entry = self._entries.get(key)
        known = entry is not None and not entry.dead
        if entry is None:
            fault = self._quota.take(address, host, len(tokens))
            if fault:
                return iter(()), fault
            entry = self._enter(key)
        else:
            self._quota.move(entry.host, host, len(tokens))
        entry.host, entry.exact, entry.lapsed, entry.dead = host, exact, None, False
        return (iter(()) if known and not again else self._news_of(key)), ""

    def share(
        self, role: Role, tokens: Tokens, address: Address, node: int, until_s: float
    ) -> tuple[Iterator[Step], str]:
        """Register what broker `node` reported, valid until `until_s`.

        Return the news, and "" or the bound.
        """
        key = role, tokens, address
        known = self._entries.get(key)
        if known is not None and not known.dead:
            known.shared[node] = until_s
            known.lapsed = known.lapsed if known.host else None
            return iter(()), ""
        fault = "" if known is not None else self._quota.take(address, "", len(tokens))
        if fault:
            return iter(()), fault
        entry = known or self._enter(key)
        entry.shared[node], entry.dead = until_s, False
        return (self._news_of(key) if role == SUB else iter(())), ""

    def remove(self, role: Role, tokens: Tokens, address: Address) -> Iterator[Step]:
        """Remove what its client took back, also by way of another broker. No error if it is not there."""
        key = role, tokens, address
        entry = self._entries.pop(key, None)
        if entry is None:
            return iter(())
        self._quota.give_back(address, entry.host, len(tokens))
        _discard(self._by_address, address, (role, tokens))
        if role == PUB:
            if _discard(self._publishers, tokens, address):
                del self._published[bisect_left(self._published, tokens)]
            return iter(())
        if _discard(self._subscribers, tokens, address):
            lower(self._lengths, len(tokens))
        return self._tell_publishers(tokens, address, "remove")

    def remove_address(self, address: Address) -> Iterator[Step]:
        """Remove all registrations of a dead client, apart from those made again meanwhile."""
        dead = self.of(address)
        for what in dead:
            self._entries[(*what, address)].dead = True
        return self._bury([(*what, address) for what in dead])

    def _bury(self, dead: list[Key]) -> Iterator[Step]:
        for key in dead:
            entry = self._entries.get(key)
            if entry is not None and entry.dead:
                yield from self.remove(*key)
                yield 1, None

    def expire(
        self,
        now_s: float,
        silent: Container[int] = (),
        here: Container[Address] = (),
        lapsed: dict[Address, None] | None = None,
    ) -> Iterator[Step]:
        """Forget what other brokers have not repeated in time, except the registrations of `silent` ones.

        Note the addresses of the latter in `lapsed`: are these clients alive? Clients that are `here` repeat
        all themselves.
        """
        nodes = set[int]()
        for number, key in enumerate(list(self._entries)):
            entry = self._entries.get(key)
            if not number % _ENTRIES:
                yield 1, None
            if entry is None:
                continue
            if self._lapse(entry, now_s, () if key[2] in here else silent):
                if entry.lapsed is None:
                    self.expired += 1
                    yield from self.remove(*key)
                    continue
                if lapsed is not None:
                    lapsed[key[2]] = None
            nodes.update(entry.shared)
            if entry.lapsed is not None:
                nodes.add(entry.lapsed)
        self._nodes = nodes

    def _lapse(self, entry: _Entry, now_s: float, silent: Container[int]) -> bool:
        """Return whether no broker and no client vouches for a registration any more."""
        ended = [node for node, until_s in entry.shared.items() if until_s <= now_s]
        for node in ended:
            del entry.shared[node]
        if entry.host or entry.shared:
            return False
        if ended:
            entry.lapsed = next((node for node in ended if node in silent), None)
        return True

    def adopt(self, address: Address) -> tuple[list[Key], Iterator[Step], str]:
        """Make the lapsed registrations of a live client our own, within the bound of its host.

        Return what is own now, the news, and "" or the bound that refused some of it, which is removed.
        """
        adopted: list[Key] = []
        news: list[Iterator[Step]] = []
        fault = ""
        for role, tokens in self.of(address):
            entry = self._entries[key := (role, tokens, address)]
            if entry.lapsed is None or entry.host:
                continue
            refused = self._quota.hand_over(address[0], len(tokens))
            if refused:
                fault = refused
                news.append(self.remove(*key))
                continue
            entry.host = address[0]
            adopted.append(key)
            news += [self._news_of(key)] if role == PUB else []
        return adopted, chain.from_iterable(news), fault

    def return_to_broker(self, node: int, until_s: float) -> Iterator[Step]:
        """Give back to broker `node` what was adopted from it: that ends at `until_s` unless repeated."""
        for number, key in enumerate(list(self._entries) if node in self._nodes else ()):
            entry = self._entries.get(key)
            if entry is not None and entry.lapsed == node:
                self._disown(key, node, until_s)
            elif entry is not None and node in entry.shared:
                entry.shared[node] = max(until_s, entry.shared[node])
            if not number % _ENTRIES:
                yield 1, None

    def return_to_client(self, address: Address, node: int, until_s: float) -> None:
        """Give adopted registrations back to a client that repeats itself: they end at `until_s`."""
        for what in self._by_address.get(address, ()):
            key = *what, address
            if self._entries[key].lapsed is not None:
                self._disown(key, node, until_s)

    def disown(self, address: Address, node: int, until_s: float) -> None:
        """End what clients here registered of an address at `until_s`, unless they repeat it."""
        for what in self._by_address.get(address, ()):
            key = *what, address
            if self._entries[key].host:
                self._disown(key, node, until_s)

    def _disown(self, key: Key, node: int, until_s: float) -> None:
        entry = self._entries[key]
        self._quota.move(entry.host, "", len(key[1]))
        entry.host, entry.lapsed = "", None
        entry.shared[node] = until_s

    def _enter(self, key: Key) -> _Entry:
        role, tokens, address = key
        entry = self._entries[key] = _Entry()
        self._by_address.setdefault(address, {})[role, tokens] = None
        self._index(role, tokens, address)
        return entry

    def _index(self, role: Role, tokens: Tokens, address: Address) -> None:
        table = self._subscribers if role == SUB else self._publishers
        if tokens not in table:
            table[tokens] = {}
            if role == PUB:
                insort(self._published, tokens)
            else:
                self._lengths[len(tokens)] += 1
        table[tokens][address] = None

    def _news_of(self, key: Key) -> Iterator[Step]:
        role, tokens, address = key
        if role == SUB:
            return self._tell_publishers(tokens, address, "add")
        return self._tell_subscribers(tokens, address)

    def _tell_subscribers(self, tokens: Tokens, publisher: Address) -> Iterator[Step]:
        for some in _some(self.each_subscriber(tokens)):
            yield len(some) // 16 + self._cost(tokens), Tell(publisher, tokens, "add", some)

    def _tell_publishers(
        self, tokens: Tokens, subscriber: Address, change: Literal["add", "remove"]
    ) -> Iterator[Step]:
        """Yield the news for our own publishers under `tokens`; other brokers tell theirs."""
        for published in self._starting_with(tokens):
            yield self._cost(published), None
            for address in tuple(self._publishers.get(published, ())):
                if self._hears(subscriber, published) != (change == "add"):
                    break
                entry = self._entries.get((PUB, published, address))
                if entry is not None and entry.host and not entry.dead:
                    yield self._cost(published), Tell(address, published, change, (subscriber,))

    def _cost(self, tokens: Tokens) -> int:
        """Return the units of one search for all patterns that cover `tokens`."""
        return 1 + min(len(tokens), len(self._lengths)) // 4

    def _hears(self, subscriber: Address, tokens: Tokens) -> bool:
        """Return whether any subscription of an address covers `tokens`: one taken back may leave another."""
        for pattern in prefixes(tokens, sorted(self._lengths)):
            entry = self._entries.get((SUB, pattern, subscriber))
            if entry is not None and _covers(pattern, entry, tokens):
                return True
        return False

    def _starting_with(self, tokens: Tokens) -> Iterator[Tokens]:
        """Yield the published patterns that start with `tokens`; they may change meanwhile."""
        published, size = self._published, len(tokens)
        place = bisect_left(published, tokens)
        while place < len(published) and published[place][:size] == tokens:
            found = published[place]
            yield found
            here = place < len(published) and published[place] is found
            place = place + 1 if here else bisect_right(published, found)


def _covers(pattern: Tokens, entry: _Entry, tokens: Tokens) -> bool:
    """Return whether a subscriber to a pattern takes `tokens`, which start with it."""
    return pattern == tokens or not entry.exact


def _some(addresses: Iterable[Address]) -> Iterator[tuple[Address, ...]]:
    """Yield addresses in groups; those of a dictionary as they are at the beginning."""
    left = iter(addresses if isinstance(addresses, Iterator) else tuple(addresses))
    while some := tuple(islice(left, _ADDRESSES)):
        yield some


def _discard(table: dict[K, dict[M, None]], key: K, member: M) -> bool:
    """Remove a member of `table[key]`; if it was the last one, remove `key` too and return True."""
    del table[key][member]
    if table[key]:
        return False
    del table[key]
    return True
