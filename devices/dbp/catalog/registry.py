"""The registry of a catalog, a state machine: answers to peers, pings to services, and gone services. Pure.

A peer is an identity at the ROUTER, a host the address that it connects from. The original implementation
makes a new connection, and so a new peer, for each registration and update, so these are matched by name and
host.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from typing import Any

from devices.dbp.catalog import wire
from devices.dbp.catalog.body import pack_object, read_objects
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import LIVENESS, Entry, read, updated
from devices.dbp.catalog.life import State, Watch
from devices.dbp.catalog.outcomes import UNEXPECTED, Ask, Outcome, Round, ask_of, changes, denied, life_of
from devices.dbp.catalog.services import Service, Services
from devices.dbp.catalog.silenced import Silenced
from devices.dbp.catalog.wire import Command, Received, Refused


class Registry:
    """The registry of the listed services. `now_s` arguments are seconds of a monotonic clock.

    `strict` is that of `entry.read`. `shortest_s` is the shortest agreed interval at the last `tick`.
    """

    def __init__(self, bounds: Bounds, strict: bool = False) -> None:
        self.shortest_s = bounds.interval_s
        self.services = Services(bounds)
        self.silenced = Silenced(bounds)
        self._bounds, self._strict = bounds, strict
        self._peers: dict[bytes, Service] = {}
        self._answers: dict[bytes, Callable[[bytes, str, Received, float], Outcome]] = {
            wire.INFO_REQUEST: self._info,
            wire.REGISTRATION: self._register,
            wire.UPDATE: self._update,
            wire.HEARTBEAT: self._beat,
            wire.DISCONNECT: self._disconnect,
            wire.ACKNOWLEDGED: self._sign,
            wire.PONG: self._sign,
            wire.PING: self._ping,
            wire.MONITOR: self._monitor,
        }

    def take(self, peer: bytes, host: str, received: Received | Refused, now_s: float) -> Outcome:
        """Take a message of a peer. The reply must be packed in the peer's form of time."""
        if self.silenced.hears(peer, now_s):
            return Outcome(refused="silenced")
        if isinstance(received, Refused):
            self._silence(peer, now_s)
            return Outcome(refused=received.reason)
        service = self._peers.get(peer)
        if service is not None:
            service.watch.heard(now_s)
        answer = self._answers.get(received.word)
        outcome = answer(peer, host, received, now_s) if answer else UNEXPECTED
        if outcome is UNEXPECTED or received.word == wire.DISCONNECT:
            self._silence(peer, now_s)
        return outcome

    def _silence(self, peer: bytes, now_s: float) -> None:
        """Answer a peer no more, while its connection lasts."""
        self.left(peer)
        self.silenced.add(peer, now_s)

    def left(self, peer: bytes) -> None:
        """Forget a peer whose connection has ended: the next one with its identity may be its successor.

        Its service stays listed while it answers pings elsewhere.
        """
        self.silenced.forget(peer)
        service = self._peers.pop(peer, None)
        if service is not None:
            service.peer = b""

    def _info(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        if received.texts == (LIVENESS,):
            body = pack_object({service.entry.name: life_of(service, now_s) for service in self.services})
        else:
            body = self.services.some(received.texts) if received.texts else self.services.every()
        return Outcome(Command(wire.INFO_REPLY, (body,)))

    def _register(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        if peer in self._peers:
            return UNEXPECTED
        entry = read(received.fields, host, self._strict, self._bounds)
        if not isinstance(entry, Entry):
            return denied(*entry)
        service = self.services.find(entry.name)
        if service is None:
            service = Service(entry, host, self._watch(entry, now_s), received.binary_time)
            refused = self.services.add(service)
        else:
            refused = self._return(service, entry, host, now_s)
        if refused:
            return denied(refused)
        self._meet(service, peer, received)
        return Outcome(Command(wire.APPROVED, changes(received, entry)), kept=True)

    def _return(self, service: Service, entry: Entry, host: str, now_s: float) -> str:
        """Take a service that registers again, or a successor at the same address. Return "", or why not."""
        if service.host != host or not service.entry.addresses & entry.addresses:
            return "name taken"
        service.watch.heard(now_s)
        return self._change(service, entry)

    def _change(self, service: Service, entry: Entry) -> str:
        refused = self.services.change(service, entry)
        if not refused:
            service.watch.agree(*self._agreed(entry))
        return refused

    def _watch(self, entry: Entry, now_s: float) -> Watch:
        return Watch(*self._agreed(entry), now_s)

    def _agreed(self, entry: Entry) -> tuple[float, bool]:
        """Return the agreed interval in s, and whether the service announces heartbeats."""
        return entry.interval_s or self._bounds.interval_s, entry.interval_s is not None

    def _meet(self, service: Service, peer: bytes, received: Received) -> None:
        self._peers.pop(service.peer, None)
        self._peers[peer] = service
        service.peer, service.binary_time = peer, received.binary_time

    def _update(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        own = self._peers.get(peer)
        name = received.fields.get("name", own.entry.name if own else None)
        if not isinstance(name, str):
            return denied("name")
        service = self.services.find(name)
        if service is None:
            return UNEXPECTED
        if service.host != host or own not in (None, service):
            return denied("not yours")
        service.watch.heard(now_s)
        fields = updated(service.entry.fields, received.fields) | {"name": name}
        entry = read(fields, host, self._strict, self._bounds)
        if not isinstance(entry, Entry):
            return denied(*entry)
        refused = self._change(service, entry)
        if refused:
            return denied(refused)
        return Outcome(Command(wire.ACKNOWLEDGED, changes(received, entry)), kept=True)

    def _beat(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        own, (name,) = self._peers.get(peer), received.texts
        if own is not None and own.entry.name != name:
            return UNEXPECTED
        return UNEXPECTED if self.beat(name, host, now_s) else Outcome(Command(wire.ACKNOWLEDGED))

    def beat(self, name: str, host: str, now_s: float) -> str:
        """Take the heartbeat of a datagram. Return "", or a reason; then the answer must be a disconnect."""
        service = self.services.find(name)
        if service is None or service.host != host:
            return "unexpected"
        service.watch.heard(now_s)
        return ""

    def _disconnect(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        service = self._peers.get(peer)
        if service is not None:
            self._remove(service)
        return Outcome(kept=service is not None)

    def _remove(self, service: Service) -> None:
        self.services.remove(service)
        self._peers.pop(service.peer, None)

    def _sign(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        """Take a command that only shows that a service lives."""
        return Outcome() if peer in self._peers else UNEXPECTED

    def _ping(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        return Outcome(Command(wire.PONG))

    def _monitor(self, peer: bytes, host: str, received: Received, now_s: float) -> Outcome:
        """Accept a request for a mirror, which the server answers: it has the sockets."""
        return Outcome()

    def answered(self, name: str, received: Received | Refused, now_s: float) -> str:
        """Take the answer to a ping, from the connection to the service's own ROUTER.

        Any answer is a sign of life, even one that is no command, except a pong with another service's name.
        Return "", or the reason of a refusal.
        """
        service = self.services.find(name)
        if service is None:
            return "unexpected"
        if (
            isinstance(received, Received)
            and received.word == wire.PONG
            and received.texts
            and received.texts != (name,)
        ):
            return "other name"
        service.watch.heard(now_s)
        return ""

    def tick(self, now_s: float, waiting: Container[str] = ()) -> Round:
        """Judge all services, and remove those that are gone. Call it four times in the shortest interval.

        `waiting` are the names of services whose pings have not left yet.
        """
        self.silenced.expire(now_s)
        asks: list[Ask] = []
        suspect: list[str] = []
        gone: list[Service] = []
        for service in self.services:
            if service.entry.name in waiting:
                service.watch.put_off(now_s)
            was, state = service.suspect, service.watch.state(now_s)
            service.suspect = state is State.SUSPECT
            if state is State.GONE:
                gone.append(service)
            elif service.watch.ask(now_s):
                asks.append(ask_of(service))
            if service.suspect and not was:
                suspect.append(service.entry.name)
        for service in gone:
            self._remove(service)
        self.shortest_s = min((s.watch.interval_s for s in self.services), default=self._bounds.interval_s)
        return Round(tuple(asks), tuple(suspect), tuple(service.entry.name for service in gone))

    def snapshot(self) -> Iterator[bytes]:
        """Yield a record of each service, to be stored."""
        for s in self.services:
            head = pack_object({"name": s.entry.name, "host": s.host, "binary_time": s.binary_time})
            yield head[:-1] + b', "fields": ' + s.entry.packed + b"}"

    def restore(self, record: bytes, now_s: float) -> str:
        """List a service of a snapshot again, as if it had just registered. Return "", or why it cannot be.

        A service that has registered since stays as it is.
        """
        bounds = self._bounds
        whole = replace(bounds, depth=bounds.depth + 1, items=max(1, len(record)))  # updates add up
        match read_objects(record, whole):
            case {"host": str(host), "binary_time": bool(binary_time), "fields": dict(fields), "name": name}:
                return self._restore({**fields, "name": name}, host, binary_time, now_s)
        return "record"

    def _restore(self, fields: dict[str, Any], host: str, binary_time: bool, now_s: float) -> str:
        entry = read(fields, "", self._strict, self._bounds)
        if not isinstance(entry, Entry):
            return entry[0]
        if self.services.find(entry.name) is not None:
            return ""
        return self.services.add(Service(entry, host, self._watch(entry, now_s), binary_time))
