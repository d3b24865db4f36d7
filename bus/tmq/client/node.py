"""The client on one event loop, below the classic and the modern face."""

import logging
import random
import socket
from asyncio import AbstractEventLoop, Future, TimerHandle, sleep, wait
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

import bus.tmq.wire as wire
from bus.errors import TokenError
from bus.ledger import Stats
from bus.machine.addresses import host_towards
from bus.serving.connection import Connection
from bus.serving.rejections import Rejections
from bus.tmq.client.callers import Callers
from bus.tmq.client.inbox import Inbox, Inboxes
from bus.tmq.client.uplink import Uplink, finish
from bus.tmq.greeter import Greeter
from bus.tmq.options import Options
from bus.tmq.peer import Peer, PeerOwner, PeerSetup
from bus.tmq.wire import Address, Hello, Tokens
from bus.transports.binding import Binding
from bus.urls import are_loopback
from bus.wire.frame import BRIDGE, SUB

log = logging.getLogger("buscoupler.tmq")

_SUBSCRIBERS = 16384  # addresses that brokers may make us send to
_HEARSAY = 16  # of those, named by others than the broker in use: anybody can connect here
_OWN = 64  # addresses that are remembered as ours
_LOOK_S = 0.005  # between two looks at what is on the way: the kernel tells nobody
ANY = "0.0.0.0"
LOOPBACK = "127.0.0.1"


class NodeUser(Protocol):
    """The user of a client node: takes messages as they come in, and queues those that go out itself."""

    @property
    def heard(self) -> Stats:
        """The counts of what comes in: `received` in messages, and `rejected`."""

    def take(self, messages: list[bytes]) -> None:
        """Handle the messages of one read, as frames of type SUB. Do not keep the list."""

    def overhear(self, patterns: list[bytes]) -> None:
        """Learn the patterns, as bytes, of messages that a mate has published.

        `take` gets these messages too.
        """

    def peer_changed(self, peer: Peer) -> None:
        """Note that a subscriber takes more, cannot be reached, or has gone (its state is then `closed`)."""


class ClientNode(PeerOwner):
    """A TMQ client: listens at `listen`, registers with a broker, sends to subscribers directly.

    The broker is the first of `brokers` that answers. Not thread-safe: all happens on the loop it was opened
    on. `stats` is the ledger of what it sends, a copy for each subscriber; its `rejected` counts bad input by
    reason, `received` the messages that came in. These go into the inboxes of the subscriptions. A `user`, if
    there is one, gets them instead, and paces what goes out: such a client is never a subscriber of what it
    publishes itself. `number` is that in its greeting, random if it is 0; clients whose numbers differ in the
    last 8 bits only are mates.
    """

    def __init__(
        self,
        listen: Address,
        brokers: Sequence[Address],
        options: Options,
        on_bridge: Callable[[bytes, Connection], object] | None = None,
        user: NodeUser | None = None,
        number: int = 0,
    ) -> None:
        self._callers = Callers(self._is_mate, (lambda _: None) if user is None else user.overhear)
        self.renumber(number)
        self.stats = Stats()
        self._heard = self.stats if user is None else user.heard
        self.subscriptions: dict[Tokens, None] = {}
        self.published: dict[Tokens, dict[Address, Peer]] = {}
        self.peers: dict[Address, Peer] = {}
        self._hearsay = set[Address]()
        self._options, self._on_bridge = options, on_bridge
        self._reject = Rejections("tmq client", self._heard.rejected, log)
        self._refusals = Rejections("tmq client", self._heard.rejected, log, verb="refused by")
        self._inboxes = Inboxes()
        self._timer: TimerHandle | None = None
        self._user = user
        self._own: dict[Address, None] = {}
        self._flushing: list[Future[None]] = []
        self.address = listen
        self._greeter = Greeter(
            options, self._hello, self.on_frames, self._callers.closed, self._reject, self._heard
        )
        self._listener = self._greeter.listener
        self.uplink = Uplink(brokers, options, self._hello_to, self._registrations, self.on_frames)

    @property
    def accepted(self) -> int:
        """The number of connections that were made to us."""
        return self._listener.accepted

    def open(self, loop: AbstractEventLoop, wait: bool = False) -> None:
        """Listen, and begin to reach a broker. Raises `LinkError` where it cannot listen.

        `wait`: if the address is not there yet, go on trying. No broker is told of us before.
        """
        self._loop = loop
        self._setup = PeerSetup(
            loop, self._options, self._hello, self.stats, self, self.on_frames, patient=True
        )
        host, port = self.address
        if host == ANY and are_loopback(broker for broker, _ in self.uplink.brokers):
            host = LOOPBACK  # which is what they tell publishers
        if wait:
            self._listener.await_address(loop, (host, port), self._listens, family=socket.AF_INET)
        else:
            self._listens(self._listener.open(loop, (host, port)))
        self._tick()

    def _listens(self, address: Address) -> None:
        self.address = address
        self.uplink.open(self._loop)
        if self._timer is not None:  # later than `open`: by now there is something to say
            self.uplink.say([])

    @property
    def waiting(self) -> Binding[Address] | None:
        """The address at which this client waits to listen; None once it is there."""
        return next((one for one in self._listener.bindings.values() if one.state != "up"), None)

    def address_for(self, broker: Address) -> Address:
        """Return the address at which a broker can reach us."""
        host, port = self.address
        if host == ANY:
            connection = self.uplink.connection if broker == self.uplink.towards else None
            host = (connection.own_host if connection else host_towards(broker[0])) or host
        made = host, port
        self._mark_own(made)
        return made

    def _mark_own(self, address: Address) -> None:
        """Remember that an address is ours, so that nothing is sent there."""
        if address not in self._own and self._user is not None:
            if len(self._own) >= _OWN:
                del self._own[next(iter(self._own))]
            self._own[address] = None

    def _hello(self, flags: int = 0, address: Address | None = None) -> Hello:
        return Hello(self.node, self._options.silence_ms, flags, address)

    def renumber(self, number: int) -> None:
        """Greet with another number from now on, a random one if it is 0."""
        self.node = number or random.getrandbits(32)
        self._callers.judge()

    def _hello_to(self, broker: Address, flags: int) -> Hello:
        return self._hello(flags, self.address_for(broker))

    def _registrations(
        self, broker: Address, publish: int = wire.PUBLISH, subscribe: int = wire.SUBSCRIBE
    ) -> list[bytes]:
        own = [self.address_for(broker)]
        said = [(publish, tokens) for tokens in self.published]
        said += [(subscribe, tokens) for tokens in self.subscriptions]
        return [frame for type, tokens in said for frame in wire.address_frames(type, tokens, own)]

    def subscribe(self, tokens: Tokens, inbox: Inbox | None = None) -> None:
        """Receive messages whose pattern starts with `tokens` from now on, into `inbox` if there is one."""
        self.subscriptions[tokens] = None
        if inbox is not None:
            self._inboxes.add(tokens, inbox)
        self._register(wire.SUBSCRIBE, tokens)

    def unsubscribe(self, tokens: Tokens) -> None:
        """Take a subscription back. No error if there is none."""
        if tokens in self.subscriptions:
            del self.subscriptions[tokens]
            self._inboxes.remove(tokens)
            self._register(wire.UNSUBSCRIBE, tokens)

    def publish(self, tokens: Tokens) -> None:
        """Declare a pattern; the broker then names its subscribers.

        Raises `TokenError` for the empty pattern.
        """
        if not tokens:
            raise TokenError("the empty pattern cannot be published: it would reach nobody in particular")
        self.published.setdefault(tokens, {})
        self._register(wire.PUBLISH, tokens)

    def unpublish(self, tokens: Tokens) -> None:
        """Take a declaration back. No error if there is none."""
        if self.published.pop(tokens, None) is not None:
            self._drop_unused()
            self._register(wire.UNPUBLISH, tokens)

    def _register(self, type: int, tokens: Tokens) -> None:
        towards = self.uplink.towards  # without one, all that is registered is said when there is
        own = [self.address_for(towards)] if towards else []
        self.uplink.say(wire.address_frames(type, tokens, own) if own else [])

    def settled(self) -> "Future[None]":
        """Return a future, done when a broker has handled all so far and answered; see `Uplink.settled`."""
        return self.uplink.settled()

    def send(self, tokens: Tokens, frames: Sequence[bytes]) -> None:
        """Send packets of one published pattern to each of its subscribers."""
        peers = self.published.get(tokens)
        if not peers:
            self.stats.offered += len(frames)
            return self.stats.drop("no subscriber", len(frames))
        for peer in peers.values():
            peer.send(*frames)

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        """Handle what came in on any connection: messages in their order, the rest by type."""
        messages = [frame for frame in frames if frame[0] == SUB]
        if len(messages) < len(frames):
            for frame in frames:
                if frame[0] != SUB:
                    self._control(connection, frame)
        if messages:
            self._heard.received += len(messages)
            if self._user is not None:
                news = not connection.greeted or connection in self._callers.mates
                if news and connection in self._listener.connections:
                    self._callers.said(connection, messages)
                self._user.take(messages)
            elif strays := self._inboxes.put(messages):
                self._reject("not subscribed", connection.host, strays)

    def _control(self, connection: Connection, frame: bytes) -> None:
        kind = frame[0]
        if kind & wire.HELLO_MASK == wire.HELLO:
            self._greeted(connection, self._greeter.greeted(connection, frame))
        elif kind & BRIDGE and self._on_bridge is not None:
            self._on_bridge(frame, connection)
        elif kind in (wire.ADD, wire.FORGET):
            self._subscribers(connection, frame)
        elif kind == wire.REFUSED:
            self._refused(connection, wire.unpack_refusal(frame))
        else:
            self._reject(f"type 0x{kind:02x}", connection.host)

    def _refused(self, connection: Connection, refusal: wire.Refusal) -> None:
        """Note that a broker refuses a registration, or this client."""
        if not self.uplink.refused(connection, refusal):
            return self._reject("refusal of no broker", connection.host)
        if not refusal.kind:  # the uplink logs it
            return self._heard.reject("client refused")
        known = chain(self.published, self.subscriptions)
        what = next((repr(one) for one in known if one == refusal.tokens), "a registration")
        return self._refusals("registration refused", connection.name, detail=f"{what}: {refusal.why}")

    def refusal(self, kind: int, tokens: Tokens) -> str:
        """Return why the broker in use has refused a registration of a type, "" if it has not."""
        return self.uplink.refusals.get((kind, tokens), "")

    def refusal_of(self, tokens: Tokens) -> str:
        """Return why no broker registers a pattern: it is refused, or this client is; "" if none of that."""
        refused = (self.refusal(kind, tokens) for kind in (wire.SUBSCRIBE, wire.PUBLISH))
        return next(filter(None, refused), "" if self.uplink.up else self.uplink.fault)

    def _greeted(self, connection: Connection, hello: Hello | None) -> None:
        if hello is not None and self._user is not None:
            self._callers.greeted(connection, hello.node)

    def _subscribers(self, connection: Connection, frame: bytes) -> None:
        tokens = wire.tokens_of(frame)
        addresses, fault = wire.unpack_addresses(wire.data_of(frame))
        peers = self.published.get(tokens)
        if fault or peers is None:
            return self._reject(fault or "not published", connection.host)
        known = self.uplink.is_broker(connection)
        may_take_back = known or self.uplink.is_at_broker(connection)
        for address in addresses:
            if address in self._own:
                continue
            if frame[0] == wire.FORGET and (may_take_back or address in self._hearsay):
                peers.pop(address, None)
            elif frame[0] == wire.FORGET:
                self._reject("subscribers of a stranger", connection.host)
            elif (peer := self._peer(address, known)) is not None:
                peers[address] = peer
            elif known or len(self._hearsay) < _HEARSAY:
                self._reject("subscribers full", connection.host)
            else:
                self._reject("subscribers of a stranger", connection.host)
        if frame[0] == wire.FORGET:
            self._drop_unused()

    def _peer(self, address: Address, known: bool) -> Peer | None:
        """Return the peer at an address; None without room. `known`: our broker names it."""
        peer = self.peers.get(address)
        self._hearsay.intersection_update(self.peers)
        if known:
            self._hearsay.discard(address)
        room = len(self.peers) < _SUBSCRIBERS and (known or len(self._hearsay) < _HEARSAY)
        if peer is None and room and address[1] > 0:
            peer = Peer(address, self._setup)
            self.peers[address] = peer
            self._hearsay |= set() if known else {address}
        elif peer is not None:
            peer.retry_now()
        return peer

    def _drop_unused(self) -> None:
        used = {address for peers in self.published.values() for address in peers}
        for address in [address for address in self.peers if address not in used]:
            peer = self.peers.pop(address)
            peer.close()
            self.peer_done(peer)

    def is_mate(self, peer: Peer) -> bool:
        """Return whether a subscriber has greeted as a mate of this client."""
        return self._is_mate(peer.node)

    def _is_mate(self, number: int) -> bool:
        return number != self.node and number >> 8 == self.node >> 8

    def peer_done(self, peer: Peer) -> None:
        if self._user is not None:
            self._user.peer_changed(peer)
        if self._flushing and not self._owes:
            finish(self._flushing)

    @property
    def _owes(self) -> bool:
        """Whether something waits for a subscriber."""
        return any(peer.busy or peer.queued_bytes for peer in self.peers.values())

    async def flushed(self, limit_s: float) -> None:
        """Wait until all that was sent is at the subscribers' machines, for `limit_s` at most."""
        end_s = self._loop.time() + limit_s
        if self._owes:
            self._flushing.append(self._loop.create_future())
            await wait(self._flushing[-1:], timeout=limit_s)
        while self._loop.time() < end_s and any(peer.on_the_way_bytes for peer in self.peers.values()):
            await sleep(_LOOK_S)

    def peer_failed(self, peer: Peer, reason: str) -> None:
        """Report an unreachable subscriber to the broker, which checks for itself and tells everybody."""
        self._reject(f"subscriber gone: {reason}", peer.name)
        self.uplink.say(wire.address_frames(wire.DEAD, (), [peer.address]))

    def peer_hello(self, peer: Peer, hello: Hello) -> None:
        """Learn by which other addresses we are known, and send nothing there."""
        if hello.node == self.node and self._user is not None:
            self._mark_own(peer.address)
            for peers in self.published.values():
                peers.pop(peer.address, None)
            self._drop_unused()

    def _tick(self) -> None:
        now_s = self._loop.time()
        for peer in list(self.peers.values()):
            peer.tick(now_s)
        self.uplink.tick(now_s)
        self._timer = self._loop.call_later(self._options.heartbeat_s, self._tick)

    def close(self) -> None:
        """Take the registrations back, if the broker can be told at once, and disconnect. Idempotent."""
        connection = self.uplink.connection
        if connection is not None:
            broker = self.uplink.broker or self.address
            connection.say(b"".join(self._registrations(broker, wire.UNPUBLISH, wire.UNSUBSCRIBE)))
        if self._timer is not None:
            self._timer.cancel()
        self.uplink.close()
        for peer in self.peers.values():
            peer.close()
        self._listener.close()
