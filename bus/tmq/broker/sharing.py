"""The sharing of registrations with other brokers: each change at once, all again before it expires."""

import logging
import random
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from dataclasses import replace

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.turns import Job
from bus.tmq.address import may_name
from bus.tmq.broker.common import Common
from bus.tmq.broker.registry import Role
from bus.tmq.peer import Peer, PeerOwner, PeerSetup
from bus.tmq.wire import (
    PUBLISH,
    SUBSCRIBE,
    Address,
    Hello,
    Tokens,
    address_frames,
    pack_hello,
    pack_shared,
)
from bus.wire.frame import SUB

_QUEUE_BYTES = 64 << 20  # every registration that fits into a broker
log = logging.getLogger("buscoupler.tmq")


class Sharing(PeerOwner):
    """The connections to the peer brokers; sends all our registrations there, then every change.

    What a peer sends comes in at our listener, on the connection that it made. A peer that turns out to be
    this broker is dropped from the list, so that one list serves all brokers. `stats` is the ledger.
    `on_known()` is called when one has answered.
    """

    def __init__(self, common: Common, peers: Sequence[Address], on_known: Callable[[], object]) -> None:
        self._is_open = False
        self.stats = Stats()
        options = common.options
        self._options = replace(options, queue_bytes=max(options.queue_bytes, _QUEUE_BYTES))
        self._addresses = list(dict.fromkeys(peers))
        self._hello, self._registry, self._on_frames = common.hello, common.registry, common.on_frames
        self._turns, self._on_known = common.turns, on_known
        self.lifetime_s = max(1, round(3 * options.share_s))
        self._called_s = -options.retry_min_s
        self._peers: list[Peer] = []
        self._nodes: dict[Peer, int] = {}
        self._hosts: dict[Peer, str] = {}
        self.up: dict[Peer, float] = {}  # those that are connected, and when to send all again

    def open(self, loop: AbstractEventLoop) -> None:
        """Use this loop from now on; the first `tick` dials the peers."""
        self._loop, self._is_open = loop, True
        self._peers = [self._peer(address) for address in self._addresses]

    @property
    def expected(self) -> bool:
        """Whether there are to be peers."""
        return bool(self._addresses)

    @property
    def nodes(self) -> set[int]:
        """The numbers of the peers that have answered, also of peers that are silent by now."""
        return set(self._nodes.values())

    def is_peer(self, connection: Connection, node: int, from_anywhere: bool) -> bool:
        """Return whether a connection is that of a peer: it has the number with which this peer answers, and
        comes from the host where it does (see `may_name`), unless it may come `from_anywhere`."""
        hosts = [self._hosts[peer] for peer, known in self._nodes.items() if known == node]
        return bool(hosts) and (from_anywhere or any(may_name(connection.host, host) for host in hosts))

    def revise(self, heartbeat_s: float) -> None:
        """Greet at another interval, in seconds."""
        self._options = replace(self._options, heartbeat_s=heartbeat_s)
        for peer in tuple(self._peers):
            peer.revise(heartbeat_s)

    def take_peers(self, peers: Sequence[Address]) -> None:
        """Change to other peers; peers that stay keep their connections. What was this broker before, and is
        no peer, is dialled again: it may be another one by now."""
        self._addresses = list(dict.fromkeys(peers))
        if not self._is_open:
            return
        for peer in [peer for peer in self._peers if peer.address not in peers]:
            self._peers.remove(peer)
            self.up.pop(peer, None)
            self._nodes.pop(peer, None)
            self._hosts.pop(peer, None)
            peer.close()
        known = {peer.address for peer in self._peers}
        self._peers += [self._peer(address) for address in self._addresses if address not in known]

    def _peer(self, address: Address) -> Peer:
        setup = PeerSetup(self._loop, self._options, self._hello, self.stats, self, self._on_frames)
        return Peer(address, setup)

    def register(self, role: Role, tokens: Tokens, address: Address) -> None:
        """Tell the peers of a registration that a client made here."""
        self._say(self._registration(role, tokens, [address]))

    def withdraw(self, kind: int, tokens: Tokens, address: Address) -> None:
        """Tell the peers of an address that is taken back (`UNSUBSCRIBE`, `UNPUBLISH`) or `DEAD`."""
        self._say(pack_shared(kind, tokens, [address], 0))

    def _registration(self, role: Role, tokens: Tokens, addresses: list[Address]) -> list[bytes]:
        return pack_shared(SUBSCRIBE if role == SUB else PUBLISH, tokens, addresses, self.lifetime_s)

    def _say(self, frames: list[bytes]) -> None:
        """Tell all peers that are connected; the others are told everything when they connect."""
        for peer in tuple(self.up):
            peer.send(*frames)

    def peer_hello(self, peer: Peer, hello: Hello) -> None:
        if hello.node == self._hello(0).node:
            self._peers.remove(peer)
            self.up.pop(peer, None)
            peer.close()
        elif peer not in self.up:
            log.info("peer broker %s: up", peer.name)
            self._hosts[peer] = "" if peer.connection is None else peer.connection.far_host
            self._give_back(peer, hello.node)
            self._on_known()
            self._say_all(peer)

    def _give_back(self, peer: Peer, node: int) -> None:
        """Register at a broker that has started again the clients that it had: those of 2015 do not."""
        before = self._nodes.get(peer, node)
        self._nodes[peer] = node
        if before != node:
            self._turns.put(peer, "", self._giving_back(peer, before))

    def _giving_back(self, peer: Peer, before: int) -> Job:
        for key in self._registry.said_by(before):
            if key is not None:
                role, tokens, address = key
                peer.send(*address_frames(SUBSCRIBE if role == SUB else PUBLISH, tokens, [address]))
            yield 1

    def _say_all(self, peer: Peer) -> None:
        self.up[peer] = self._loop.time() + self._options.share_s * random.uniform(0.8, 1.0)
        self._turns.put(peer, "", self._saying_all(peer))

    def _saying_all(self, peer: Peer) -> Job:
        for role, tokens, addresses in self._registry.own_by_pattern():
            if addresses and peer in self.up:
                peer.send(*self._registration(role, tokens, addresses))
            yield 1 + len(addresses) // 16

    def peer_lost(self, peer: Peer) -> None:
        log.warning("peer broker %s: connection lost", peer.name)
        self.up.pop(peer, None)

    def tick(self, now_s: float) -> None:
        """Dial the missing peers; send all registrations again when it is time. Call it once a heartbeat."""
        for peer in tuple(self._peers):
            peer.tick(now_s)
            if peer not in self.up:
                self._dial(peer)
            elif now_s >= self.up[peer]:
                self._say_all(peer)

    def called(self) -> None:
        """Dial the missing peers at once, without pauses, because a broker came: one of them may be back."""
        now_s = self._loop.time()
        soon = now_s - self._called_s < self._options.retry_min_s  # anybody can call: then with the next tick
        for peer in [peer for peer in self._peers if peer not in self.up]:
            peer.retry_now()
            if not soon:
                self._dial(peer)
                self._called_s = now_s

    def _dial(self, peer: Peer) -> None:
        if not peer.busy:
            peer.forget()
            peer.send(pack_hello(self._hello(0)))

    def close(self) -> None:
        """Disconnect from all peers. Idempotent."""
        self._is_open = False
        for peer in self._peers:
            peer.close()
        self.up.clear()
