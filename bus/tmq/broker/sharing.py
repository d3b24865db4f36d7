"""Brokers tell each other what their own clients said: once, and again in time, for it is forgotten else."""

import logging
import random
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from dataclasses import replace

from bus.hub import Stats
from bus.tmq.connection import Connection
from bus.tmq.options import Options
from bus.tmq.peer import Peer, PeerOwner
from bus.tmq.wire import Address, Hello, pack_hello

_QUEUE_BYTES = 64 << 20  # every registration that fits into a broker
log = logging.getLogger("buscoupler.tmq")


class Sharing(PeerOwner):
    """Keeps a connection to each peer broker and says there all that is ours, then every change.

    What a peer says comes in at our listener, on the connection that it made. A peer that turns out to be
    ourselves is dropped from the list, so that one list serves all brokers. `stats` is the ledger.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        peers: Sequence[Address],
        options: Options,
        node: int,
        all_own: Callable[[], list[bytes]],
        on_frames: Callable[[Connection, list[bytes]], None],
    ) -> None:
        self.stats = Stats()
        self.lifetime_s = max(1, round(3 * options.share_s))
        options = replace(options, queue_bytes=max(options.queue_bytes, _QUEUE_BYTES))
        self._loop, self._options, self._node = loop, options, node
        self._all_own, self._hand_on = all_own, on_frames
        self._peers = [
            Peer(loop, a, options, lambda flags: Hello(node, options.silence_ms, flags), self.stats, self)
            for a in peers
        ]
        self._up: dict[Peer, float] = {}  # and when to say it all again
        self._greeting = pack_hello(Hello(node, options.silence_ms))

    @property
    def up(self) -> int:
        """How many peer brokers are connected."""
        return len(self._up)

    def say(self, frames: list[bytes]) -> None:
        """A change, to all that are connected; the others hear it all when they are."""
        for peer in tuple(self._up):
            for frame in frames:
                peer.send(frame)

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        self._hand_on(connection, frames)

    def peer_hello(self, peer: Peer, hello: Hello) -> None:
        if hello.node == self._node:
            self._peers.remove(peer)
            self._up.pop(peer, None)
            peer.close()
        elif peer not in self._up:
            log.info("peer broker %s: up", peer.name)
            self._say_all(peer)

    def _say_all(self, peer: Peer) -> None:
        self._up[peer] = self._loop.time() + self._options.share_s * random.uniform(0.8, 1.0)
        for frame in self._all_own():
            peer.send(frame)

    def peer_lost(self, peer: Peer) -> None:
        log.warning("peer broker %s: connection lost", peer.name)
        self._up.pop(peer, None)

    def tick(self, now_s: float) -> None:
        """Once a heartbeat: dial who is missing, say it all again in time."""
        for peer in tuple(self._peers):
            peer.tick(now_s)
            if peer not in self._up:
                if not peer.busy:
                    peer.each = False
                    peer.send(self._greeting)
            elif now_s >= self._up[peer]:
                self._say_all(peer)

    def close(self) -> None:
        """Idempotent."""
        for peer in self._peers:
            peer.close()
        self._up.clear()
