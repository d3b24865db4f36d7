"""The intake of datagrams that many may send: senders take turns, and a turn of the loop is short.

All of them come by one socket, whose buffer keeps their order. Who says more than is handled would fill it,
and then everybody waits and loses. So the socket is emptied at once; what waits here waits by sender. Where
that is not fast enough, or no room is left here, the kernel keeps the sender with most out for a while.
"""

import socket
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from time import thread_time
from typing import Final

from bus.transports.inlet import Inlet
from bus.transports.muting import Muting
from bus.transports.portion import Portion
from bus.transports.seats import network_of
from bus.wire.batch import Batch
from bus.wire.sp import walk

Received = tuple[bytes, Hashable]
"""A datagram and the address of its sender: a tuple that begins with the host, or only a host."""
Waits = tuple[bytes | Batch, Hashable]
"""A thing that waits of a sender: a datagram, or the rest of the messages of one."""

WAITING_BYTES: Final = 8 << 20
_EACH_BYTES: Final = 256  # of memory, beside the bytes of a datagram
_READ_DATAGRAMS: Final = 1024  # in one wake-up: faster than most can say them
_READ_MOST_BYTES: Final = 1 << 20
_GROUPS: Final = 256  # of hosts, and in each of senders: so that nobody makes us search long
_LITTLE_BYTES: Final = 2048  # of one wake-up, that are handled without a look at the clock
_LONG_BYTES: Final = 4096  # of a datagram that is handled alone
_PIECE: Final = 256  # messages
_PARTS_IPV6: Final = 4
_KNOWN: Final = 1024  # hosts whose network is remembered
_MOST: Final = 1 / 8  # of what waits: who has less is not the one that fills the socket


def drained(
    sock: socket.socket, size_bytes: int, passing: type[OSError] = ConnectionRefusedError
) -> list[Received]:
    """Read the datagrams that a socket has, up to 1,024 or 1 MiB, each of `size_bytes` at most.

    An error that is `passing` is of an earlier datagram of ours. Raises another `OSError`, unless datagrams
    have come before it: they are not lost, and an error that lasts comes again.
    """
    found, left_bytes = list[Received](), _READ_MOST_BYTES
    for _ in range(_READ_DATAGRAMS):
        try:
            found.append(sock.recvfrom(size_bytes))
        except (BlockingIOError, InterruptedError):
            break
        except passing:
            continue
        except OSError:
            if found:
                break
            raise
        left_bytes -= len(found[-1][0])
        if left_bytes < 0:
            break
    return found


def ignore(_: object) -> None:
    """Do nothing: for sockets whose datagrams become no messages."""


_network = lru_cache(_KNOWN)(network_of)


class _Waiting:
    """The datagrams of a group of hosts, by groups of senders, the next one first."""

    __slots__ = ("held_bytes", "number", "senders")

    def __init__(self, number: int) -> None:
        self.number, self.held_bytes = number, 0
        self.senders: dict[int, deque[Waits]] = {}

    def put(self, one: Waits, cost: int, first: bool = False) -> None:
        number = hash(one[1]) % _GROUPS
        waiting = self.senders.get(number)
        if waiting is None:
            waiting = self.senders[number] = deque()
        waiting.appendleft(one) if first else waiting.append(one)
        self.held_bytes += cost

    def take(self) -> Waits:
        """Return what is next of the next sender, who is then the last."""
        sender = next(iter(self.senders))
        waiting = self.senders[sender]
        one = waiting.popleft()
        if not waiting or len(self.senders) > 1:
            del self.senders[sender]
            if waiting:
                self.senders[sender] = waiting
        return one

    def drop(self) -> Hashable:
        """Drop the newest datagram of the sender with most, and return that."""
        number = max(self.senders, key=lambda one: len(self.senders[one]))
        lost = self.senders[number].pop()
        self.held_bytes -= cost_of(lost)
        if not self.senders[number]:
            del self.senders[number]
        return lost[1]

    def most(self) -> Hashable:
        """Return the sender with most; host and port 0 if many of a host have about the same."""
        count = sum(map(len, self.senders.values()))
        fullest = max(self.senders.values(), key=len)
        sender = fullest[-1][1]
        if not isinstance(sender, tuple) or len(fullest) >= _MOST * count:
            return sender
        return sender[0], 0


class Intake:
    """Datagrams that wait: at most 8 MiB, more than the buffer of a socket.

    Groups of hosts take turns, and in a group senders do. If more would wait, who has most loses the newest.
    """

    def __init__(self, most_bytes: int = WAITING_BYTES) -> None:
        self._most_bytes, self._held_bytes, self._count = most_bytes, 0, 0
        self._groups: dict[int, _Waiting] = {}
        self._losers = dict[Hashable, None]()

    def __len__(self) -> int:
        return self._count

    @property
    def held_bytes(self) -> int:
        """The memory of what waits."""
        return self._held_bytes

    def take_losers(self) -> list[Hashable]:
        """Return the senders whose datagrams were dropped since the last call."""
        losers = list(self._losers)
        self._losers.clear()
        return losers

    def most(self) -> Hashable | None:
        """Return the sender of which most waits; None if none has an eighth of all."""
        if not self._groups:
            return None
        group = max(self._groups.values(), key=lambda one: one.held_bytes)
        return group.most() if group.held_bytes >= _MOST * self._held_bytes else None

    def put(self, received: Iterable[Received]) -> int:
        """Let datagrams wait. Return how many were dropped for it, of these or of others."""
        dropped = 0
        for one in received:
            group, cost = self._group(one[1]), _EACH_BYTES + len(one[0])
            if self._held_bytes > self._most_bytes - cost and self._is_full_of(group):
                self._losers[one[1]] = None
                dropped += 1
                continue
            group.put(one, cost)
            self._count += 1
            self._held_bytes += cost
            while self._held_bytes > self._most_bytes:
                self._drop(group)
                dropped += 1
        return dropped

    def put_back(self, rest: Waits) -> None:
        """Let the rest of a datagram wait, before all else of its sender, who has had a turn."""
        cost = cost_of(rest)
        self._group(rest[1]).put(rest, cost, first=True)
        self._count += 1
        self._held_bytes += cost

    def _group(self, sender: Hashable) -> _Waiting:
        number = hash(_host(sender)) % _GROUPS
        group = self._groups.get(number)
        if group is None:
            group = self._groups[number] = _Waiting(number)
        return group

    def _is_full_of(self, group: _Waiting) -> bool:
        """Tell whether one sender of a group has most, and so would lose what comes from the group."""
        return len(group.senders) == 1 and group.held_bytes * len(self._groups) >= self._held_bytes

    def _drop(self, newest: _Waiting) -> None:
        share_bytes = self._held_bytes // len(self._groups)
        fullest = newest
        if newest.held_bytes < share_bytes:
            fullest = max(self._groups.values(), key=lambda one: one.held_bytes)
        before = fullest.held_bytes
        self._losers[fullest.drop()] = None
        self._count -= 1
        self._held_bytes -= before - fullest.held_bytes
        if not fullest.senders:
            del self._groups[fullest.number]

    def take(self, size_bytes: int) -> list[Waits]:
        """Return what is next, of so many bytes or just above; nothing if nothing waits."""
        taken, taken_bytes, groups = list[Waits](), 0, self._groups
        while groups and taken_bytes < size_bytes:
            number = next(iter(groups))
            group = groups[number]
            one = group.take()
            size = size_of(one)
            group.held_bytes -= _EACH_BYTES + size
            if not group.senders or len(groups) > 1:
                del groups[number]
                if group.senders:
                    groups[number] = group
            taken.append(one)
            taken_bytes += size
        self._count -= len(taken)
        self._held_bytes -= taken_bytes + _EACH_BYTES * len(taken)
        return taken


def _host(sender: Hashable) -> Hashable:
    """Return what counts as the host of a sender: of IPv6, whose addresses have four parts, its network."""
    if not isinstance(sender, tuple):
        return sender
    return _network(sender[0]) if len(sender) == _PARTS_IPV6 else sender[0]


def size_of(one: Waits) -> int:
    """Return the bytes of what waits."""
    content = one[0]
    return len(content.data) if isinstance(content, Batch) else len(content)


def cost_of(one: Waits) -> int:
    """Return the bytes of memory that what waits takes."""
    return _EACH_BYTES + size_of(one)


class Turns:
    """The turns in which datagrams become messages, each of about 2 ms of work.

    `decode` makes a batch of datagrams, `publish` gets it, or pieces of it in several turns. `lose(count)`
    counts datagrams that find no room. Who says too much is muted at the `inlet` (`Muting`).
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        decode: Callable[[Sequence[Received]], Batch | None],
        publish: Callable[[Batch], object],
        lose: Callable[[int], object],
        inlet: Inlet | None = None,
        most_bytes: int = 1 << 18,
    ) -> None:
        self._loop, self._decode, self._publish, self._lose = loop, decode, publish, lose
        self._intake, self._portion = Intake(), Portion(most_bytes)
        self._muting = None if inlet is None else Muting(loop, inlet)
        self._expected = False

    def hear(self, received: Sequence[Received], is_pressed: bool = False) -> None:
        """Take datagrams that have just come. What one turn handles need not wait.

        `is_pressed`: the socket has more than half of what it holds, also after that.
        """
        if self._muting is not None and received:
            self._muting.hear(received)
        size_bytes = sum([len(datagram) for datagram, _ in received])
        if not self._intake and not is_pressed:
            if size_bytes <= _LITTLE_BYTES:
                return self._tell(self._decode(received))
            if size_bytes <= self._portion.size_bytes:
                return self._work(received, size_bytes)
        lost = self._intake.put(received)
        if lost:
            self._lose(lost)
        if self._muting is not None and (lost or is_pressed):
            most = self._intake.most() if is_pressed else None
            self._muting.judge(self._intake.take_losers(), most, self._intake.held_bytes)
        return None if self._expected else self._turn()

    def _tell(self, batch: Batch | None) -> None:
        if batch is not None:
            self._publish(batch)

    def _turn(self) -> None:
        self._expected = False
        taken = self._intake.take(self._portion.size_bytes)
        if self._muting is not None:
            self._muting.note_left(self._intake.held_bytes)
        self._work(taken, sum(map(size_of, taken)))

    def _work(self, taken: Sequence[Waits], size_bytes: int) -> None:
        began_s = thread_time()
        self._handle(taken)
        self._portion.note(size_bytes, thread_time() - began_s)
        if self._intake and not self._expected:
            self._expected = True
            self._loop.call_soon(self._turn)

    def _handle(self, taken: Sequence[Waits]) -> None:
        short = list[Received]()
        for content, sender in taken:
            if isinstance(content, Batch):
                self._piece(content, sender)
            elif len(content) < _LONG_BYTES:
                short.append((content, sender))
            elif (batch := self._decode([(content, sender)])) is not None:
                self._piece(batch, sender)
        if short:
            self._tell(self._decode(short))

    def _piece(self, batch: Batch, sender: Hashable) -> None:
        """Publish the first messages of a batch. The rest waits: one datagram may hold thousands."""
        size_bytes = self._portion.size_bytes
        if len(batch.data) > size_bytes and batch.count > _PIECE:
            data = batch.keep()
            count, end = walk(data, 0, len(data), max(_PIECE, batch.count * size_bytes // len(data)))
            if count < batch.count:
                self._intake.put_back((Batch(data[end:], batch.count - count), sender))
                batch = Batch(data[:end], count)
        self._publish(batch)

    def end(self) -> int:
        """Forget what waits. Return how many datagrams that were, those that have begun among them."""
        if self._muting is not None:
            self._muting.end()
        waiting, self._intake = len(self._intake), Intake()
        return waiting
