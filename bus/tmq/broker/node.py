"""The TMQ broker on one event loop: registrations in, whom to send to out, the dead removed."""

import logging
import random
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Sequence

from bus.hub import Stats
from bus.tmq.broker.outgoing import Outgoing
from bus.tmq.broker.registry import Registry, Role, Tell
from bus.tmq.broker.sharing import Sharing
from bus.tmq.connection import Connection
from bus.tmq.listener import Listener, bind
from bus.tmq.options import Options, Rejections
from bus.tmq.wire import (
    ADD,
    DEAD,
    FORGET,
    HELLO,
    HELLO_MASK,
    MESSAGE,
    PUBLISH,
    SHARED,
    SUBSCRIBE,
    UNPUBLISH,
    UNSUBSCRIBE,
    Address,
    Hello,
    Tokens,
    address_frames,
    data_of,
    pack_hello,
    pack_shared,
    tokens_of,
    unpack_addresses,
    unpack_shared,
)
from bus.wire.frame import BRIDGE, PUB, REMOVE, SUB, pack

log = logging.getLogger("buscoupler.tmq")

_REGISTRATIONS = {SUBSCRIBE, PUBLISH, UNSUBSCRIBE, UNPUBLISH}
_PROBES = 1024  # addresses looked at
_PROBE_AGAIN_S = 5.0  # one that was found alive is not looked at again within
ANY = "0.0.0.0"


class BrokerNode:
    """Listens on `listen`; shares what its clients say with the brokers at `peers`.

    `classic_prefixes=False`: a subscriber that has not shown itself to be ours is given only what is
    published under exactly its pattern (the reference client fails on a longer one; docs/tmq.md).
    `on_bridge(frame, connection)` gets each packet with the type bit BRIDGE.
    """

    def __init__(
        self,
        listen: Sequence[Address],
        peers: Sequence[Address] = (),
        options: Options | None = None,
        registry: Registry | None = None,
        classic_prefixes: bool = True,
        on_bridge: Callable[[bytes, Connection], object] | None = None,
    ) -> None:
        self.node = random.getrandbits(32)
        self.stats = Stats()
        self.deaths = self.probes = self.expired = 0
        self.registry = registry if registry is not None else Registry()
        self.options = options or Options()
        self.on_bridge = on_bridge
        self.addresses: list[Address] = []
        self._listen, self._peers, self._classic_prefixes = list(listen), list(peers), classic_prefixes
        self._routes: dict[Address, Connection] = {}
        self._ours: dict[Address, None] = {}
        self._probed: dict[Address, float] = {}
        self._timer: TimerHandle | None = None
        self._open = False

    @property
    def routes(self) -> int:
        """How many clients are told over their own connection."""
        return len(self._routes)

    def open(self, loop: AbstractEventLoop) -> None:
        """Bind and listen. Raises `LinkError` for the first address that cannot be, with none left open."""
        sockets = []
        try:
            for address in self._listen:
                sockets.append(bind(address))
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        self._loop, self._open = loop, True
        self._reject = Rejections("tmq broker", self.stats.rejected, loop.time)
        self.listener = Listener(
            loop, self.options, self._hello, self._on_frames, self._on_gone, self._reject, self.stats
        )
        self.outgoing = Outgoing(loop, self.options, self._hello, self._on_frames, self._failed)
        self.sharing = Sharing(loop, self._peers, self.options, self.node, self._all_own, self._on_frames)
        for sock in sockets:
            self.listener.open(sock)
        self.addresses = list(self.listener.bound())
        self._tick()

    def _hello(self, flags: int) -> Hello:
        return Hello(self.node, self.options.silence_ms, flags)

    def _on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        self.stats.received += len(frames)
        for frame in frames:
            kind = frame[0]
            if kind & HELLO_MASK == HELLO:
                self._greeted(connection, frame)
            elif kind & BRIDGE:
                self._bridge(connection, frame)
            elif kind in _REGISTRATIONS:
                self._register(connection, frame)
            elif kind == DEAD:
                self._reported(connection, *unpack_addresses(data_of(frame)))
            elif kind & ~SHARED in _REGISTRATIONS or kind == DEAD | SHARED:
                self._shared(connection, frame)
            else:
                self._reject(f"type 0x{kind:02x}", connection.host)

    def _bridge(self, connection: Connection, frame: bytes) -> None:
        if self.on_bridge is None:
            self._reject("bridge", connection.host)
        else:
            self.on_bridge(frame, connection)

    def _greeted(self, connection: Connection, frame: bytes) -> None:
        hello = self.listener.greeting(connection, frame)
        if hello is None or hello.address is None or connection.closed:
            return
        self._unroute(connection)
        connection.address = self._reachable(hello.address, connection)
        self._routes[connection.address] = connection
        if len(self._ours) < self.registry.limit:
            self._ours[connection.address] = None

    def _reachable(self, address: Address, connection: Connection) -> Address:
        """A client that listens on every interface is found where its connection comes from."""
        return (connection.host, address[1]) if address[0] == ANY else address

    def _register(self, connection: Connection, frame: bytes) -> None:
        kind, tokens = frame[0], tokens_of(frame)
        addresses, fault = unpack_addresses(data_of(frame))
        role = SUB if kind & SUB else PUB
        if not fault:
            fault = _unfit(role, tokens, addresses)
        if fault:
            return self._reject(fault, connection.host)
        address = self._reachable(addresses[0], connection)  # of a list the first, as the reference
        if kind & REMOVE:
            self._tell(self.registry.remove(role, tokens, address))
            self.sharing.say(pack_shared(kind, tokens, [address], 0))
        else:
            self._add(connection, role, tokens, address)

    def _add(self, connection: Connection, role: Role, tokens: Tokens, address: Address) -> None:
        exact = not self._classic_prefixes and address not in self._ours
        # Ours repeat all they say; their publishers do too, and hear of all subscribers at once.
        again = role == PUB or not connection.greeted
        told, fault = self.registry.add(role, tokens, address, connection.host, exact, again)
        if fault:
            return self._reject(fault, connection.host)
        kind = SUBSCRIBE if role == SUB else PUBLISH
        self.sharing.say(pack_shared(kind, tokens, [address], self.sharing.lifetime_s))
        self._tell(told)

    def _shared(self, connection: Connection, frame: bytes) -> None:
        """What another broker was told. It goes no further: every broker knows every other."""
        kind, tokens = frame[0] & ~SHARED, tokens_of(frame)
        lifetime_s, addresses, fault = unpack_shared(data_of(frame))
        if not self._peers or not connection.greeted:
            return self._reject("not a peer broker", connection.host)
        if kind == DEAD or fault:
            return self._reported(connection, addresses, fault)
        role = SUB if kind & SUB else PUB
        fault = _unfit(role, tokens, addresses)
        for address in addresses if not fault else ():
            if kind & REMOVE:
                self._tell(self.registry.remove(role, tokens, address))
                continue
            until_s = self._loop.time() + lifetime_s
            told, refused = self.registry.share(role, tokens, address, connection.node, until_s)
            fault = fault or refused
            self._tell(told)
        if fault:
            self._reject(fault, connection.host)

    def _tell(self, told: Iterable[Tell]) -> None:
        for tell in told:
            kind = ADD if tell.change == "add" else FORGET
            for frame in address_frames(kind, tell.tokens, tell.subscribers):
                self._send(tell.publisher, frame)

    def _send(self, address: Address, frame: bytes) -> None:
        route = self._routes.get(address)
        if route is None or route.closed:
            self.outgoing.send(address, frame)
        else:
            route.send(frame)

    def _reported(self, connection: Connection, addresses: list[Address], fault: str) -> None:
        if fault or not addresses:
            return self._reject(fault or "no address", connection.host)
        for address in addresses:
            if self.registry.knows(address):
                self._probe(address)
            else:
                self._reject("report of a stranger", connection.host)

    def _probe(self, address: Address) -> None:
        """Believe nobody: look whether it takes a connection."""
        now_s = self._loop.time()
        if now_s - self._probed.get(address, -_PROBE_AGAIN_S) < _PROBE_AGAIN_S:
            return
        if len(self._probed) >= _PROBES:
            return self._reject("probes full")
        self._probed[address] = now_s
        self.probes += 1
        self.outgoing.forget(address)
        self.outgoing.send(address, self._question(address))

    def _question(self, address: Address) -> bytes:
        """A packet that does nothing. A reference client takes no connection without one, and none that it
        does not know: a publisher is told its subscribers again, a mere subscriber gets an empty message."""
        if address in self._ours:
            return pack_hello(self._hello(0))
        known = self.registry.of(address)
        published = next((tokens for role, tokens in known if role == PUB), None)
        if published is not None:
            return address_frames(ADD, published, self.registry.subscribers(published))[0]
        return pack(MESSAGE, next(tokens for _, tokens in known))

    def _failed(self, address: Address, reason: str) -> None:
        """It did not take a connection: dead. Its publishers, and the other brokers, hear of it."""
        self.outgoing.forget(address)
        self._probed.pop(address, None)
        self._ours.pop(address, None)
        if not self.registry.knows(address):
            return
        self.deaths += 1
        log.info("tmq broker: client %s:%d is gone: %s", *address, reason)
        if self.registry.is_own(address):
            self.sharing.say(pack_shared(DEAD, (), [address], 0))
        self._tell(self.registry.remove_address(address))

    def _unroute(self, connection: Connection) -> bool:
        """Forget where it listens; whether this was the connection to there."""
        address = connection.address
        if address is None or self._routes.get(address) is not connection:
            return False
        del self._routes[address]
        return True

    def _on_gone(self, connection: Connection) -> None:
        address = connection.address
        if self._unroute(connection) and address is not None and self._open and self.registry.knows(address):
            self._probe(address)

    def _all_own(self) -> list[bytes]:
        """Every registration that a client said here, as packets for another broker."""
        by_pattern: dict[tuple[Role, Tokens], list[Address]] = {}
        for role, tokens, address in self.registry.own():
            by_pattern.setdefault((role, tokens), []).append(address)
        return [
            frame
            for (role, tokens), addresses in by_pattern.items()
            for frame in pack_shared(
                SUBSCRIBE if role == SUB else PUBLISH, tokens, addresses, self.sharing.lifetime_s
            )
        ]

    def _tick(self) -> None:
        now_s = self._loop.time()
        before = len(self.registry)
        self._tell(self.registry.expire(now_s))
        self.expired += before - len(self.registry)
        self._probed = {a: at for a, at in self._probed.items() if now_s - at < _PROBE_AGAIN_S}
        self._ours = {a: None for a in self._ours if a in self._routes or self.registry.knows(a)}
        self.outgoing.tick(now_s)
        self.sharing.tick(now_s)
        self._timer = self._loop.call_later(self.options.heartbeat_s, self._tick)

    def ledger(self) -> Stats:
        """What was sent to clients, over their connections and over ours, added up now."""
        total = Stats()
        for stats in (self.stats, self.outgoing.stats):
            total.add(stats)
        return total

    def close(self) -> None:
        """Stop, and close all connections. Idempotent."""
        if not self._open:
            return
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        self.listener.close()
        self.outgoing.close()
        self.sharing.close()


def _unfit(role: Role, tokens: Tokens, addresses: Sequence[Address]) -> str:
    if role == PUB and not tokens:
        return "published the empty pattern"
    if not addresses:
        return "no address"
    return "port 0" if any(not port for _, port in addresses) else ""
