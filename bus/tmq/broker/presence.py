"""The presence of clients: which are connected, and which must be looked for. Pure; times in seconds.

A client of ours keeps a connection, on which it says where it listens, and its number. Without that
connection it is *away*: it is looked for until a greeting with its number comes from its address, and given
up when it has been silent for too long. A client of 2015 is always away and says no number, so only its
publishers notice its death.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Final, Generic, TypeVar

from bus.tmq.wire import Address

C = TypeVar("C")

AWAY: Final = 64
"""The clients of one host that may be away, by default."""
LOOK_S: Final = 10.0
GIVEN_UP_S: Final = 90.0
"""The silence of a client of ours that has no connection, until it counts as dead."""
_AT_ONCE: Final = 64  # addresses looked for, each time
_AGAIN_S: Final = 1.0  # between two searches for addresses that are not registered
_SEARCHED: Final = 4096  # addresses of all hosts, each time


@dataclass(slots=True)
class _Client(Generic[C]):
    """A client of ours."""

    number: int
    host: str  # where it greeted from
    connection: C | None = None
    heard_s: float = 0.0
    look_s: float = 0.0
    asked_s: float = inf  # first looked for since it was heard

    def hear(self, now_s: float) -> None:
        self.heard_s, self.asked_s = now_s, inf


class Presence(Generic[C]):
    """The clients of a broker by address, and how many of each host are away.

    `knows(address)` tells whether an address is registered. At most `limit` clients of ours are remembered;
    one that is away and has registered nothing for a second makes room, first of a host that has more than
    `away` of them. `unnoted` counts greetings for which there was no room all the same.
    """

    def __init__(self, knows: Callable[[Address], bool], limit: int, away: int = AWAY) -> None:
        self.unnoted = 0
        self._knows, self._limit, self._most_away = knows, limit, away
        self._clients: dict[Address, _Client[C]] = {}
        self._at: dict[C, Address] = {}
        self._away: dict[str, dict[Address, None]] = {}
        self._hosts: dict[Address, str] = {}  # of those that are away
        self._searched_s: dict[tuple[str, str], float] = {}

    def revise(self, away: int) -> None:
        """Let each host have another number of clients away. Those beyond it stay."""
        self._most_away = away

    def __contains__(self, address: object) -> bool:
        """Return whether a client has greeted, so that it takes a greeting."""
        return address in self._clients

    def __len__(self) -> int:
        return len(self._at)

    def connected(self) -> Iterator[Address]:
        """Yield the addresses of clients that are connected; they may change meanwhile."""
        return iter(tuple(self._at.values()))

    def route(self, address: Address) -> C | None:
        """Return the connection of a client; None if it has none."""
        found = self._clients.get(address)
        return None if found is None else found.connection

    def is_at(self, address: Address, connection: C) -> bool:
        """Return whether an address is the one of the client on a connection."""
        return self._at.get(connection) == address

    def greeted(self, connection: C, host: str, number: int, address: Address, now_s: float) -> bool:
        """Note a greeting. Return whether another program was at this address before.

        Ask `moved` first for the address that the connection had.
        """
        before = self._clients.get(address)
        if before is None and not self._has_room(now_s):
            return False
        self._at[connection] = address
        self._come(address)
        if before is not None and before.connection not in (None, connection):
            del self._at[before.connection]
        self._clients[address] = _Client(number, host, connection, now_s, now_s)
        return before is not None and before.number != number and before.connection is not connection

    def moved(self, connection: C, address: Address) -> Address | None:
        """Return the other address that the client on a connection had until now, and forget it."""
        before = self._at.get(connection)
        if before is None or before == address:
            return None
        del self._at[connection]
        self.forget(before)
        return before

    def was_here(self, host: str, number: int, address: Address, now_s: float) -> None:
        """Note the greeting of a client on a connection that has ended since. It is looked for."""
        if address not in self._clients and self._has_room(now_s):
            self._clients[address] = _Client(number, host, None, now_s, now_s)
            self._leave(host, address, now_s)

    def lost(self, connection: C, now_s: float) -> Address | None:
        """Note that a connection is gone. Return the address of its client, which must be looked for."""
        address = self._at.pop(connection, None)
        if address is None:
            return None
        client = self._clients[address]
        client.connection, client.look_s = None, now_s + LOOK_S
        client.hear(now_s)
        self._leave(client.host, address, now_s)
        return address

    def _has_room(self, now_s: float) -> bool:
        """Return whether one more client may be noted. Count it if not."""
        if len(self._clients) >= self._limit and self._may_search("all", "", now_s):
            self._shed(islice(self._clients, _SEARCHED), now_s)
        has_room = len(self._clients) < self._limit
        self.unnoted += not has_room
        return has_room

    def _leave(self, host: str, address: Address, now_s: float) -> None:
        """Note that a client is away. Who only greets takes no more places than its host has."""
        self._go(host, address)
        if len(self._away[host]) > self._most_away and self._may_search("greeted", host, now_s):
            self._shed(self._away[host], now_s)

    def _shed(self, addresses: Iterable[Address], now_s: float) -> None:
        """Forget those that are away and have registered nothing. Registrations may come for a second."""
        for address in tuple(addresses):
            client = self._clients.get(address)
            is_away = client is not None and client.connection is None and client.heard_s <= now_s - _AGAIN_S
            if is_away and not self._knows(address):
                self.forget(address)

    def heard(self, address: Address, now_s: float) -> None:
        """Note that a client has repeated a registration, by whatever connection."""
        found = self._clients.get(address)
        if found is not None:
            found.hear(now_s)

    def answered(self, address: Address, number: int, now_s: float) -> bool:
        """Note a greeting from an address. Return False if another program than the client is there now.

        A client that answers has moved to another broker, and counts as away no more.
        """
        found = self._clients.get(address)
        if found is None or found.connection is not None:
            return True
        if found.number != number:
            return False
        found.hear(now_s)
        self._come(address)
        return True

    def look_now(self, address: Address, now_s: float) -> None:
        """Look for a client that is away the next time: a connection to its listener is gone."""
        found = self._clients.get(address)
        if found is not None:
            found.look_s = now_s

    def missing(self, now_s: float) -> list[Address]:
        """Return some clients of ours that are away and must be looked for now.

        Each comes once in `LOOK_S`, or in its turn where more are away.
        """
        due = (a for a, c in self._clients.items() if c.connection is None and c.look_s <= now_s)
        found = list(islice(due, _AT_ONCE))
        for address in found:
            client = self._clients[address] = self._clients.pop(address)  # behind those that wait for a look
            client.look_s, client.asked_s = now_s + LOOK_S, min(client.asked_s, now_s)
        return found

    def given_up(self, now_s: float) -> list[Address]:
        """Return the clients of ours that are away and were silent for too long, also when looked for."""
        late_s, asked_s = now_s - GIVEN_UP_S, now_s - LOOK_S
        away = ((address, client) for address, client in self._clients.items() if client.connection is None)
        return [a for a, client in away if client.heard_s < late_s and client.asked_s <= asked_s]

    def admit(self, host: str, address: Address, now_s: float) -> bool:
        """Return whether a host may register one more address; count that as away unless it is connected.

        Nobody need listen there, so a stranger could invent them all.
        """
        if len(self._away.get(host, ())) >= self._most_away and not self._clear(host, now_s):
            return False
        if self.route(address) is None:
            self._go(host, address)
        return True

    def _clear(self, host: str, now_s: float) -> bool:
        """Forget addresses that are registered no more. Return whether there is room by now."""
        if not self._may_search("registered", host, now_s):
            return False
        for address in [address for address in self._away.get(host, ()) if not self._knows(address)]:
            self._come(address)
        return len(self._away.get(host, ())) < self._most_away

    def _may_search(self, what: str, host: str, now_s: float) -> bool:
        """Return whether a search among the addresses of a host is due again."""
        if now_s - self._searched_s.get((what, host), -_AGAIN_S) < _AGAIN_S:
            return False
        self._searched_s = {one: at_s for one, at_s in self._searched_s.items() if now_s - at_s < _AGAIN_S}
        self._searched_s[what, host] = now_s
        return True

    def forget(self, address: Address) -> None:
        """Forget a client that is gone. Idempotent."""
        found = self._clients.pop(address, None)
        if found is not None and found.connection is not None:
            self._at.pop(found.connection, None)
        self._come(address)

    def _go(self, host: str, address: Address) -> None:
        self._come(address)
        self._hosts[address] = host
        self._away.setdefault(host, {})[address] = None

    def _come(self, address: Address) -> None:
        host = self._hosts.pop(address, None)
        if host is not None:
            del self._away[host][address]
            if not self._away[host]:
                del self._away[host]
