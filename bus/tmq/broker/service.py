"""The TMQ broker: it keeps registrations, names subscribers to publishers, removes the dead (docs/tmq.md)."""

import logging
import random
import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import bus.tmq.wire as wire
from bus.errors import LinkError
from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.rejections import Rejections
from bus.serving.turns import Job, Turns
from bus.tmq.address import is_secure, listening, may_name, written
from bus.tmq.broker.outgoing import Outgoing, Reports
from bus.tmq.broker.presence import AWAY, NAMED, Presence
from bus.tmq.broker.probing import Probing
from bus.tmq.broker.registry import Registry, Role, Step
from bus.tmq.broker.sharing import Sharing
from bus.tmq.greeter import Greeter
from bus.tmq.options import Options
from bus.tmq.wire import Address, Hello, Refusal, Tokens, pack_refusal
from bus.transports.binding import Binding
from bus.transports.budget import default_bytes
from bus.transports.options import Tls
from bus.transports.secure import Security
from bus.wire.frame import BRIDGE, PUB, REMOVE, SUB

log = logging.getLogger("buscoupler.tmq")

_REGISTRATIONS = {wire.SUBSCRIBE, wire.PUBLISH, wire.UNSUBSCRIBE, wire.UNPUBLISH}
_READ_BYTES = 16 * 1024  # at once: some hundreds of packets
_LOOKS_S = (0.005, 0.1, 0.5)  # after a connection was lost: a dying process closes its listener a bit later
_CONNECTION_BYTES = 16 * 1024  # of memory, for a client with a registration
_STRANGERS = "clients of one host that keep no connection"
ANY = "0.0.0.0"


class Broker:
    """A TMQ broker, which listens at `listen` (`tcp://HOST:PORT`, one or several).

    It also listens at `tls+tcp://HOST:PORT`, with the certificates that `tls` has for such an address. It
    shares registrations with `peers`, brokers of ours, each of which names the others (itself too, if one
    list serves all). `registrations` bounds them in all, `per_address` those of one client, `per_host` those
    made by one host. `connections` bounds those that are accepted; None: by descriptors and memory alone.
    `unconnected` bounds the clients of one host that keep no connection, `per_connection` those that one
    connection registers beside its own. `classic_prefixes=False`: a
    subscriber that has not shown itself to be ours is given only what is published under exactly its pattern
    (the reference client fails on a longer one). `foreign_hosts`: a client may register an address of another
    host than its own, which the broker then dials.

    `on_bridge(frame, connection)` gets each packet with the type bit BRIDGE 0x80: `connection.send(frame)`
    answers, `connection.name` names the sender, `connection.on_lost(callback)` reports its end. `options` are
    the fields of `bus.tmq.Options`. `name` is used in logs. `stats` is the ledger of what clients were sent;
    its `rejected` counts refused input by reason. Raises `LinkError`.
    """

    def __init__(
        self,
        listen: str | Address | Iterable[str | Address],
        peers: Iterable[str | Address] = (),
        on_bridge: Callable[[bytes, Connection], object] | None = None,
        name: str = "tmq broker",
        registrations: int = 65536,
        per_address: int = 1024,
        per_host: int = 16384,
        connections: int | None = None,
        unconnected: int = AWAY,
        per_connection: int = NAMED,
        classic_prefixes: bool = True,
        foreign_hosts: bool = False,
        tls: Mapping[str, Tls] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        single = isinstance(listen, str) or (isinstance(listen, tuple) and isinstance(listen[-1], int))
        where: Any = [listen] if single else list(listen)
        self.name = name
        self.stats = Stats()
        self.registry = Registry(registrations, per_address, per_host)
        self._secured = {listening(each): security_of(each, tls.get(str(each))) for each in where}
        if len(self._secured) < len(where):
            raise LinkError(f"{name}: an address is listed twice")
        self._bound: dict[Address, Address] = {}
        bounds = {"read_bytes": _READ_BYTES, "connections": _most(connections)}
        self._options, self._on_bridge = Options(**bounds | options), on_bridge
        self._turns = Turns()
        self._node = random.getrandbits(32)
        self._classic_prefixes, self._foreign_hosts = classic_prefixes, foreign_hosts
        self._deaths = self._adopted = 0
        self._guests: dict[Connection, Hello] = {}
        self._per_connection = per_connection
        self._named = WeakKeyDictionary[Connection, set[Address]]()  # also while it ends
        self._presence = Presence[Connection](self.registry.knows, registrations, unconnected)
        self.reject = Rejections(name, self.stats.rejected, log)
        self._greeter = Greeter(
            self._options, self._hello, self._on_frames, self._on_gone, self.reject, self.stats
        )
        self._listener = self._greeter.listener
        self._outgoing = Outgoing(
            self._options,
            self._hello,
            self._on_frames,
            Reports(self._reached, self._failed, self._answered, self._unreached),
            self.stats,
        )
        self._probing = Probing(
            self.registry, self._outgoing, self._presence.__contains__, self._hello, self.reject
        )
        self._sharing = Sharing(
            [written(peer) for peer in peers],
            self._options,
            self._hello,
            self.registry,
            self._on_frames,
            self._turns,
        )
        self._timer: TimerHandle | None = None
        self._open = False

    @property
    def addresses(self) -> list[Address]:
        """The addresses where the broker listens, with the bound ports once it is open."""
        return [self._bound.get(address, address) for address in self._secured]

    @property
    def urls(self) -> list[str]:
        """The URLs where the broker listens, with the bound ports once it is open."""
        schemes = ["tcp" if security is None else "tls+tcp" for security in self._secured.values()]
        places = zip(schemes, self.addresses, strict=True)
        return [f"{scheme}://{host}:{port}" for scheme, (host, port) in places]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the broker, as numbers by name, for a status page."""
        return {
            "registrations": len(self.registry),
            "connections": len(self._listener.connections),
            "accepted": self._listener.accepted,
            "refused": self._listener.refused,
            "probes": self._probing.count,
            "doubted": self._outgoing.doubted,
            "deaths": self._deaths,
            "expired": self.registry.expired,
            "adopted": self._adopted,
            "routes": len(self._presence),
            "peers": len(self._sharing.up),
            "waiting": len(self._turns),
        }

    @property
    def ledgers(self) -> dict[str, Stats]:
        """The ledgers by their subject: clients, and the brokers that share registrations."""
        return {"clients": self.stats, "brokers": self._sharing.stats}

    def open(self, loop: AbstractEventLoop, wait: bool = False) -> None:
        """Listen at all addresses. Raises `LinkError` for the first that fails; then none stays open.

        `wait`: it is no failure if an address is not there yet; the broker goes on trying (`bindings`).
        """
        self._loop = loop
        self._turns.open(loop)
        try:
            for address, security in self._secured.items():
                if wait:
                    self._await(address, security)
                else:
                    self._bound[address] = self._listener.open(loop, address, security, socket.AF_INET)
        except LinkError:
            self._listener.close()
            self._bound.clear()
            raise
        self._open = True
        self._outgoing.open(loop)
        self._probing.open(loop)
        self._sharing.open(loop)
        self._tick()

    def listens(self, where: str) -> bool:
        """Return whether the broker listens, or waits to, at an address in the form of `listen`."""
        address = listening(where)
        is_here = address in self._bound or address in self._listener.bindings
        return is_here and is_secure(where) == (self._secured[address] is not None)

    def listen(self, where: str, security: Security | None = None) -> None:
        """Listen at one more address, as soon as it is there. Raises `LinkError` if that is not possible.

        `security` is that of `security_of`.
        """
        address = listening(where)
        self._await(address, security)
        self._secured[address] = security

    def _await(self, address: Address, security: Security | None) -> None:
        keep = partial(self._bound.__setitem__, address)
        self._listener.await_address(self._loop, address, keep, security, socket.AF_INET)

    @property
    def bindings(self) -> list[Binding[Address]]:
        """The addresses at which the broker listens, or waits to, as a status shows them."""
        return list(self._listener.bindings.values())

    def leave(self, where: str) -> None:
        """Stop listening at an address. Clients that connected there stay, as do all registrations."""
        address = listening(where)
        self._listener.shut(address if address in self._listener.bindings else self._bound[address])
        self._bound.pop(address, None)
        del self._secured[address]

    def revise(
        self,
        peers: Iterable[str | Address],
        classic_prefixes: bool,
        heartbeat_s: float | None = None,
        foreign_hosts: bool = False,
        connections: int | None = None,
        unconnected: int = AWAY,
    ) -> None:
        """Share with other brokers from now on, judge clients by other rules, greet at another interval.

        Tell all that are connected at once how long we may be silent. Those beyond other bounds stay.
        """
        self._classic_prefixes, self._foreign_hosts = classic_prefixes, foreign_hosts
        self._sharing.take_peers([written(peer) for peer in peers])
        self._presence.away = unconnected
        most, before_s = _most(connections), self._options.heartbeat_s
        if heartbeat_s in (None, before_s) and most == self._options.connections:
            return
        heartbeat_s = heartbeat_s or before_s
        self._options = replace(self._options, heartbeat_s=heartbeat_s, connections=most)
        self._listener.revise(self._options)
        for room in (self._outgoing, self._sharing):
            room.revise(heartbeat_s)
        if self._timer is not None:
            self._timer.cancel()
            self._tick()

    def _hello(self, flags: int = 0) -> Hello:
        return Hello(self._node, self._options.silence_ms, flags)

    def _on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        """Handle packets: those for the bridges at once, the others as there is time, in their order."""
        self.stats.received += len(frames)
        others = [frame for frame in frames if not self._bridged(connection, frame)]
        if not others:
            return
        if not self._turns.put(connection, connection.host, self._handled(connection, others)):
            self.reject("too much work", connection.host, len(others))
        elif self._turns.waits(connection):
            connection.pause()  # what comes next waits there

    def _bridged(self, connection: Connection, frame: bytes) -> bool:
        if frame[0] & wire.HELLO_MASK == wire.HELLO or not frame[0] & BRIDGE or self._on_bridge is None:
            return False
        self._on_bridge(frame, connection)
        return True

    def _handled(self, connection: Connection, frames: list[bytes]) -> Job:
        try:
            for frame in frames:
                yield 1
                yield from self._handle(connection, frame)
        finally:
            connection.resume()

    def _handle(self, connection: Connection, frame: bytes) -> Job:
        kind = frame[0]
        if kind & wire.HELLO_MASK == wire.HELLO:
            return self._tell(self._greeted(connection, frame))
        if kind in _REGISTRATIONS:
            return self._tell(self._register(connection, frame))
        if kind == wire.DEAD:
            self._reported(connection, *wire.unpack_addresses(wire.data_of(frame)))
        elif kind & ~wire.SHARED in _REGISTRATIONS or kind == wire.DEAD | wire.SHARED:
            return self._tell(self._shared(connection, frame))
        else:
            self.reject("bridge" if kind & BRIDGE else f"type 0x{kind:02x}", connection.host)
        return iter(())

    def _greeted(self, connection: Connection, frame: bytes) -> Iterator[Step]:
        hello = self._greeter.greeted(connection, frame)
        if hello is None:
            return iter(())
        until_s = self._loop.time() + self._sharing.lifetime_s
        new = connection not in self._guests
        if hello.address is None:  # another broker, or a sign of life
            if not new or connection.closed:
                return iter(())
            self._guests[connection] = hello
            return self._broker_came(hello.node, until_s)
        address = self._reachable(hello.address, connection)
        if not self._may_name(connection, address):
            self._refuse(connection, "address of another host")
            return iter(())
        if connection.closed:  # its registrations may come by other ways
            self._presence.was_here(connection.host, hello.node, address, self._loop.time())
            self._look_soon(address)
            return iter(())
        if new:
            self.registry.return_to_client(address, hello.node, until_s)
        self._guests[connection] = hello._replace(address=address)
        self._at(connection, hello.node, address, until_s)
        return iter(())

    def _at(self, connection: Connection, number: int, address: Address, until_s: float) -> None:
        """Note where a client is. A program that was there before loses what this one does not repeat."""
        before = self._presence.moved(connection, address)
        if before is not None:
            self._failed(before, "it has moved")
        if self._presence.greeted(connection, connection.host, number, address, self._loop.time()):
            self.registry.disown(address, number, until_s)

    def _broker_came(self, node: int, until_s: float) -> Iterator[Step]:
        if node != self._node and self._sharing.expected:
            yield from self.registry.return_to_broker(node, until_s)
            self._sharing.called()

    def _reachable(self, address: Address, connection: Connection) -> Address:
        """Replace 0.0.0.0 in a client's address by the host that its connection comes from."""
        return (connection.host, address[1]) if address[0] == ANY else address

    def _may_name(self, connection: Connection, address: Address) -> bool:
        return self._foreign_hosts or may_name(connection.host, address[0])

    def _refuse(self, connection: Connection, why: str, kind: int = 0, tokens: Tokens = ()) -> None:
        """Count a refused packet, and tell a peer that has greeted."""
        self.reject(why, connection.host)
        if connection.greeted and not connection.closed:
            connection.say(pack_refusal(Refusal(kind, tokens, why)))

    def _register(self, connection: Connection, frame: bytes) -> Iterator[Step]:
        kind, tokens = frame[0], wire.tokens_of(frame)
        addresses, why = wire.unpack_addresses(wire.data_of(frame))
        role = SUB if kind & SUB else PUB
        why = why or _unfit(role, tokens, addresses)
        if not why:
            address = self._reachable(addresses[0], connection)  # of a list the first, as the reference
            why = "" if self._may_name(connection, address) else "address of another host"
        if not why and not kind & REMOVE:
            news, why = self._add(connection, role, tokens, address)
        if why:
            self._refuse(connection, why, kind, tokens)
            return iter(())
        if not kind & REMOVE:
            return news
        news = self.registry.remove(role, tokens, address)
        self._sharing.withdraw(kind, tokens, address)
        return news

    def _add(
        self, connection: Connection, role: Role, tokens: Tokens, address: Address
    ) -> tuple[Iterator[Step], str]:
        if why := self._stranger(connection, address):
            return iter(()), why
        exact = not self._classic_prefixes and address not in self._presence
        # Ours repeat all they say; their publishers do too, and hear of all subscribers at once.
        again = role == PUB or not connection.greeted
        news, why = self.registry.add(role, tokens, address, connection.host, exact, again)
        if not why:
            self._presence.heard(address, self._loop.time())
            self._sharing.register(role, tokens, address)
        return news, why

    def _stranger(self, connection: Connection, address: Address) -> str:
        """Return why an address that is new here may not be registered, "" if it may."""
        if self.registry.knows(address):
            return ""
        if not self._presence.is_at(address, connection) and not self._is_broker(connection):
            named = self._named.setdefault(connection, set())
            if address not in named and len(named) >= self._per_connection:
                return "clients of one connection"
            named.add(address)
        return "" if self._presence.admit(connection.host, address, self._loop.time()) else _STRANGERS

    def _is_broker(self, connection: Connection) -> bool:
        """Return whether a connection is that of a broker that answers where it should be."""
        guest = self._guests.get(connection)
        return guest is not None and guest.address is None and guest.node in self._sharing.nodes

    def _shared(self, connection: Connection, frame: bytes) -> Iterator[Step]:
        """Register what another broker reports. It goes no further: every broker knows every other."""
        kind, tokens = frame[0] & ~wire.SHARED, wire.tokens_of(frame)
        lifetime_s, addresses, fault = wire.unpack_shared(wire.data_of(frame))
        guest = self._guests.get(connection)
        if not self._sharing.expected or guest is None:
            return self.reject("not a peer broker", connection.host)
        if kind == wire.DEAD or fault:
            return self._reported(connection, addresses, fault, verified=True)
        role = SUB if kind & SUB else PUB
        fault = _unfit(role, tokens, addresses)
        for address in addresses if not fault else ():
            yield 1, None
            if kind & REMOVE:
                yield from self.registry.remove(role, tokens, address)
                continue
            until_s = self._loop.time() + lifetime_s
            news, refused = self.registry.share(role, tokens, address, guest.node, until_s)
            fault = fault or refused
            yield from news
        if fault:
            self.reject(fault, connection.host)
        return None

    def _tell(self, news: Iterable[Step]) -> Job:
        """Send the news to publishers, a step at a time."""
        for units, tell in news:
            if tell is not None:
                kind = wire.ADD if tell.change == "add" else wire.FORGET
                for frame in wire.address_frames(kind, tell.tokens, tell.subscribers):
                    self._send(tell.publisher, frame)
            yield units

    def _send(self, address: Address, frame: bytes) -> None:
        route = self._presence.route(address)
        if route is None or route.closed:
            self._outgoing.send(address, frame)
        else:
            route.send(frame)

    def _reported(
        self, connection: Connection, addresses: list[Address], fault: str, verified: bool = False
    ) -> None:
        if fault or not addresses:
            return self.reject(fault or "no address", connection.host)
        self._probing.report(addresses, connection.host, verified)

    def _reached(self, address: Address) -> None:
        """Take over a client that is alive, if the broker where it registered is silent."""
        if not self._probing.alive(address):
            return
        adopted, news, fault = self.registry.adopt(address)
        self._adopted += len(adopted)
        for key in adopted:
            self._sharing.register(*key)
        self._turns.put(("adopted", address), "", self._tell(news))
        if fault:
            self.reject(fault, address[0])

    def _answered(self, address: Address, number: int) -> None:
        """Note a greeting from the listener of a client. Remove the client if another program is there."""
        if not self._presence.answered(address, number, self._loop.time()):
            self._failed(address, "another program is there")

    def _unreached(self, address: Address) -> None:
        self._presence.look_now(address, self._loop.time())

    def _failed(self, address: Address, reason: str) -> None:
        """Remove a client that took no connection; tell its publishers and the other brokers."""
        self._outgoing.forget(address)
        self._probing.forget(address)
        self._presence.forget(address)
        if not self.registry.knows(address):
            return
        self._deaths += 1
        cause = f"{self.name}: client gone: {reason}"
        log.info("%s: client %s:%d is gone: %s", self.name, *address, reason, extra={"cause": cause})
        if self.registry.is_own(address):
            self._sharing.withdraw(wire.DEAD, (), address)
        host = self.registry.host_of(address)
        buried = self._tell(self.registry.remove_address(address))
        if not self._turns.put(("dead", address), host, buried):
            self._turns.put(("dead", address), "", buried)

    def _on_gone(self, connection: Connection) -> None:
        self._guests.pop(connection, None)
        address = self._presence.lost(connection, self._loop.time())
        if address is not None:
            self._look_soon(address)

    def _look_soon(self, address: Address) -> None:
        """Look several times for a client without a connection; `_seek` goes on at longer intervals."""
        for after_s in _LOOKS_S if self._open and address in self._presence else ():
            self._loop.call_later(after_s, self._look_after, address)

    def _look_after(self, address: Address) -> None:
        """Probe a client of ours, unless it is back or has no registrations."""
        if not self._open or self._presence.route(address) is not None:
            return
        if self.registry.knows(address):
            self._probing.probe(address, verified=True)

    def _tick(self) -> None:
        now_s = self._loop.time()
        self._probing.tick(now_s)
        if not self._turns.waits("sweep"):
            self._turns.put("sweep", "", self._sweep(now_s))
        self._outgoing.tick(now_s)
        self._sharing.tick(now_s)
        self._timer = self._loop.call_later(self._options.heartbeat_s, self._tick)

    def _sweep(self, now_s: float) -> Job:
        """Forget what brokers repeat no more, and clients of ours that are gone."""
        silent = self._sharing.nodes - {hello.node for hello in self._guests.values()}
        lapsed = dict[Address, None]()
        here = set(self._presence.connected())
        yield from self._tell(self.registry.expire(now_s, silent, here, lapsed))
        self._probing.probe_lapsed(lapsed)
        yield from self._seek(now_s)

    def _seek(self, now_s: float) -> Job:
        """Look for clients of ours without a connection; remove those that were silent for too long."""
        for address in self._presence.missing(now_s):
            if self.registry.knows(address):
                self._probing.probe(address, verified=True)
            else:
                self._presence.forget(address)
            yield 1
        for address in self._presence.given_up(now_s):
            self._failed(address, "silent")
            yield 1

    def close(self) -> None:
        """Stop listening and close all connections. Idempotent."""
        if not self._open:
            return
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        self._listener.close()
        self._outgoing.close()
        self._sharing.close()
        self._turns.close()


def security_of(where: str | Address, tls: Tls | None) -> Security | None:
    """Return the TLS of an address, None for one without. This reads files, so do it on no event loop."""
    return Security(where, tls or Tls(), listens=True) if is_secure(where) else None


def _unfit(role: Role, tokens: Tokens, addresses: Sequence[Address]) -> str:
    if role == PUB and not tokens:
        return "published the empty pattern"
    if not addresses:
        return "no address"
    return "port 0" if any(not port for _, port in addresses) else ""


def _most(connections: int | None) -> int:
    """Return the bound of connections, which is that of memory by default: descriptors bound them anyway."""
    return connections or max(1024, default_bytes() // _CONNECTION_BYTES)
