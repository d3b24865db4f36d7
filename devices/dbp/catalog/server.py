"""The server of a catalog: a ROUTER and a UDP socket for each address, the clock, and pings to services."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from bus.errors import LinkError
from bus.ledger import Stats
from bus.serving.rejections import Rejections
from bus.serving.turns import Turns
from bus.transports.binding import Binding
from devices.dbp import ports
from devices.dbp.catalog import wire
from devices.dbp.catalog.asks import Asks
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.datagrams import Datagrams
from devices.dbp.catalog.entry import ROUTER
from devices.dbp.catalog.outcomes import Round
from devices.dbp.catalog.registry import Registry
from devices.dbp.catalog.wire import Command, Received, Refused
from devices.dbp.monitor.mirror import Audience, Mirror
from devices.dbp.monitor.wire import Grant
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket

TICK_S = 0.25
"""The longest time between two judgements of services; a quarter of a shorter interval."""

NAMED = 8  # services in one line of the log

Address = tuple[str, int]
log = logging.getLogger("buscoupler.catalog")


class Server:
    """Serves one registry. `changed()` is called when the list has changed and must be stored.

    `stats` is the ledger of messages over TCP; its `rejected` counts refusals over UDP too. `mirrors` says
    which hosts may get copies of messages at the ROUTER, on `monitor_port` or the next free port; `copies` is
    the ledger of these.
    """

    def __init__(
        self,
        name: str,
        bounds: Bounds,
        strict: bool,
        changed: Callable[[], object],
        mirrors: Audience = "host",
        monitor_port: int = ports.MONITOR,
    ) -> None:
        self.name = name
        self.registry = Registry(bounds, strict)
        self._bounds, self._changed = bounds, changed
        self._turns = Turns()
        self._router = Socket(
            "router", self._on_messages, _limits(bounds), name, lost=self.registry.left, turns=self._turns
        )
        self.stats: Stats = self._router.stats
        self._reject = Rejections(name, self.stats.rejected, log)
        self._mirrors, self._monitor_port = mirrors, monitor_port
        self.copies = Stats()
        self._mirror = Mirror(name, {}, "", "nobody")
        self._asks = Asks(bounds, self._on_answer)
        self._datagrams: list[Datagrams] = []
        self._bound: dict[Address, Address] = {}
        self._timer: TimerHandle | None = None
        self._found: Round = Round((), (), ())

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses on which the server listens, with the bound ports, or waits to listen."""
        return tuple(self._bound.values())

    @property
    def bindings(self) -> list[Binding[Any]]:
        """The sockets at these addresses, as a status shows them."""
        return [*self._router.bindings, *(one.binding for one in self._datagrams)]

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for a status page, by their keys."""
        services = list(self.registry.services)
        return {
            "services": len(services),
            "suspect": sum(service.suspect for service in services),
            "pings": self._asks.asked,
            "connections": self._router.peers,
            "silenced": len(self.registry.silenced),
        }

    def open(self, loop: AbstractEventLoop, addresses: Collection[Address], tries: int = 1) -> None:
        """Listen at each address, or wait for it. If a port is taken, try the next, `tries` ports in all.

        Raises `LinkError`, with none open.
        """
        self._loop = loop
        self._turns.open(loop)
        self._router.open(loop)
        try:
            for host, port in addresses:
                self._bind(host, port, tries)
        except LinkError:
            self.close()
            raise
        watched, host = {ROUTER: self._router}, self.addresses[0][0]
        self._mirror = Mirror(
            self.name, watched, host, self._mirrors, self._monitor_port, _limits(self._bounds), self.copies
        )
        self._tick()

    def _bind(self, host: str, port: int, tries: int) -> None:
        if tries > 1:
            return self._listens((host, port), (host, self._router.bind(host, port, tries)))
        self._bound[host, port] = host, port
        self._router.await_address(host, port, partial(self._listens, (host, port)))
        return None

    def _listens(self, asked: Address, bound: Address) -> None:
        """Take heartbeats at the port of a ROUTER that listens now."""
        self._bound[asked] = asked[0], bound[1]
        self._datagrams.append(Datagrams(self._on_datagram, self.stats.reject))
        self._datagrams[-1].open(self._loop, *self._bound[asked], patient=self._timer is not None)

    def _on_messages(self, messages: list[Message]) -> None:
        for (peer, *frames), host in messages:
            self._take(peer, frames, host)

    def _take(self, peer: bytes, frames: list[bytes], host: str) -> None:
        received = wire.parse(frames, self._bounds)
        outcome = self.registry.take(peer, host, received, self._loop.time())
        if outcome.refused:
            self._reject(outcome.refused, host)
        if outcome.reply is not None and isinstance(received, Received):
            self._say(peer, outcome.reply, received.binary_time)
        if outcome.kept:
            self._changed()
        if isinstance(received, Received) and received.word == wire.MONITOR and not outcome.refused:
            self._say(peer, self._mirrored(received, host), received.binary_time)

    def _mirrored(self, received: Received, host: str) -> Command:
        """Return the answer to a request for a mirror of the ROUTER."""
        granted = self._mirror.ask("".join(received.texts), host, self._loop)
        if isinstance(granted, Grant):
            return Command(wire.MONITOR, (granted.pack(),))
        self._reject(granted, host)
        return Command(wire.DENIED, (granted.encode(),))

    def _say(self, peer: bytes, command: Command, binary_time: bool) -> None:
        self._router.send([peer, *wire.pack(command, binary_time, time.time())])

    def _on_datagram(self, data: bytes, host: str) -> bytes:
        received = wire.parse_datagram(data, self._bounds)
        if isinstance(received, Refused):
            self._reject(received.reason, host)
            return b""
        if received.word != wire.HEARTBEAT:
            self._reject("unexpected", host)
            return b""
        (name,) = received.texts
        refused = self.registry.beat(name, host, self._loop.time())
        if refused:
            self._reject(refused, host)
        return wire.pack_datagram(wire.DISCONNECT if refused else wire.HEARTBEAT, name, time.time())

    def _on_answer(self, name: str, received: Received | Refused) -> bool:
        refused = self.registry.answered(name, received, self._loop.time())
        if refused:
            self._reject(refused)
        return not refused

    def _tick(self) -> None:
        found = self.registry.tick(self._loop.time(), self._asks.waiting)
        for ask in found.asks:
            if ask.address is not None:
                self._asks.ask(self._loop, ask, ask.address)
            elif ask.peer:
                self._say(ask.peer, Command(wire.PING), ask.binary_time)
        self._tell(found)
        self._asks.go_on()
        self._timer = self._loop.call_later(min(TICK_S, self.registry.shortest_s / 4), self._tick)

    def _tell(self, found: Round) -> None:
        if found.suspect:
            log.info("%s: suspect, for they give no sign of life: %s", self.name, _some(found.suspect))
        for name in found.gone:
            self._asks.drop(name)
        if found.gone:
            log.warning("%s: gone, for they gave no sign of life: %s", self.name, _some(found.gone))
            self._changed()

    def close(self) -> None:
        """Stop listening and asking. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for datagrams in self._datagrams:
            datagrams.close()
        self._mirror.close()
        self._turns.close()
        self._router.close()
        self._asks.close()
        self._datagrams.clear()
        self._bound.clear()


def _some(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones: a network failure ends thousands at once."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _limits(bounds: Bounds) -> Limits:
    """Return limits beyond those of the registry, so that it can refuse a message with a reason."""
    return Limits(
        message_bytes=2 * bounds.message_bytes,
        frames=2 * bounds.frames,
        queue_bytes=2 * (bounds.all_entry_bytes + bounds.services * (6 + 3 * bounds.text_bytes)),
    )
