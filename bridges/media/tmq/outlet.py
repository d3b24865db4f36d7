"""The queue to each subscriber, and the fate of a message that has a copy in several of them."""

from collections.abc import Container, Sequence

from bridges.media.shedding import Shed, ShedQueue
from bus.ledger import Stats
from bus.tmq.peer import Peer
from bus.tmq.wire import PACKET_BYTES

_CHUNK_BYTES = 16 * 1024  # passed on at a time; the policy does not apply to these if the peer stops now


class Ticket:
    """A message that no subscriber has got yet, and the number of its copies that wait."""

    __slots__ = ("copies", "message")

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.copies = 0


class Tickets:
    """The messages that no subscriber has got yet, by the identity of their bytes, which all queues share.

    `stats` is the ledger in messages: a message is queued until a subscriber has got it, and dropped when its
    last copy is lost. `copies` is the ledger in copies, of those that wait here and those that are lost.
    """

    def __init__(self, stats: Stats, copies: Stats) -> None:
        self.stats, self.copies = stats, copies
        self._of: dict[int, Ticket] = {}

    def wait(self, message: bytes) -> None:
        """Note that one more copy of a message is about to wait."""
        ticket = self._of.get(id(message))
        if ticket is None:
            ticket = self._of[id(message)] = Ticket(message)
            self.stats.queued += 1
            self.stats.queued_bytes += len(message)
        ticket.copies += 1

    def queue(self, messages: Sequence[bytes]) -> None:
        """Note that a copy of each of these messages is in a queue now."""
        self.copies.offered += len(messages)
        self.copies.queued += len(messages)
        self.copies.queued_bytes += sum(map(len, messages))

    def leave(self, message: bytes) -> None:
        """Note that a copy has left its queue for the peer, whose ledger counts it from now on."""
        self.copies.offered -= 1
        self._unqueue_copy(message)

    def got(self, message: bytes) -> None:
        """Note that a subscriber has got a message, perhaps after another subscriber."""
        if (ticket := self._of.pop(id(message), None)) is not None:
            self._unqueue(ticket)
            self.stats.sent += 1
            self.stats.sent_bytes += len(message)

    def lose(self, message: bytes, reason: str) -> None:
        """Note that a copy in a queue is lost."""
        self._unqueue_copy(message)
        self.copies.drop(reason)
        self.fail(message, reason)

    def cut(self, message: bytes) -> None:
        """Note that a copy has arrived in part."""
        self.copies.offered += 1
        self.copies.drop("oversize")
        self.fail(message, "oversize")

    def fail(self, message: bytes, reason: str) -> None:
        """Note that a subscriber will not get a message whose copy another ledger has counted."""
        ticket = self._of.get(id(message))
        if ticket is None:
            return
        ticket.copies -= 1
        if not ticket.copies:
            del self._of[id(message)]
            self._unqueue(ticket)
            self.stats.drop(reason)

    def _unqueue_copy(self, message: bytes) -> None:
        self.copies.queued -= 1
        self.copies.queued_bytes -= len(message)

    def _unqueue(self, ticket: Ticket) -> None:
        self.stats.queued -= 1
        self.stats.queued_bytes -= len(ticket.message)

    def waiting(self) -> list[Ticket]:
        """Return the messages that no subscriber has got yet, in order."""
        return list(self._of.values())


class TmqOutlet:
    """The queue for one subscriber, from which the policy `shed` drops. `offer` and `pump` pass messages on.

    A peer of 2015 reads 2056 bytes of a packet. A longer one is dropped as `oversize`, or counted so if it
    was the packet that showed of which kind the peer is.
    """

    def __init__(self, peer: Peer, shed: Shed, tickets: Tickets) -> None:
        self.peer = peer
        self._tickets = tickets
        self._queue = ShedQueue(Stats(), shed, on_lost=tickets.lose)
        self._pumping = False
        self._first, self._first_s = b"", 0.0  # a message that the peer has while it is being dialled
        self._each = False  # as far as is known, it takes one packet a connection

    @property
    def waits(self) -> bool:
        """Whether any message waits here."""
        return bool(self._queue)

    @property
    def oldest_s(self) -> float:
        """The time when the oldest message here came; one that a peer has while being dialled counts."""
        return self._first_s if self._first else self._queue.oldest_s

    def offer(self, messages: Sequence[bytes]) -> int:
        """Pass on the messages that the peer takes without a wait; return their number."""
        if self._queue or self._first or self._queue.shed.rate is not None:
            return 0
        passed = 0
        while passed < len(messages) and self.peer.takes() > 1:
            end, size = passed, 0
            while end < len(messages) and size < _CHUNK_BYTES:
                size += len(messages[end])
                end += 1
            if not self.peer.pass_on(messages[passed:end]):
                break
            passed = end
        return passed

    def put(self, messages: Sequence[bytes], now_s: float) -> None:
        """Queue messages. The caller has called `Tickets.wait` for those that nobody has got."""
        self._tickets.queue(messages)
        self.take_over(messages, now_s)

    def take_over(self, messages: Sequence[bytes], now_s: float) -> None:
        """Queue messages that `Tickets` counts as queued."""
        self._queue.put(now_s, messages)

    def pump(self, now_s: float) -> bool:
        """Pass on the messages that the peer takes now. Return whether any has left."""
        if self._pumping:  # its connection ended just now
            return False
        self._pumping = True
        self._judge()
        before = len(self._queue)
        if self.peer.gone:
            self._queue.clear("closed" if self.peer.state == "closed" else "peer gone")
        self._queue.expire(now_s)
        while not self._first and (room := self.peer.takes()):
            if not (self._pass_many(now_s) if room > 1 else self._pass_one(now_s)):
                break
        self._pumping = False
        return len(self._queue) < before

    def _judge(self) -> None:
        """Note the fate of the message with which the peer was dialled, and of which kind the peer is."""
        peer, message = self.peer, self._first
        if peer.busy:
            return
        self._each = peer.each or (self._each and peer.state != "streaming")
        self._first = b""
        if not message:
            return
        if peer.state in ("down", "closed"):
            self._tickets.fail(message, "closed" if peer.state == "closed" else "peer gone")
        elif self._each and len(message) > PACKET_BYTES:
            self._tickets.cut(message)
        else:
            self._tickets.got(message)

    def _pass_many(self, now_s: float) -> bool:
        """Pass on several messages at once; return whether there were any."""
        taken, size = list[tuple[float, bytes]](), 0
        while size < _CHUNK_BYTES and (one := self._queue.take(now_s)):
            taken.append(one)
            size += len(one[1])
        if not taken:
            return False
        arrives = self.peer.pass_on([message for _, message in taken])
        for came_s, message in taken if arrives else reversed(taken):
            if arrives:
                self._queue.settle(len(message))
                self._tickets.leave(message)
                self._tickets.got(message)
            else:
                self._queue.put_back(came_s, message)
        return True

    def _pass_one(self, now_s: float) -> bool:
        """Pass on one message, on a connection of its own or to learn of which kind the peer is."""
        while one := self._queue.take(now_s):
            message = one[1]
            if not self._each or len(message) <= PACKET_BYTES:
                self._queue.settle(len(message))
                self._tickets.leave(message)
                self._first_s, self._first = one
                return self.peer.pass_on([message])
            self._queue.settle(len(message), "oversize")
            self._tickets.lose(message, "oversize")
        return False

    def ready_s(self) -> float:
        """Return the earliest time at which the policy lets a message go; infinite if none waits."""
        return self._queue.ready_s()

    def revise(self, shed: Shed) -> None:
        """Change to another policy, for all waiting messages."""
        self._queue.revise(shed)

    @property
    def leaving(self) -> bytes:
        """The message that a peer has while it is being dialled; b"" if there is none."""
        return self._first

    def take_back(self, messages: Container[int], reason: str) -> None:
        """Drop waiting messages, given by the identity of their bytes. The others still leave."""
        self._queue.remove(lambda one: id(one) in messages, reason)
