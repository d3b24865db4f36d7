"""The pipe of a side on the TMQ network: from messages of the bridge to those of its subscribers, and back.

Frames of type 01 in the bridge are messages (type 02) on the network.
"""

from asyncio import AbstractEventLoop, Future, TimerHandle
from collections import defaultdict
from collections.abc import Callable, Sequence

from bridges.media.tmq.declared import Declarations, Declared, Holding
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.tmq.client import Node
from bus.tmq.peer import Peer
from bus.tmq.wire import MESSAGE
from bus.wire.batch import LENGTH, Batch, payloads
from bus.wire.frame import FRAME_BYTES_MAX, FRAME_BYTES_MIN, PUB, is_frame

HOLD_S = 3.0  # a message waits for its pattern to be declared
_HEADS = tuple(LENGTH.pack(size) + bytes((PUB,)) for size in range(FRAME_BYTES_MAX + 1))
_MESSAGE = bytes((MESSAGE,))
Outgoing = defaultdict[Peer, list[bytes]]


def entering(messages: Sequence[bytes]) -> Batch:
    """Return messages of the network as a batch of frames for the bridge."""
    parts: list[bytes] = []
    for message in messages:
        parts += _HEADS[len(message)], message[1:]
    return Batch(b"".join(parts), len(messages))


class TmqPipe(Pipe):
    """All subscribers and publishers of the network, as one peer of the hub. `on_close` is called once.

    A message is sent when it has been handed to the queue of each of its subscribers; what happens to these
    copies is in the ledger of `node`.
    """

    def __init__(
        self,
        name: str,
        hub: Hub,
        loop: AbstractEventLoop,
        node: Node,
        patterns: int,
        queue_bytes: int,
        on_close: Callable[[], None],
    ) -> None:
        self.name = self.link = name
        self.stats = Stats(rejected=node.stats.rejected)  # what clients said that is no message
        self._hub, self._loop, self._node, self._on_close = hub, loop, node, on_close
        self._patterns = Declarations(patterns)
        self._holding = Holding(self.stats, queue_bytes, HOLD_S)
        self._timer: TimerHandle | None = None
        self._answer: Future[None] | None = None
        self._closed = False

    def receive(self, messages: list[bytes]) -> int:
        """Pass on to the hub what publishers sent. None of it is unwanted: that is for rules to say."""
        self._hub.publish(entering(messages), self)
        return 0

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        now_s, outgoing = self._loop.time(), Outgoing(list)
        for message in payloads(batch):
            self._sort(message, now_s, outgoing)
        self._hand_on(outgoing)
        if self._holding.ask():
            self._ask()
        return None

    def _sort(self, message: bytes, now_s: float, outgoing: Outgoing) -> None:
        """Send a message on if its pattern is known; otherwise hold it and declare the pattern."""
        if not is_frame(message):
            return self.stats.drop("malformed")
        if message[0] != PUB:
            return self.stats.drop("type")
        key = message[FRAME_BYTES_MIN : FRAME_BYTES_MIN + 4 * message[1]]
        if not key:
            return self.stats.drop("no pattern")
        pattern = self._patterns.find(key, now_s) or self._declare(key, now_s)
        if pattern is None:
            return self.stats.drop("patterns full")
        if pattern.known:
            return self._pass(pattern, message, outgoing)
        self._holding.put(pattern, message, now_s)
        self._watch(now_s)
        return None

    def _pass(self, pattern: Declared, message: bytes, outgoing: Outgoing) -> None:
        if not pattern.peers:
            return self.stats.drop("no subscriber")
        frame = _MESSAGE + message[1:]
        for peer in pattern.peers.values():
            outgoing[peer].append(frame)
        self.stats.sent += 1
        self.stats.sent_bytes += len(frame)
        return None

    def _hand_on(self, outgoing: Outgoing) -> None:
        for peer, frames in outgoing.items():
            peer.send(*frames)

    def _declare(self, key: bytes, now_s: float) -> Declared | None:
        for idle in self._patterns.surplus(now_s):
            self._node.unpublish(idle.tokens)
        made = self._patterns.add(key, now_s)
        if made is not None:
            self._node.publish(made.tokens)
            made.peers = self._node.published[made.tokens]
            self._holding.add(made)
        return made

    def _ask(self) -> None:
        self._answer = self._node.settled()
        self._answer.add_done_callback(self._answered)

    def _answered(self, future: "Future[None]") -> None:
        self._answer = None
        if future.cancelled() or self._closed:
            return
        outgoing = Outgoing(list)
        for held in self._holding.answered():
            self._pass(held.pattern, held.message, outgoing)
        self._hand_on(outgoing)
        if self._holding.ask():
            self._ask()

    def _watch(self, now_s: float) -> None:
        """See to it that what is held too long is dropped."""
        if self._timer is None:
            self._timer = self._loop.call_at(now_s + HOLD_S, self._expire)

    def _expire(self) -> None:
        self._timer = None
        at_s = self._holding.expire(self._loop.time())
        if at_s is not None:
            self._timer = self._loop.call_at(at_s, self._expire)

    def purge(self, reason: str) -> list[bytes]:
        return self._holding.clear(reason)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._hub.detach(self)
        self._holding.clear("closed")
        self._on_close()
