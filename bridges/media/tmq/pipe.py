"""The pipe of a side on the TMQ network: from messages of the bridge to those of its subscribers, and back.

Frames of type 01 in the bridge are messages (type 02) on the network.
"""

from asyncio import AbstractEventLoop, Future, TimerHandle
from collections import defaultdict
from collections.abc import Sequence
from math import inf

from bridges.media.shedding import Shed
from bridges.media.tmq.declared import Declarations, Declared, Holding
from bridges.media.tmq.mates import MateCopies
from bridges.media.tmq.outlet import Tickets, TmqOutlet
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.tmq.client import ClientNode
from bus.tmq.peer import Peer
from bus.tmq.wire import MESSAGE
from bus.wire.batch import LENGTH, Batch, payloads
from bus.wire.frame import FRAME_BYTES_MAX, FRAME_BYTES_MIN, PUB, is_frame

HOLD_S = 3.0  # a message waits for its pattern to be declared
_GRACE_S = 0.25  # a broker of 2015 does not say when it has answered
_LOOK_S = 0.01  # between two looks for what a policy says
_HEADS = tuple(LENGTH.pack(size) + bytes((PUB,)) for size in range(FRAME_BYTES_MAX + 1))
_FRAME, _MESSAGE = bytes((PUB,)), bytes((MESSAGE,))
Outgoing = defaultdict[Peer, list[bytes]]


def entering(messages: Sequence[bytes]) -> Batch:
    """Return messages of the network as a batch of frames for the bridge."""
    parts: list[bytes] = []
    for message in messages:
        parts += _HEADS[len(message)], message[1:]
    return Batch(b"".join(parts), len(messages))


class TmqPipe(Pipe):
    """All subscribers and publishers of the network, as one peer of the hub.

    The ledger is in messages. A message is sent when a subscriber has got it, dropped when all its copies are
    lost, and queued meanwhile. `copies` is the ledger of the copies that wait here for a subscriber, or were
    lost.
    """

    def __init__(self, name: str, hub: Hub, loop: AbstractEventLoop, patterns: int, shed: Shed) -> None:
        self.name = self.link = name
        self.heard, self.copies = Stats(), Stats()
        self.stats = Stats(rejected=self.heard.rejected)
        self._hub, self._loop, self._shed = hub, loop, shed
        self._patterns = Declarations(patterns)
        self._holding = Holding(self.stats, shed, HOLD_S)
        self._tickets = Tickets(self.stats, self.copies)
        self._mates = MateCopies(self._tickets)
        self._outlets: dict[Peer, TmqOutlet] = {}
        self._expiry: TimerHandle | None = None
        self._look: TimerHandle | None = None
        self._late: TimerHandle | None = None
        self._closed = False

    def start(self, node: ClientNode) -> None:
        """Publish by `node`, whose user this pipe is, and attach to the hub."""
        self._node = node
        self._hub.attach(self)

    def take(self, messages: list[bytes]) -> None:
        self._hub.publish(entering(messages), self)

    def overhear(self, patterns: list[bytes]) -> None:
        """Declare the patterns of a mate, so that after a takeover their subscribers are known."""
        if self._closed:
            return
        now_s = self._loop.time()
        for key in patterns:
            if key and not self._patterns.overhear(key, now_s):
                self._declare_ahead(key, now_s)
        if self._holding.ask():
            self._ask()

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        now_s, outgoing = self._loop.time(), Outgoing(list)
        for message in payloads(batch):
            self._sort(message, now_s, outgoing)
        self._hand_on(outgoing, now_s)
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
        made = _MESSAGE + message[1:]
        for peer in pattern.peers.values():
            outgoing[peer].append(made)
        return None

    def _hand_on(self, outgoing: Outgoing, now_s: float) -> None:
        """Give each subscriber its copies: those that it takes now, and a queue for the rest.

        Mates are last.
        """
        got, waits = dict[int, int](), list[tuple[TmqOutlet, list[bytes]]]()
        mates = [peer for peer in outgoing if self._node.is_mate(peer)]
        late = [(self._outlet(peer), outgoing.pop(peer)) for peer in mates]
        for peer, messages in outgoing.items():
            outlet = self._outlet(peer)
            passed = outlet.offer(messages)
            got.update((id(one), len(one)) for one in messages[:passed])
            if passed < len(messages):
                waits.append((outlet, messages[passed:]))
        self.stats.sent += len(got)
        self.stats.sent_bytes += sum(got.values())
        for _, messages in (*waits, *late):  # all of them before the first can be dropped
            for one in messages:
                if id(one) not in got:
                    self._tickets.wait(one)
        for outlet, messages in waits:
            outlet.put(messages, now_s)
        for outlet, messages in late:
            self._mates.put(outlet, messages, now_s)
        for outlet, _ in waits:
            outlet.pump(self._loop.time())
        self._release_late()
        if waits:
            self._look_again()

    def _release_late(self) -> None:
        """Give mates the messages that all others have got, or that have waited long enough."""
        if not self._mates or self._closed:
            return
        others = (outlet.oldest_s for peer, outlet in self._outlets.items() if not self._node.is_mate(peer))
        at_s = self._mates.release(min(others, default=inf), self._loop.time())
        if at_s is not None and self._late is None:
            self._late = self._loop.call_at(at_s, self._on_late)

    def _on_late(self) -> None:
        self._late = None
        self._release_late()

    def _outlet(self, peer: Peer) -> TmqOutlet:
        found = self._outlets.get(peer)
        if found is None:
            found = self._outlets[peer] = TmqOutlet(peer, self._shed, self._tickets)
        return found

    def peer_changed(self, peer: Peer) -> None:
        outlet = self._outlets.get(peer)
        if outlet is None:
            return
        outlet.pump(self._loop.time())
        if peer.state == "closed":
            self._mates.forget(outlet)
            del self._outlets[peer]
        self._release_late()
        self._look_again()

    def _look_again(self) -> None:
        """Set a timer for when the rate lets a message go, and to check whether one is too old."""
        rate, age_s = self._shed.rate, self._shed.age_s
        if self._look is not None or self._closed or (rate is None and age_s is None):
            return
        waiting = [outlet.ready_s() for outlet in self._outlets.values() if outlet.waits]
        if waiting:
            now_s = self._loop.time()
            at_s = now_s if rate is None else min(waiting)
            self._look = self._loop.call_at(max(at_s, now_s + _LOOK_S), self._on_look)

    def _on_look(self) -> None:
        self._look = None
        self._pump()

    def _pump(self) -> None:
        """Pass on the messages that subscribers take by now."""
        for outlet in list(self._outlets.values()):
            if outlet.waits:
                outlet.pump(self._loop.time())
        self._look_again()

    def _declare(self, key: bytes, now_s: float) -> Declared | None:
        adopted = self._patterns.adopt(key, now_s)
        if adopted is not None:
            return adopted
        self._take_back(self._patterns.surplus(now_s))
        made = self._patterns.add(key, now_s)
        if made is not None:
            self._publish(made)
        return made

    def _declare_ahead(self, key: bytes, now_s: float) -> None:
        self._take_back(self._patterns.idle(now_s))
        made = self._patterns.add(key, now_s, ahead=True)
        if made is not None:
            self._publish(made)
        else:
            self.heard.reject("patterns full")

    def _take_back(self, patterns: list[Declared]) -> None:
        for one in patterns:
            self._node.unpublish(one.tokens)

    def _publish(self, made: Declared) -> None:
        self._node.publish(made.tokens)
        made.peers = self._node.published[made.tokens]
        self._holding.add(made)

    def _ask(self) -> None:
        self._node.settled().add_done_callback(self._answered)

    def _answered(self, future: "Future[None]") -> None:
        if future.cancelled() or self._closed:
            return
        if self._node.uplink.connection is None:
            self._loop.call_later(_GRACE_S, self._release)
        else:
            self._release()

    def _release(self) -> None:
        """Send the messages that waited for an answer of the broker."""
        if self._closed:
            return
        outgoing = Outgoing(list)
        for held in self._holding.answered():
            self._pass(held.pattern, held.message, outgoing)
        self._hand_on(outgoing, self._loop.time())
        if self._holding.ask():
            self._ask()

    def _watch(self, now_s: float) -> None:
        """Set a timer to drop messages that are held too long."""
        if self._expiry is None:
            self._expiry = self._loop.call_at(now_s + self._holding.age_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        at_s = self._holding.expire(self._loop.time())
        if at_s is not None:
            self._expiry = self._loop.call_at(at_s, self._expire)

    def revise(self, patterns: int, shed: Shed) -> None:
        """Change to another bound of patterns from now on, and to another policy for all waiting messages."""
        self._patterns.limit, self._shed = patterns, shed
        self._holding.revise(shed)
        for outlet in self._outlets.values():
            outlet.revise(shed)
        self._pump()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages that count as not sent, and return them as frames.

        Nobody has got such a message, or not all mates have. All others still leave, because nobody else
        would send them, and so does the message that is just being sent.
        """
        unheard = self._mates.waiting()
        known = {id(one) for one in unheard}
        unsent = [one.message for one in self._tickets.waiting() if id(one.message) not in known] + unheard
        leaving = {id(outlet.leaving) for outlet in self._outlets.values()}
        taken_back = {id(one): one for one in unsent if id(one) not in leaving}
        for outlet in self._outlets.values():
            outlet.take_back(taken_back, reason)
        self._mates.take_back(taken_back, reason)
        return [_FRAME + one[1:] for one in taken_back.values()] + self._holding.clear(reason)

    def close(self) -> None:
        """Take the registrations back and leave the hub; waiting messages are dropped. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._expiry, self._look, self._late):
            if timer is not None:
                timer.cancel()
        self._hub.detach(self)
        self._node.close()
        for outlet in self._outlets.values():
            outlet.pump(self._loop.time())
        self._outlets.clear()
        self._mates.clear("closed")
        self._holding.clear("closed")
