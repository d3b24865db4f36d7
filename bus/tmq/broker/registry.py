"""The broker's memory of subscribers and publishers, without sockets or clocks.

A registration is (role, pattern, address). It is *own* once a client made it here, and stays until it is
taken back or the address is found dead (a reference client never repeats itself). What other brokers sent is
*shared*. What a broker repeats no more is forgotten if that broker is there. If it is silent, the
registration has *lapsed*: it stays until its client is found dead, or alive and *adopted*. Then it is our own
until that broker is back. Every change returns what publishers must be told.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Container, Iterable, Iterator
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
    host: str = ""  # whose client said it here, or was adopted; "" where only other brokers did
    exact: bool = False
    lapsed: int | None = None  # the broker that said it and was silent after that
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
        self._nodes: set[int] = set()  # brokers that said what is here
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
        entry.host, entry.exact, entry.lapsed = host, exact, None
        return ([] if known and not again else self._told_of(key)), ""

    def share(
        self, role: Role, tokens: Tokens, address: Address, node: int, until_s: float
    ) -> tuple[list[Tell], str]:
        """Register what broker `node` said, good until `until_s`. Only news is returned."""
        key = role, tokens, address
        known = self._entries.get(key)
        if known is not None:
            known.shared[node] = until_s
            known.lapsed = known.lapsed if known.host else None
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

    def expire(
        self, now_s: float, silent: Container[int] = (), here: Container[Address] = ()
    ) -> tuple[list[Tell], list[Address]]:
        """Forget what other brokers have not repeated in time, but not yet what `silent` ones said.

        Also returns the addresses of that: do these clients live? Those that are `here` say all themselves.
        """
        told: list[Tell] = []
        lapsed: dict[Address, None] = {}
        self._nodes = set()
        for key, entry in list(self._entries.items()):
            if self._lapse(entry, now_s, () if key[2] in here else silent):
                if entry.lapsed is None:
                    told += self.remove(*key)
                    continue
                lapsed[key[2]] = None
            self._nodes.update(entry.shared)
            if entry.lapsed is not None:
                self._nodes.add(entry.lapsed)
        return told, list(lapsed)

    def _lapse(self, entry: _Entry, now_s: float, silent: Container[int]) -> bool:
        """Return whether nobody says it any more."""
        ended = [node for node, until_s in entry.shared.items() if until_s <= now_s]
        for node in ended:
            del entry.shared[node]
        if entry.host or entry.shared:
            return False
        if ended:
            entry.lapsed = next((node for node in ended if node in silent), None)
        return True

    def adopt(self, address: Address) -> tuple[list[Key], list[Tell], str]:
        """Make what has lapsed of a client that lives our own, within the bound of its host.

        Returns what is own now, what to tell, and "" or the bound that refused some of it, which is removed.
        """
        adopted: list[Key] = []
        told: list[Tell] = []
        fault = ""
        for role, tokens in self.of(address):
            entry = self._entries[key := (role, tokens, address)]
            if entry.lapsed is None or entry.host:
                continue
            refused = self._quota.hand_over(address[0])
            if refused:
                fault = refused
                told += self.remove(*key)
                continue
            entry.host = address[0]
            adopted.append(key)
            told += self._told_of(key) if role == PUB else ()
        return adopted, told, fault

    def return_to_broker(self, node: int, until_s: float) -> None:
        """Broker `node` is back. What it said is its own, and ends at `until_s` unless it is repeated."""
        if node not in self._nodes:
            return
        for entry in self._entries.values():
            if entry.lapsed == node:
                self._disown(entry, node, until_s)
            elif node in entry.shared:
                entry.shared[node] = max(until_s, entry.shared[node])

    def return_to_client(self, address: Address, node: int, until_s: float) -> None:
        """A client that repeats itself has come: what was adopted ends at `until_s` unless it is repeated."""
        for what in self._by_address.get(address, ()):
            entry = self._entries[(*what, address)]
            if entry.lapsed is not None:
                self._disown(entry, node, until_s)

    def _disown(self, entry: _Entry, node: int, until_s: float) -> None:
        self._quota.move(entry.host, "")
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
