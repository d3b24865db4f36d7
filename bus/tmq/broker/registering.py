"""The registering of clients at a broker: who greets, registers and takes back, and what is refused."""

from asyncio import AbstractEventLoop
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import bus.tmq.wire as wire
from bus.serving.connection import Connection
from bus.tmq.address import may_name
from bus.tmq.broker.clients import Clients
from bus.tmq.broker.common import ClientRules, Common
from bus.tmq.broker.early import Early
from bus.tmq.broker.registry import Role, Step
from bus.tmq.broker.sharing import Sharing
from bus.tmq.wire import Address, Hello, Refusal, Tokens, pack_refusal
from bus.wire.frame import PUB, REMOVE, SUB

REGISTRATIONS = {wire.SUBSCRIBE, wire.PUBLISH, wire.UNSUBSCRIBE, wire.UNPUBLISH}
ANY = "0.0.0.0"
_NO_PEER = "not a peer broker"
_STRANGERS = "clients of one host that keep no connection"


class Registering:
    """The registrations that come by the connections of one broker, of its clients and of other brokers.

    `node` is the broker's own number. The bounds beside `rules` are those of the registry and of the presence
    of `clients`.
    """

    def __init__(
        self, common: Common, node: int, clients: Clients, sharing: Sharing, rules: ClientRules
    ) -> None:
        self._node, self._rules = node, rules
        self._registry, self._reject = common.registry, common.reject
        self._clients, self._sharing, self._presence = clients, sharing, clients.presence
        self._guests: dict[Connection, Hello] = {}
        self._early = Early()
        self._named = WeakKeyDictionary[Connection, set[Address]]()  # also while it ends

    def open(self, loop: AbstractEventLoop) -> None:
        """Use this loop from now on."""
        self._loop = loop

    def revise(self, rules: ClientRules) -> None:
        """Judge clients by other rules from now on."""
        self._rules = rules

    def silent(self) -> set[int]:
        """Return the numbers of the brokers that are expected and have no connection here."""
        here = {hello.node for connection, hello in self._guests.items() if self._is_broker(connection)}
        return self._sharing.nodes - here

    def lost(self, connection: Connection) -> None:
        """Forget a connection that is gone."""
        self._guests.pop(connection, None)
        self._give_up(connection)

    def tick(self) -> None:
        """Refuse what was shared by brokers that are not known as peers by now. Call it once a heartbeat."""
        for connection in self._early.given_up():
            self._give_up(connection)

    def _give_up(self, connection: Connection) -> None:
        if early := self._early.take(connection):
            self._reject(_NO_PEER, connection.host, len(early))

    def greeted(self, connection: Connection, hello: Hello) -> Iterator[Step]:
        """Note a greeting: of a client, which says where it listens, or of another broker."""
        until_s = self._until_s()
        new = connection not in self._guests
        if hello.address is None:  # another broker, or a sign of life
            if not new or connection.closed:
                return iter(())
            self._guests[connection] = hello
            return self._broker_came(connection, hello.node)
        address = _reachable(hello.address, connection)
        if not self._may_name(connection, address):
            self._refuse(connection, "address of another host")
            return iter(())
        if connection.closed:  # its registrations may come by other ways
            self._presence.was_here(connection.host, hello.node, address, self._loop.time())
            self._clients.look_soon(address)
            return iter(())
        if new:
            self._registry.return_to_client(address, hello.node, until_s)
        self._guests[connection] = hello._replace(address=address)
        self._at(connection, hello.node, address, until_s)
        return iter(())

    def _at(self, connection: Connection, number: int, address: Address, until_s: float) -> None:
        """Note where a client is. A program that was there before loses what this one does not repeat."""
        before = self._presence.moved(connection, address)
        if before is not None:
            self._clients.failed(before, "it has moved")
        if self._presence.greeted(connection, connection.host, number, address, self._loop.time()):
            self._registry.disown(address, number, until_s)

    def _until_s(self) -> float:
        return self._loop.time() + self._sharing.lifetime_s

    def _broker_came(self, connection: Connection, node: int) -> Iterator[Step]:
        if node != self._node and self._sharing.expected:
            yield from self.give_back(connection)
            self._sharing.called()

    def give_back(self, connection: Connection) -> Iterator[Step]:
        """Give back to a broker what was adopted from it, if it is one that answers where it should be."""
        guest = self._guests.get(connection)
        if guest is not None and self._is_broker(connection):
            yield from self._registry.return_to_broker(guest.node, self._until_s())

    def _may_name(self, connection: Connection, address: Address) -> bool:
        return self._rules.foreign_hosts or may_name(connection.host, address[0])

    def _refuse(self, connection: Connection, why: str, kind: int = 0, tokens: Tokens = ()) -> None:
        """Count a refused packet, and tell a peer that has greeted."""
        self._reject(why, connection.host)
        if connection.greeted and not connection.closed:
            connection.say(pack_refusal(Refusal(kind, tokens, why)))

    def register(self, connection: Connection, frame: bytes) -> Iterator[Step]:
        """Register a client, or take its registration back."""
        kind, tokens = frame[0], wire.tokens_of(frame)
        addresses, why = wire.unpack_addresses(wire.data_of(frame))
        role = SUB if kind & SUB else PUB
        why = why or _unfit(role, tokens, addresses)
        if not why:
            address = _reachable(addresses[0], connection)  # of a list the first, as the reference
            why = "" if self._may_name(connection, address) else "address of another host"
        if not why and not kind & REMOVE:
            news, why = self._add(connection, role, tokens, address)
        if why:
            self._refuse(connection, why, kind, tokens)
            return iter(())
        if not kind & REMOVE:
            return news
        news = self._registry.remove(role, tokens, address)
        self._sharing.withdraw(kind, tokens, address)
        return news

    def _add(
        self, connection: Connection, role: Role, tokens: Tokens, address: Address
    ) -> tuple[Iterator[Step], str]:
        if why := self._stranger(connection, address):
            return iter(()), why
        exact = not self._rules.classic_prefixes and address not in self._presence
        # Ours repeat all they say; their publishers do too, and hear of all subscribers at once.
        again = role == PUB or not connection.greeted
        news, why = self._registry.add(role, tokens, address, connection.host, exact, again)
        if not why:
            self._presence.heard(address, self._loop.time())
            self._sharing.register(role, tokens, address)
        return news, why

    def _stranger(self, connection: Connection, address: Address) -> str:
        """Return why an address that is new here may not be registered, "" if it may."""
        if self._registry.knows(address):
            return ""
        if not self._presence.is_at(address, connection) and not self._is_broker(connection):
            named = self._named.setdefault(connection, set())
            if address not in named and len(named) >= self._rules.per_connection:
                return "clients of one connection"
            named.add(address)
        return "" if self._presence.admit(connection.host, address, self._loop.time()) else _STRANGERS

    def _is_broker(self, connection: Connection) -> bool:
        """Return whether a connection is that of a broker that answers where it should be."""
        guest = self._guests.get(connection)
        return (
            guest is not None
            and guest.address is None
            and self._sharing.is_peer(connection, guest.node, self._rules.foreign_hosts)
        )

    def known(self) -> Iterator[tuple[Connection, list[bytes]]]:
        """Yield what brokers have shared before they were known as peers, by their connections."""
        for connection in list(self._guests):
            if self._is_broker(connection):
                yield connection, self._early.take(connection)

    def dead(self, connection: Connection, frame: bytes) -> None:
        """Have the clients probed that a publisher reports as dead."""
        self._reported(connection, *wire.unpack_addresses(wire.data_of(frame)))

    def _reported(
        self, connection: Connection, addresses: list[Address], fault: str, verified: bool = False
    ) -> None:
        if fault or not addresses:
            return self._reject(fault or "no address", connection.host)
        self._clients.report(addresses, connection.host, verified)

    def shared(self, connection: Connection, frame: bytes) -> Iterator[Step]:
        """Register what another broker reports. It goes no further: every broker knows every other."""
        kind, tokens = frame[0] & ~wire.SHARED, wire.tokens_of(frame)
        lifetime_s, addresses, fault = wire.unpack_shared(wire.data_of(frame))
        guest = self._guests.get(connection)
        if guest is None or not self._is_broker(connection):
            may_be_peer = guest is not None and guest.address is None and self._sharing.expected
            if not may_be_peer or not self._early.keep(connection, frame):
                self._reject(_NO_PEER, connection.host)
            return None
        if kind == wire.DEAD or fault:
            return self._reported(connection, addresses, fault, verified=True)
        role = SUB if kind & SUB else PUB
        fault = _unfit(role, tokens, addresses)
        for address in addresses if not fault else ():
            yield 1, None
            if kind & REMOVE:
                yield from self._registry.remove(role, tokens, address)
                continue
            until_s = self._loop.time() + lifetime_s
            news, refused = self._registry.share(role, tokens, address, guest.node, until_s)
            fault = fault or refused
            yield from news
        if fault:
            self._reject(fault, connection.host)
        return None


def _reachable(address: Address, connection: Connection) -> Address:
    """Replace 0.0.0.0 in a client's address by the host that its connection comes from."""
    return (connection.host, address[1]) if address[0] == ANY else address


def _unfit(role: Role, tokens: Tokens, addresses: Sequence[Address]) -> str:
    if role == PUB and not tokens:
        return "published the empty pattern"
    if not addresses:
        return "no address"
    return "port 0" if any(not port for _, port in addresses) else ""
