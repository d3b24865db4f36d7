"""The broker's side of the leases on an event loop: a TMQ broker with a table of leases behind it."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Hashable, Iterable, Mapping
from math import inf
from os import urandom
from types import MappingProxyType
from typing import Any

from bus.announcements import RELAYED, Hear, relayed
from bus.hub import Hub
from bus.keys import Keyring
from bus.leases.group import Answer, Lease
from bus.leases.relay import Relay, read_note
from bus.leases.settings import BrokerSettings
from bus.leases.signed import Notary, unpack_ask
from bus.leases.table import LeaseTable
from bus.machine.wake_hook import WakefulLoop
from bus.report import LISTED, Report
from bus.serving.connection import Connection
from bus.tmq.broker import Broker, ClientRules
from bus.tmq.wire import RELAYS, Address, Tokens
from bus.transports.options import Tls
from bus.wire.frame import PUB, SUB
from bus.wire.pattern import hexadecimal

_TICK_S = 0.01  # at least, between two looks
_LATE_S = 0.02


class LeasingBroker:
    """A TMQ broker that also leases bridges (docs/failover.md).

    With `keys` it accepts only signed claims, and signs its grants. A claim over TLS with a certificate that
    was asked for (`require_peer_cert`) counts as signed; where an address asks for certificates, other claims
    must be signed. `tls` has the certificates of addresses. `hear` judges announcements of gateways, which it
    relays. `options` are arguments of `Broker`.
    """

    def __init__(
        self,
        listen: Iterable[str],
        peers: Iterable[str | Address] = (),
        settings: BrokerSettings = BrokerSettings(),  # noqa: B008 (frozen)
        keys: Keyring | None = None,
        tls: Mapping[str, Tls] = MappingProxyType({}),
        hear: Hear = read_note,
        **options: Any,
    ) -> None:
        self.table = LeaseTable(settings.most_ms, on_reject=self._on_reject)
        self._notary = Notary(keys, urandom, _asks(tls))
        self.broker = Broker(
            listen,
            peers,
            self._on_bridge,
            heartbeat_s=settings.heartbeat_ms / 1000,
            rules=_rules(settings),
            tls=tls,
            flags=RELAYS,
            **options,
        )
        self.hub = Hub(self.broker.name)
        """A hub without pipes, which has the broker's ledgers: no message passes through a broker."""
        for link, stats in self.broker.ledgers.items():
            self.hub.keep(link, stats)
        self._connections: set[Connection] = set()
        self._relay = Relay(hear)
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._due_s = inf

    @property
    def name(self) -> str:
        return self.broker.name

    @property
    def urls(self) -> list[str]:
        return self.broker.urls

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the broker, as numbers by name, for a status page."""
        return self.broker.counts | {"unrelayed": self._relay.unrelayed}

    @property
    def rejected(self) -> dict[str, int]:
        """The counts of refused claims and packets, by reason."""
        return self.broker.stats.rejected

    def report(self) -> Report:
        """Return the broker's report for a status: all leases, and the first registrations."""
        found = [_registration(*one) for one in self.broker.registry.first(LISTED)]
        lists, leases = {"registrations": found}, self.leases()
        return Report(self.name, "broker", self.urls, self.counts, self.rejected, leases, lists)

    @property
    def is_open(self) -> bool:
        return self._loop is not None

    def open(self, loop: AbstractEventLoop) -> None:
        """Listen, and watch the time. Raises `LinkError` with nothing left open.

        An address that is not there yet is waited for.
        """
        self.broker.open(loop, wait=True)
        self._loop = loop
        if isinstance(loop, WakefulLoop):
            loop.guard(self._on_wake)

    def revise(
        self,
        peers: Iterable[str | Address],
        settings: BrokerSettings,
        keys: Keyring | None = None,
        tls: Mapping[str, Tls] = MappingProxyType({}),
    ) -> None:
        """Change to other peers, settings and keys; all connections, registrations and leases stay.

        Of `tls` only whether certificates are asked for counts here: addresses come and go at `broker`.
        """
        self._notary.revise(keys, _asks(tls))
        self.table.revise(settings.most_ms)
        self.broker.revise(peers, _rules(settings), settings.heartbeat_ms / 1000)

    def hubs(self) -> tuple[Hub, ...]:
        """Return the hub with the broker's ledgers."""
        return (self.hub,)

    def leases(self) -> list[Lease]:
        """Return all leases with their candidates; none while it is closed."""
        return [] if self._loop is None else self.table.leases(self._loop.time())

    def _on_bridge(self, frame: bytes, connection: Connection) -> None:
        if self._loop is None:
            return
        if connection.deaf:  # it ended while we answered what came before in the same batch
            return self.broker.stats.reject("peer gone")
        if connection not in self._connections:
            self._connections.add(connection)
            connection.on_lost(self._on_lost)
        if frame[0] == RELAYED:
            reason = self._relay.heard(frame, connection, self._loop)
            return self._on_reject(reason, connection) if reason else None
        asked = unpack_ask(frame)
        if asked is not None:
            return self._say(connection, self._notary.ask(asked, connection))
        claim, fault = self._notary.open(frame, connection, connection.proven)
        if fault:
            self._on_reject(fault, connection)
            return self._say(connection, self._notary.first_refusal(connection))
        answers = self.table.heard(claim, connection, self._loop.time(), connection.host)
        if any(who is connection for who, _ in answers):
            self._relay.meet(connection)
        return self._send(answers)

    def announce(self, frame: bytes) -> None:
        """Send an announcement of the gateway that runs this broker to the others that announce here."""
        self._relay.say(relayed(frame), None)

    def _say(self, connection: Connection, answer: bytes) -> None:
        if answer:
            connection.say(answer)

    def _on_lost(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._relay.forget(connection)
        self._notary.forget(connection)
        if self._loop is not None:
            self._send(self.table.lost(connection, self._loop.time()))

    def _on_reject(self, reason: str, who: Hashable) -> None:
        self.broker.reject(reason, who.host if isinstance(who, Connection) else "")

    def _on_wake(self) -> None:
        """Spare the holders of leases, before anything is read, if this process got its turn too late."""
        if self._loop is not None and self._loop.time() > self._due_s + _LATE_S:
            self.table.woke(self._loop.time())

    def _tick(self) -> None:
        self._due_s = inf
        if self._loop is not None:
            self._send(self.table.tick(self._loop.time()))

    def _send(self, answers: list[Answer]) -> None:
        for who, frame in answers:
            if isinstance(who, Connection):
                who.send(self._notary.seal(frame, who))
        self._arm()

    def _arm(self) -> None:
        """Set the timer for the next deadline of the table, which is mostly later than the last time."""
        if self._loop is None or self.table.due_s >= self._due_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_s = self.table.due_s
        self._timer = self._loop.call_later(max(_TICK_S, self._due_s - self._loop.time()), self._tick)

    def close(self) -> None:
        """Stop, and close all connections. Idempotent."""
        if isinstance(self._loop, WakefulLoop):
            self._loop.unguard(self._on_wake)
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
        self._relay.close()
        self.broker.close()


def _registration(role: int, tokens: Tokens, address: Address) -> dict[str, str]:
    roles = {SUB: "subscriber", PUB: "publisher"}
    return {
        "role": roles.get(role, str(role)),
        "pattern": "/".join(map(hexadecimal, tokens)) or "/",
        "address": "{}:{}".format(*address),
    }


def _rules(settings: BrokerSettings) -> ClientRules:
    return ClientRules(not settings.exact, settings.foreign_hosts, settings.connections, settings.unconnected)


def _asks(tls: Mapping[str, Tls]) -> bool:
    """Return whether some address asks for certificates."""
    return any(each.require_peer_cert for each in tls.values())
