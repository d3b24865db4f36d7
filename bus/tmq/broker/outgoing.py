"""The sending of packets to many addresses, with a bounded number of connections at a time."""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from bus.tmq.broker.common import Common
from bus.tmq.peer import Peer, PeerOwner, PeerSetup
from bus.tmq.wire import Address, Hello

_WAITING = 65536
_AT_ONCE = 64  # handed to peers in one turn of the event loop
_IDLE_S = 10.0


class Reports(NamedTuple):
    """The reports about addresses that packets go to.

    `reached(address)`: a client has taken all its packets. `failed(address, reason)`: it takes no connection.
    `greeted(address, number)`: a program of ours is there. `lost(address)`: its connection is gone.
    """

    reached: Callable[[Address], None]
    failed: Callable[[Address, str], None]
    greeted: Callable[[Address, int], None]
    lost: Callable[[Address], None]


class Outgoing(PeerOwner):
    """The packets for listeners of clients, at most 65,536, which wait for a free connection."""

    def __init__(self, common: Common, reports: Reports) -> None:
        self._common, self._reports, self._stats = common, reports, common.stats
        self._options = common.options
        self._peers: dict[Address, Peer] = {}
        self._used_s: dict[Address, float] = {}
        self._waiting: deque[tuple[Address, bytes]] = deque()
        self._starting = False

    def open(self, loop: AbstractEventLoop) -> None:
        """Use this loop from now on."""
        self._loop = loop
        shared = self._common
        self._setup = PeerSetup(
            loop, self._options, shared.hello, shared.stats, self, shared.on_frames, patient=True
        )

    def revise(self, heartbeat_s: float) -> None:
        """Greet at another interval, in seconds."""
        self._options = replace(self._options, heartbeat_s=heartbeat_s)
        self._setup = self._setup._replace(options=self._options)
        for peer in list(self._peers.values()):
            peer.revise(heartbeat_s)

    def send(self, address: Address, frame: bytes) -> None:
        """Queue a packet for an address. Never waits, never raises."""
        self._stats.offered += 1
        if len(self._waiting) >= _WAITING:
            return self._stats.drop("queue full")
        self._waiting.append((address, frame))
        self._stats.queued += 1
        self._stats.queued_bytes += len(frame)
        self._start_soon()

    def _start_soon(self) -> None:
        if not self._starting:
            self._starting = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._starting = False
        for _ in range(min(len(self._waiting), _AT_ONCE)):
            peer = self._peer(self._waiting[0][0])
            if peer is None:
                return  # until one is done
            _, frame = self._waiting.popleft()
            self._stats.queued -= 1
            self._stats.queued_bytes -= len(frame)
            self._stats.offered -= 1  # the peer offers it again
            peer.retry_now()
            peer.send(frame)
        if self._waiting:
            self._start_soon()

    def _peer(self, address: Address) -> Peer | None:
        peer = self._peers.get(address)
        if peer is None and (len(self._peers) < self._options.dials or self._forget_idle(0.0)):
            peer = self._peers[address] = Peer(address, self._setup)
        if peer is not None:
            self._used_s[address] = self._loop.time()
        return peer

    def _forget_idle(self, idle_s: float) -> bool:
        before_s = self._loop.time() - idle_s
        idle = [
            address
            for address, peer in self._peers.items()
            if not peer.busy and not peer.queued_bytes and self._used_s[address] <= before_s
        ]
        for address in idle:
            self.forget(address)
        return bool(idle)

    @property
    def doubted(self) -> int:
        """The number of addresses that did not answer once, and are to be tried again."""
        return sum(peer.state == "doubted" for peer in self._peers.values())

    def probe(self, address: Address, frame: bytes) -> None:
        """Send a packet on a new connection, unless the address is just being tried."""
        peer = self._peers.get(address)
        if peer is None or peer.state not in ("connecting", "doubted"):
            self.forget(address)
            self.send(address, frame)

    def forget(self, address: Address) -> None:
        """Disconnect from an address; drop what is queued for it."""
        peer = self._peers.pop(address, None)
        if peer is not None:
            del self._used_s[address]
            peer.close()

    def peer_done(self, peer: Peer) -> None:
        if peer.state in ("idle", "streaming"):  # not after a failure
            self._reports.reached(peer.address)
        if self._waiting:
            self._start_soon()

    def peer_failed(self, peer: Peer, reason: str) -> None:
        self._reports.failed(peer.address, reason)

    def peer_hello(self, peer: Peer, hello: Hello) -> None:
        self._reports.greeted(peer.address, hello.node)

    def peer_lost(self, peer: Peer) -> None:
        self._reports.lost(peer.address)

    def tick(self, now_s: float) -> None:
        """Forget idle peers, keep the others alive. Call it once a heartbeat."""
        self._forget_idle(_IDLE_S)
        for peer in list(self._peers.values()):
            peer.tick(now_s)
        self._start_soon()

    def close(self) -> None:
        """Disconnect from all clients; waiting packets become counted drops. Idempotent."""
        for address in list(self._peers):
            self.forget(address)
        self._stats.drop("closed", len(self._waiting))
        self._stats.queued -= len(self._waiting)
        self._stats.queued_bytes -= sum(len(frame) for _, frame in self._waiting)
        self._waiting.clear()
