"""The clients of a broker: publishers are told their subscribers, and the dead are found and removed."""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Sequence

import bus.tmq.wire as wire
from bus.serving.connection import Connection
from bus.serving.turns import Job
from bus.tmq.broker.common import Common
from bus.tmq.broker.outgoing import Outgoing, Reports
from bus.tmq.broker.presence import Presence
from bus.tmq.broker.probing import Probing
from bus.tmq.broker.registry import Step
from bus.tmq.broker.sharing import Sharing
from bus.tmq.wire import Address

log = logging.getLogger("buscoupler.tmq")

_LOOKS_S = (0.005, 0.1, 0.5)  # after a connection was lost: a dying process closes its listener a bit later


class Clients:
    """The clients in the registry of a broker, of which `presence` knows who is connected.

    A client that takes no connection is removed, and its publishers and the other brokers (`sharing`) are
    told. One that is alive although its broker is silent is adopted.
    """

    def __init__(self, common: Common, presence: Presence[Connection], sharing: Sharing) -> None:
        self.deaths = self.adopted = 0
        self.presence = presence
        self._name, self._registry, self._sharing = common.name, common.registry, sharing
        self._turns, self._reject = common.turns, common.reject
        reports = Reports(self._reached, self.failed, self._answered, self._unreached)
        self._outgoing = Outgoing(common, reports)
        self._probing = Probing(common, self._outgoing, presence.__contains__)
        self._open = False

    @property
    def counts(self) -> dict[str, int]:
        """The counts of clients that were probed and removed, as numbers by name."""
        return {
            "probes": self._probing.count,
            "doubted": self._outgoing.doubted,
            "deaths": self.deaths,
            "adopted": self.adopted,
            "routes": len(self.presence),
            "unnoted": self.presence.unnoted,
        }

    def open(self, loop: AbstractEventLoop) -> None:
        """Use this loop from now on."""
        self._loop, self._open = loop, True
        self._outgoing.open(loop)
        self._probing.open(loop)

    def revise(self, heartbeat_s: float) -> None:
        """Greet at another interval from now on."""
        self._outgoing.revise(heartbeat_s)

    def tell(self, news: Iterable[Step]) -> Job:
        """Send the news to publishers, a step at a time."""
        for units, tell in news:
            if tell is not None:
                kind = wire.ADD if tell.change == "add" else wire.FORGET
                for frame in wire.address_frames(kind, tell.tokens, tell.subscribers):
                    self._send(tell.publisher, frame)
            yield units

    def _send(self, address: Address, frame: bytes) -> None:
        route = self.presence.route(address)
        if route is None or route.deaf:
            self._outgoing.send(address, frame)
        else:
            route.send(frame)

    def report(self, addresses: Sequence[Address], host: str, verified: bool) -> None:
        """Probe clients that `host` reports as dead. `verified`: another broker has probed them itself."""
        self._probing.report(addresses, host, verified)

    def _reached(self, address: Address) -> None:
        """Take over a client that is alive, if the broker where it registered is silent."""
        if not self._probing.alive(address):
            return
        adopted, news, fault = self._registry.adopt(address)
        self.adopted += len(adopted)
        for key in adopted:
            self._sharing.register(*key)
        self._turns.put(("adopted", address), "", self.tell(news))
        if fault:
            self._reject(fault, address[0])

    def _answered(self, address: Address, number: int) -> None:
        """Note a greeting from the listener of a client. Remove the client if another program is there."""
        if not self.presence.answered(address, number, self._loop.time()):
            self.failed(address, "another program is there")

    def _unreached(self, address: Address) -> None:
        self.presence.look_now(address, self._loop.time())

    def failed(self, address: Address, reason: str) -> None:
        """Remove a client that took no connection; tell its publishers and the other brokers."""
        self._outgoing.forget(address)
        self._probing.forget(address)
        self.presence.forget(address)
        if not self._registry.knows(address):
            return
        self.deaths += 1
        cause = f"{self._name}: client gone: {reason}"
        log.info("%s: client %s:%d is gone: %s", self._name, *address, reason, extra={"cause": cause})
        if self._registry.is_own(address):
            self._sharing.withdraw(wire.DEAD, (), address)
        host = self._registry.host_of(address)
        buried = self.tell(self._registry.remove_address(address))
        if not self._turns.put(("dead", address), host, buried):
            self._turns.put(("dead", address), "", buried)

    def lost(self, connection: Connection) -> None:
        """Look for the client whose connection is gone, if it had one that it greeted on."""
        address = self.presence.lost(connection, self._loop.time())
        if address is not None:
            self.look_soon(address)

    def look_soon(self, address: Address) -> None:
        """Look several times for a client without a connection; `sweep` goes on at longer intervals."""
        for after_s in _LOOKS_S if self._open and address in self.presence else ():
            self._loop.call_later(after_s, self._look_after, address)

    def _look_after(self, address: Address) -> None:
        """Probe a client of ours, unless it is back or has no registrations."""
        if not self._open or self.presence.route(address) is not None:
            return
        if self._registry.knows(address):
            self._probing.probe(address, verified=True)

    def tick(self, now_s: float) -> None:
        """Let clients be probed again, and close connections that wait in vain. Call it once a heartbeat."""
        self._probing.tick(now_s)
        self._outgoing.tick(now_s)

    def sweep(self, now_s: float, silent: Callable[[], set[int]]) -> Job:
        """Forget what brokers repeat no more, and clients of ours that are gone.

        `silent()` returns the numbers of the brokers that are expected and not there.
        """
        lapsed = dict[Address, None]()
        here = set(self.presence.connected())
        yield from self.tell(self._registry.expire(now_s, silent(), here, lapsed))
        self._probing.probe_lapsed(lapsed)
        yield from self._seek(now_s)

    def _seek(self, now_s: float) -> Job:
        """Look for clients of ours without a connection; remove those that were silent for too long."""
        for address in self.presence.missing(now_s):
            if self._registry.knows(address):
                self._probing.probe(address, verified=True)
            else:
                self.presence.forget(address)
            yield 1
        for address in self.presence.given_up(now_s):
            self.failed(address, "silent")
            yield 1

    def close(self) -> None:
        """Close all connections to clients that the broker made. Idempotent."""
        self._open = False
        self._outgoing.close()
