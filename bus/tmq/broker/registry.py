"""The broker's memory of subscribers and publishers, without sockets or clocks.

A registration is (role, pattern, address). It is *own* once a client made it here, and stays until it is
taken back or the address is found dead (a reference client never repeats itself). What other brokers sent is
*shared* and expires unless they repeat it. Every change returns what publishers must be told.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from bus.serving.quota import Quota, lower
from bus.tmq.wire import Address, Tokens, prefixes
from bus.wire.frame import PUB, SUB

Role = int  # SUB or PUB
Key = tuple[Role, Tokens, Address]
K = TypeVar("K")
M = TypeVar("M")


class Tell(NamedTuple):
    """Tell `publisher` that `subscribers` are to be added to (or taken from) those of its pattern."""

    publisher: Address
    tokens: Tokens
    change: Literal["add", "remove"]
    subscribers: tuple[Address, ...]


@dataclass(slots=True)
class _Entry:
    host: str = ""  # whose client said it here; "" where only other brokers did
    exact: bool = False
    shared: dict[int, float] = field(default_factory=dict)


class Registry:
    """At most `limit` registrations in all, `per_address` for one client, `per_host` said by one host, and
    `tokens` in all patterns together: a long pattern takes a hundred times the memory of a short one."""

    def __init__(
        self, limit: int = 65536, per_address: int = 1024, per_host: int = 16384, tokens: int = 1 << 20
    ) -> None:
        self.limit = limit
        self._quota = Quota[Address](limit, per_address, per_host, tokens, key="address")
        self._entries: dict[Key, _Entry] = {}
        self._by_address: dict[Address, dict[tuple[Role, Tokens], None]] = {}
        self._subscribers: dict[Tokens, dict[Address, None]] = {}
        self._lengths = Counter[int]()
        self._publishers: dict[Tokens, dict[Address, None]] = {}
        self._published: list[Tokens] = []  # sorted: those that start with a pattern are a run

    def __len__(self) -> int:
        return len(self._entries)

    def knows(self, address: Address) -> bool:
        return address in self._by_address

    def of(self, address: Address) -> list[tuple[Role, Tokens]]:
        """Return what `address` is registered for."""
        return list(self._by_address.get(address, ()))

    def own(self) -> Iterator[Key]:
        """Yield what clients registered here: other brokers are told this."""
        return (key for key, entry in self._entries.items() if entry.host)

    def said_by(self, node: int) -> list[Key]:
        """Return what broker `node` said and nobody registered here."""
        return [key for key, entry in self._entries.items() if node in entry.shared and not entry.host]

    def is_own(self, address: Address) -> bool:
        return any(self._entries[(*what, address)].host for what in self._by_address.get(address, ()))

    def subscribers(self, tokens: Tokens) -> list[Address]:
        """Return those whose pattern `tokens` start with, each once, shortest pattern first."""
        found: dict[Address, None] = {}
        for pattern in prefixes(tokens, sorted(self._lengths)):
            for address in self._subscribers.get(pattern, ()):
                if pattern == tokens or not self._entries[SUB, pattern, address].exact:
                    found[address] = None
        return list(found)

    def add(
        self, role: Role, tokens: Tokens, address: Address, host: str, exact: bool = False, again: bool = True
    ) -> tuple[list[Tell], str]:
        """Register what a client at `host` said. Registering again is no error.

        `exact`: this subscriber can take nothing but the pattern itself. `again`: publishers are told of a
        subscriber that they know. Returns what to tell, and "" or the bound that refused it.
        """
        key = role, tokens, address
        known = entry = self._entries.get(key)
        if entry is None:
            fault = self._quota.take(address, host, len(tokens))
            if fault:
                return [], fault
            entry = self._enter(key)
        else:
            self._quota.move(entry.host, host)
        entry.host, entry.exact = host, exact
        return ([] if known and not again else self._told_of(key)), ""

    def share(
        self, role: Role, tokens: Tokens, address: Address, node: int, until_s: float
    ) -> tuple[list[Tell], str]:
        """Register what broker `node` said, good until `until_s`. Only news is returned."""
        key = role, tokens, address
        known = self._entries.get(key)
        if known is not None:
            known.shared[node] = until_s
            return [], ""
        fault = self._quota.take(address, "", len(tokens))
        if fault:
            return [], fault
        self._enter(key).shared[node] = until_s
        return (self._told_of(key) if role == SUB else []), ""

    def remove(self, role: Role, tokens: Tokens, address: Address) -> list[Tell]:
        """Remove what its client took back, also by way of another broker. No error if it is not there."""
        key = role, tokens, address
        entry = self._entries.pop(key, None)
        if entry is None:
            return []
        self._quota.give_back(address, entry.host, len(tokens))
        _discard(self._by_address, address, (role, tokens))
        if role == PUB:
            if _discard(self._publishers, tokens, address):
                del self._published[bisect_left(self._published, tokens)]
            return []
        if _discard(self._subscribers, tokens, address):
            lower(self._lengths, len(tokens))
        return list(self._tell_publishers(tokens, address, "remove"))

    def remove_address(self, address: Address) -> list[Tell]:
        """Remove everything that a dead client was registered for."""
        told: list[Tell] = []
        for role, tokens in sorted(self.of(address)):  # PUB first: the dead are told nothing
            told += self.remove(role, tokens, address)
        return told

    def expire(self, now_s: float) -> list[Tell]:
        """Forget what other brokers have not repeated in time."""
        told: list[Tell] = []
        for key, entry in list(self._entries.items()):
            if entry.shared:
                entry.shared = {node: until_s for node, until_s in entry.shared.items() if until_s > now_s}
                if not entry.shared and not entry.host:
                    told += self.remove(*key)
        return told

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

    def _told_of(self, key: Key) -> list[Tell]:
        role, tokens, address = key
        if role == SUB:
            return list(self._tell_publishers(tokens, address, "add"))
        found = self.subscribers(tokens)
        return [Tell(address, tokens, "add", tuple(found))] if found else []

    def _tell_publishers(
        self, tokens: Tokens, subscriber: Address, change: Literal["add", "remove"]
    ) -> Iterator[Tell]:
        """Yield what our own publishers under `tokens` must be told; other brokers tell theirs."""
        for published in self._starting_with(tokens):
            hears = self._hears(subscriber, published)
            if hears == (change == "add"):
                for address in self._publishers[published]:
                    if self._entries[PUB, published, address].host:
                        yield Tell(address, published, change, (subscriber,))

    def _hears(self, subscriber: Address, tokens: Tokens) -> bool:
        """Return whether any of its subscriptions covers `tokens`: one taken back may leave another."""
        for pattern in prefixes(tokens, sorted(self._lengths)):
            entry = self._entries.get((SUB, pattern, subscriber))
            if entry is not None and (pattern == tokens or not entry.exact):
                return True
        return False

    def _starting_with(self, tokens: Tokens) -> Iterable[Tokens]:
        begin = end = bisect_left(self._published, tokens)
        size = len(tokens)
        while end < len(self._published) and self._published[end][:size] == tokens:
            end += 1
        return self._published[begin:end]


def _discard(table: dict[K, dict[M, None]], key: K, member: M) -> bool:
    """Remove a member of `table[key]`; if it was the last one, remove `key` too and return True."""
    del table[key][member]
    if table[key]:
        return False
    del table[key]
    return True
