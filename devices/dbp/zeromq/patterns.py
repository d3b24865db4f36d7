"""Messaging patterns of ZeroMQ: to which peers a socket sends, and which messages of theirs it gets.

28/REQREP and 29/PUBSUB describe them; docs/wire/zmtp.md lists the differences.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.limits import Quota
from devices.dbp.zeromq import zmtp
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.zmtp import Frames


class Peer:
    """A connection whose handshake is complete. `name` is the peer's identity at a router."""

    __slots__ = ("connection", "name", "topics")

    def __init__(self, connection: Connection, name: bytes) -> None:
        self.connection, self.name = connection, name
        self.topics: tuple[bytes, ...] = ()

    def send(self, data: bytes) -> bool:
        """Send a packed message. Return False if it was dropped, which the connection has counted."""
        has_room = self.connection.has_room(len(data))
        return self.connection.send(data) and has_room


class Pattern(ABC):
    """The pattern of one socket, with its peers. `stats` is the ledger of sent messages."""

    kind: bytes

    def __init__(self, limits: Limits, stats: Stats) -> None:
        self.limits, self.stats = limits, stats
        self.peers: dict[Connection, Peer] = {}

    def enter(self, connection: Connection, identity: bytes) -> str:
        """Add a peer. Return "", or why it is refused."""
        self.peers[connection] = Peer(connection, identity)
        return ""

    def leave(self, connection: Connection) -> Iterator[Frames]:
        """Remove a peer, if the connection is one. Yield the messages that this causes for the socket."""
        self.peers.pop(connection, None)
        yield from ()

    def hear(self, connection: Connection, frames: Frames) -> tuple[Frames | None, str]:
        """Return the socket's message for a peer's message, or None, and why it is refused, or ""."""
        return frames, ""

    @abstractmethod
    def send(self, frames: Sequence[bytes]) -> bool:
        """Send to the peers of the message. Return False, and count it, if a peer does not get it."""

    def end(self) -> None:
        """Drop queued messages without a peer, and count them."""
        return

    def lose(self, reason: str) -> bool:
        """Count a message that is dropped for a reason. Return False."""
        self.stats.offered += 1
        self.stats.drop(reason)
        return False


class Router(Pattern):
    """A ROUTER: it names each peer by its chosen identity or by a number, and sends to a named peer."""

    kind = zmtp.ROUTER

    def __init__(self, limits: Limits, stats: Stats) -> None:
        super().__init__(limits, stats)
        self._by_name: dict[bytes, Peer] = {}
        self._numbers = count(1)

    def enter(self, connection: Connection, identity: bytes) -> str:
        # An identity that no peer may choose.
        name = identity or b"\0" + next(self._numbers).to_bytes(8, "big")
        if name in self._by_name:
            return "identity taken"
        super().enter(connection, name)
        self._by_name[name] = self.peers[connection]
        return ""

    def leave(self, connection: Connection) -> Iterator[Frames]:
        peer = self.peers.get(connection)
        if peer is not None:
            del self._by_name[peer.name]
        return super().leave(connection)

    def hear(self, connection: Connection, frames: Frames) -> tuple[Frames | None, str]:
        return [self.peers[connection].name, *frames], ""

    def send(self, frames: Sequence[bytes]) -> bool:
        peer = self._by_name.get(frames[0])
        return peer.send(zmtp.pack(frames[1:])) if peer else self.lose("peer gone")


class Dealer(Pattern):
    """A DEALER: it sends to its peers in turn. Messages wait while there is no peer."""

    kind = zmtp.DEALER

    def __init__(self, limits: Limits, stats: Stats) -> None:
        super().__init__(limits, stats)
        self._waiting: list[Frames] = []
        self._waiting_bytes = 0

    def enter(self, connection: Connection, identity: bytes) -> str:
        super().enter(connection, identity)
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for frames in waiting:
            self.send(frames)
        return ""

    def send(self, frames: Sequence[bytes]) -> bool:
        if not self.peers:
            return self._wait(list(frames))
        connection = next(iter(self.peers))
        peer = self.peers.pop(connection)
        self.peers[connection] = peer  # move it to the end
        return peer.send(zmtp.pack(frames))

    def _wait(self, frames: Frames) -> bool:
        size = sum(map(len, frames)) + 9 * len(frames)
        if self._waiting_bytes + size > self.limits.queue_bytes:
            return self.lose("queue full")
        self._waiting.append(frames)
        self._waiting_bytes += size
        return True

    def end(self) -> None:
        for _ in self._waiting:
            self.lose("closed")
        self._waiting, self._waiting_bytes = [], 0


class Publisher(Pattern):
    """A PUB: it sends a message to the peers that subscribe to a topic with which the message begins."""

    kind = zmtp.PUB

    def __init__(self, limits: Limits, stats: Stats) -> None:
        super().__init__(limits, stats)
        self._topics = Counter[bytes]()
        whole = limits.topic_bytes
        self._quota = Quota[Connection](
            1 << 62, limits.topics, 1 << 62, whole, "topics", "peer", max(1, whole // 2)
        )

    def leave(self, connection: Connection) -> Iterator[Frames]:
        peer = self.peers.get(connection)
        for topic in peer.topics if peer else ():
            if self._take_back(connection, topic):
                yield [b"\0" + topic]
        yield from super().leave(connection)

    def hear(self, connection: Connection, frames: Frames) -> tuple[Frames | None, str]:
        sign, topic = frames[0][:1], frames[0][1:]
        if sign == b"\1":
            return self._subscribe(self.peers[connection], topic)
        if sign == b"\0":
            return self._unsubscribe(self.peers[connection], topic)
        return None, "no subscription"

    def _subscribe(self, peer: Peer, topic: bytes) -> tuple[Frames | None, str]:
        refused = self._quota.take(peer.connection, peer.connection.host, len(topic) + 100)
        if refused:
            return None, refused
        peer.topics += (topic,)
        self._topics[topic] += 1
        return ([b"\1" + topic] if self._topics[topic] == 1 else None), ""

    def _unsubscribe(self, peer: Peer, topic: bytes) -> tuple[Frames | None, str]:
        if topic not in peer.topics:
            return None, "no subscription"
        at = peer.topics.index(topic)
        peer.topics = peer.topics[:at] + peer.topics[at + 1 :]
        return ([b"\0" + topic] if self._take_back(peer.connection, topic) else None), ""

    def _take_back(self, connection: Connection, topic: bytes) -> bool:
        """Remove one subscription of a peer. Return whether the topic now has no subscriber."""
        self._quota.give_back(connection, connection.host, len(topic) + 100)
        self._topics[topic] -= 1
        if self._topics[topic]:
            return False
        del self._topics[topic]
        return True

    def send(self, frames: Sequence[bytes]) -> bool:
        data, first, done = zmtp.pack(frames), frames[0], True
        for peer in list(self.peers.values()):
            if first.startswith(peer.topics):
                done = peer.send(data) and done
        return done


class ExtendedPublisher(Publisher):
    """An XPUB: its owner gets each topic with its first subscriber (after a 1) or without any (after a 0)."""

    kind = zmtp.XPUB


class Subscriber(Pattern):
    """A SUB: it tells each peer the topics to which it subscribes."""

    kind = zmtp.SUB

    def __init__(self, limits: Limits, stats: Stats) -> None:
        super().__init__(limits, stats)
        self._topics: list[bytes] = []

    def enter(self, connection: Connection, identity: bytes) -> str:
        super().enter(connection, identity)
        for topic in self._topics:
            connection.say(zmtp.pack([b"\1" + topic]))
        return ""

    def want(self, topic: bytes, wanted: bool) -> None:
        """Subscribe to messages that begin with `topic`, or end one subscription. There can be several."""
        if wanted:
            self._topics.append(topic)
        elif topic in self._topics:
            self._topics.remove(topic)
        else:
            return
        for connection in self.peers:
            connection.say(zmtp.pack([(b"\1" if wanted else b"\0") + topic]))

    def send(self, frames: Sequence[bytes]) -> bool:
        raise TypeError("a SUB sends nothing")


PATTERNS: dict[str, type[Pattern]] = {
    "router": Router,
    "dealer": Dealer,
    "pub": Publisher,
    "xpub": ExtendedPublisher,
    "sub": Subscriber,
}
