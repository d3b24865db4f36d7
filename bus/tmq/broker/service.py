"""The TMQ broker: it keeps registrations, names subscribers to publishers, removes the dead (docs/tmq.md)."""

import logging
import random
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import bus.tmq.wire as wire
from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.rejections import Rejections
from bus.serving.turns import Job, Turns
from bus.tmq.address import written
from bus.tmq.broker.clients import Clients
from bus.tmq.broker.common import ClientRules, Common
from bus.tmq.broker.places import Places
from bus.tmq.broker.presence import Presence
from bus.tmq.broker.registering import REGISTRATIONS, Registering
from bus.tmq.broker.registry import Registry
from bus.tmq.broker.sharing import Sharing
from bus.tmq.greeter import Greeter
from bus.tmq.options import Options
from bus.tmq.wire import Address, Hello
from bus.transports.binding import Binding
from bus.transports.budget import default_bytes
from bus.transports.options import Tls
from bus.transports.secure import Security
from bus.wire.frame import BRIDGE

log = logging.getLogger("buscoupler.tmq")

_READ_BYTES = 16 * 1024  # at once: some hundreds of packets
_CONNECTION_BYTES = 16 * 1024  # of memory, for a client with a registration


class Broker:
    """A TMQ broker, which listens at `listen` (`tcp://HOST:PORT`, one or several).

    It also listens at `tls+tcp://HOST:PORT`, with the certificates that `tls` has for such an address. It
    shares registrations with `peers`, brokers of ours, each of which names the others (itself too, if one
    list serves all). It judges clients by `rules`. `registry` has the bounds of registrations, and is empty.

    `on_bridge(frame, connection)` gets each packet with the type bit BRIDGE 0x80: `connection.send(frame)`
    answers, `flags` are in all greetings, `connection.name` names the sender, `connection.on_lost(callback)`
    reports its end. `options` are the fields of `bus.tmq.Options`. `name` is used in logs. `stats` is the
    ledger of what clients were sent; its `rejected` counts refused input by reason. Raises `LinkError`.
    """

    def __init__(
        self,
        listen: str | Address | Iterable[str | Address],
        peers: Iterable[str | Address] = (),
        on_bridge: Callable[[bytes, Connection], object] | None = None,
        name: str = "tmq broker",
        rules: ClientRules = ClientRules(),  # noqa: B008 (frozen)
        registry: Registry | None = None,
        tls: Mapping[str, Tls] = MappingProxyType({}),
        flags: int = 0,
        **options: Any,
    ) -> None:
        self.name, self._on_bridge, self._flags = name, on_bridge, flags
        self.stats, self.registry = Stats(), Registry() if registry is None else registry
        bounds = {"read_bytes": _READ_BYTES, "connections": _most(rules.connections)}
        self._options = Options(**bounds | options)
        self._turns, self._node = Turns(), random.getrandbits(32)
        self.reject = Rejections(name, self.stats.rejected, log)
        self._greeter = Greeter(
            self._options, self._hello, self._on_frames, self._on_gone, self.reject, self.stats
        )
        self._listener = self._greeter.listener
        self._places = Places(name, _each(listen), tls, self._listener)
        self._serve([written(peer) for peer in peers], rules)
        self._timer: TimerHandle | None = None
        self._open = False

    def _serve(self, peers: list[Address], rules: ClientRules) -> None:
        """Make the parts that serve clients and other brokers."""
        common = Common(
            self.name,
            self._options,
            self._hello,
            self._on_frames,
            self.registry,
            self._turns,
            self.reject,
            self.stats,
        )
        self._presence = Presence[Connection](self.registry.knows, self.registry.limit, rules.unconnected)
        self._sharing = Sharing(common, peers, self._on_known)
        self._clients = Clients(common, self._presence, self._sharing)
        self._registering = Registering(common, self._node, self._clients, self._sharing, rules)

    @property
    def addresses(self) -> list[Address]:
        """The addresses where the broker listens, with the bound ports once it is open."""
        return self._places.addresses

    @property
    def urls(self) -> list[str]:
        """The URLs where the broker listens, with the bound ports once it is open."""
        return self._places.urls

    @property
    def bindings(self) -> list[Binding[Address]]:
        """The addresses at which the broker listens, or waits to, as a status shows them."""
        return self._places.bindings

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the broker, as numbers by name, for a status page."""
        return {
            "registrations": len(self.registry),
            "connections": len(self._listener.connections),
            "accepted": self._listener.accepted,
            "refused": self._listener.refused,
            **self._clients.counts,
            "expired": self.registry.expired,
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
        self._places.open(loop, wait)
        self._open = True
        self._registering.open(loop)
        self._clients.open(loop)
        self._sharing.open(loop)
        self._tick()

    def listens(self, where: str) -> bool:
        """Return whether the broker listens, or waits to, at an address in the form of `listen`."""
        return self._places.has(where)

    def listen(self, where: str, security: Security | None = None) -> None:
        """Listen at one more address, as soon as it is there. Raises `LinkError` if that is not possible.

        `security` is that of `bus.tmq.broker.places.security_of`.
        """
        self._places.add(where, security)

    def leave(self, where: str) -> None:
        """Stop listening at an address. Clients that connected there stay, as do all registrations."""
        self._places.leave(where)

    def revise(
        self, peers: Iterable[str | Address], rules: ClientRules, heartbeat_s: float | None = None
    ) -> None:
        """Share with other brokers from now on, judge clients by other rules, greet at another interval.

        Tell all that are connected at once how long we may be silent. Those beyond other bounds stay.
        """
        self._registering.revise(rules)
        self._sharing.take_peers([written(peer) for peer in peers])
        self._presence.revise(rules.unconnected)
        most, before_s = _most(rules.connections), self._options.heartbeat_s
        if heartbeat_s in (None, before_s) and most == self._options.connections:
            return
        heartbeat_s = heartbeat_s or before_s
        self._options = replace(self._options, heartbeat_s=heartbeat_s, connections=most)
        self._listener.revise(self._options)
        self._clients.revise(heartbeat_s)
        self._sharing.revise(heartbeat_s)
        if self._timer is not None:
            self._timer.cancel()
            self._tick()

    def _hello(self, flags: int = 0) -> Hello:
        return Hello(self._node, self._options.silence_ms, flags | self._flags)

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
        kind, at = frame[0], self._registering
        if kind & wire.HELLO_MASK == wire.HELLO:
            hello = self._greeter.greeted(connection, frame)
            return self._clients.tell(at.greeted(connection, hello) if hello is not None else ())
        if kind in REGISTRATIONS:
            return self._clients.tell(at.register(connection, frame))
        if kind == wire.DEAD:
            at.dead(connection, frame)
        elif kind & ~wire.SHARED in REGISTRATIONS or kind == wire.DEAD | wire.SHARED:
            return self._clients.tell(at.shared(connection, frame))
        else:
            self.reject("bridge" if kind & BRIDGE else f"type 0x{kind:02x}", connection.host)
        return iter(())

    def _on_known(self) -> None:
        """Give back to brokers that are known as peers now, and handle what they have shared before."""
        for connection, frames in self._registering.known():
            given_back = self._clients.tell(self._registering.give_back(connection))
            job = chain(given_back, self._handled(connection, frames))
            if not self._turns.put(connection, connection.host, job):
                self.reject("too much work", connection.host, len(frames) or 1)

    def _on_gone(self, connection: Connection) -> None:
        self._registering.lost(connection)
        self._clients.lost(connection)

    def _tick(self) -> None:
        now_s = self._loop.time()
        self._clients.tick(now_s)
        self._registering.tick()
        if not self._turns.waits("sweep"):
            self._turns.put("sweep", "", self._clients.sweep(now_s, self._registering.silent))
        self._sharing.tick(now_s)
        self._timer = self._loop.call_later(self._options.heartbeat_s, self._tick)

    def close(self) -> None:
        """Stop listening and close all connections. Idempotent."""
        if not self._open:
            return
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        self._clients.close()
        self._listener.close()
        self._sharing.close()
        self._turns.close()


def _each(listen: str | Address | Iterable[str | Address]) -> list[str | Address]:
    """Return the addresses of a `listen`, which may be a single one."""
    several: Any = listen
    is_single = isinstance(listen, str) or (isinstance(listen, tuple) and isinstance(listen[-1], int))
    return [several] if is_single else list(several)


def _most(connections: int | None) -> int:
    """Return the bound of connections, which is that of memory by default: descriptors bound them anyway."""
    return connections or max(1024, default_bytes() // _CONNECTION_BYTES)
