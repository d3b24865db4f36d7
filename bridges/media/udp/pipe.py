"""The pipe of an open UDP socket: datagrams in and out, through a translator."""

import errno
import socket
import struct
from asyncio import TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bridges.media.device import Alarm, OpenPipe, PipeContext, cancel
from bridges.media.shedding import Shed, ShedQueue, fitting
from bridges.protocols.translator import Translator
from bus.errors import words_of
from bus.machine.addresses import is_own
from bus.transports.inlet import FULL, Inlet
from bus.transports.intake import Received, Turns, drained
from bus.wire.batch import Batch, batch_of, from_payloads, payloads

_IP_PKTINFO = 8  # linux/in.h; not in `socket` before Python 3.14
_READ_BYTES = 65536
_SAMPLE_BYTES = 4096  # of a datagram that is told as noise
_OWN = 4096  # datagrams that may come back
_SAID = 256  # datagrams without a message that wait; older ones give way


Ancillary = tuple[int, int, bytes]
"""An item that the kernel gets with a datagram: it has a level, a type, and data."""


def source_of(address: str) -> Ancillary:
    """Return what has a datagram come from one of our IPv4 addresses (`in_pktinfo`, ip(7))."""
    return socket.IPPROTO_IP, _IP_PKTINFO, struct.pack("=I4s4x", 0, socket.inet_aton(address))


class Opened(NamedTuple):
    """An open socket, where to send if it is not connected, and the translator of what is said there.

    `source` says from which address a datagram comes, if that is not left to the system. `on_refused` is
    called if nobody listens there, nothing was ever heard, and the peer's name has another address.
    """

    sock: socket.socket
    peer: tuple[Any, ...] | None
    translator: Translator[bytes]
    source: Sequence[Ancillary] = ()
    on_refused: Callable[[], object] | None = None


class UdpPipe(OpenPipe):
    """The pipe to the peer, or to all peers as one, while the socket is open.

    What we broadcast comes back where our port is that of the peers. It is told by what it holds, and by its
    sender, an address and the port of ours: what did not come back must not be taken for a peer's.
    """

    def __init__(self, opened: Opened, shed: Shed, context: PipeContext) -> None:
        super().__init__(context)
        self._socket, self._peer, self._translator, self._source, self._on_refused = opened
        self._queue = ShedQueue(self.stats, shed)
        self._said = deque[bytes](maxlen=_SAID)
        self._rest = deque[bytes]()  # datagrams of one message that are still to be sent
        self._message = b""  # the message that `_rest` belongs to
        self._own = deque[bytes](maxlen=_OWN)
        self._host = ""  # one of our own addresses, from which datagrams came back
        self._returns = self._peer is not None and self._socket.getsockname()[1] == self._peer[1]
        self._timer: TimerHandle | None = None
        self._alarm = Alarm(self._turn)
        self._waiting = False  # for room in the socket
        self._inlet = Inlet(self._socket, self.stats.reject)
        self._turns = Turns(self._loop, self._decoded, self._publish_batch, self._lose, self._inlet)

    @property
    def condition(self) -> str:
        """The state of the devices in the protocol's own words; "" if it has none."""
        return self._translator.condition

    def start(self) -> None:
        self._loop.add_reader(self._socket, self._on_readable)
        self._hub.attach(self)
        self._arm()

    def _on_readable(self) -> None:
        on_refused = self._on_refused if self._is_refused() else None
        try:
            datagrams = self._read()
        except OSError as error:
            return self._gone(f"lost: {words_of(error)}")
        is_pressed = self._inlet.look()
        if datagrams:
            self._on_refused = None
            if self._wire.hears:
                self._wire.tell([datagram for datagram, _ in datagrams])
            self._turns.hear(datagrams, is_pressed)
        elif on_refused is not None:
            self._refused(on_refused)
        return None

    def _is_refused(self) -> bool:
        """Tell whether nobody listens where the peer may be; else the reading would pass over that."""
        if self._on_refused is None:
            return False
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED

    def _refused(self, on_refused: Callable[[], object]) -> None:
        on_refused()
        self._gone("nobody listens there; the name has another address")

    def _decoded(self, datagrams: Sequence[Received]) -> Batch | None:
        messages = self._translator.take([datagram for datagram, _ in datagrams], self._loop.time())
        self._note(len(datagrams), datagrams[-1][0][:_SAMPLE_BYTES])
        self._loop.call_soon(self._go_on)
        return batch_of(messages)

    def _publish_batch(self, batch: Batch) -> None:
        self._hub.publish(batch, self)

    def _lose(self, count: int) -> None:
        self.stats.reject(FULL, count)

    def _read(self) -> list[Received]:
        found = drained(self._socket, _READ_BYTES)
        return [one for one in found if not self._is_own(*one)] if self._returns else found

    def _is_own(self, datagram: bytes, sender: Any) -> bool:
        if datagram not in self._own or not self._is_ours(*sender[:2]):
            return False
        self._own.remove(datagram)
        self.stats.reject("echo")
        return True

    def _is_ours(self, host: str, port: int) -> bool:
        """Tell whether a sender is this socket. Its address may change while it is open."""
        if self._peer is None or port != self._peer[1]:
            return False
        if host != self._host and is_own(host):
            self._host = host
        return host == self._host

    def _publish(self, messages: Sequence[bytes]) -> None:
        if messages:
            self._hub.publish(from_payloads(messages), self)

    def _note(self, size: int, sample: bytes = b"") -> None:
        found, noise = self._translator.take_counts()
        self._heard(size, found, noise, sample)

    def _arm(self) -> None:
        """Have the translator called when it wants to be."""
        if not self._closed:
            self._alarm.set(self._loop, self._translator.due_s)

    def _turn(self) -> None:
        turn = self._translator.advance(self._loop.time())
        self._publish(turn.messages)
        self._said.extend(turn.items)
        self._note(0)
        self._go_on()

    def _go_on(self) -> None:
        if not self._waiting and not self._closed:
            self._pump()
        self._arm()

    def know(self, names: Sequence[str]) -> None:
        """Have the translator write tokens by these names from now on."""
        self._translator.know(names)

    def revise(self, shed: Shed) -> bool:
        self._queue.revise(shed)
        self._go_on()
        return True

    def _put(self, batch: Batch) -> None:
        self._queue.put(self._loop.time(), fitting(payloads(batch), self.stats))
        self._go_on()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the waiting messages and return them."""
        self._said.clear()
        return self._queue.clear(reason)

    def _next(self) -> bytes | None:
        """Return the next datagram; None if there is none now."""
        if self._rest:
            return self._rest[0]
        if self._said:
            self._message = b""
            self._rest.append(self._said.popleft())
            return self._rest[0]
        while self._translator.is_free and (taken := self._queue.take(self._loop.time())) is not None:
            self._message = taken[1]
            items, why, *_ = self._translator.give(taken[1], self._loop.time())
            if items:
                self._rest.extend(items)
                return self._rest[0]
            self._queue.settle(len(taken[1]), why)
        return None

    def _pump(self) -> None:
        """Send until the socket is full, the rate limit allows no more, or the queue is empty."""
        while (datagram := self._next()) is not None:
            why = ""
            try:
                if self._peer is None:
                    self._socket.send(datagram)
                else:
                    self._socket.sendmsg((datagram,), self._source, 0, self._peer)
            except BlockingIOError:
                return self._wait(True)
            except ConnectionRefusedError:  # reported for an earlier datagram; this one was not sent
                why = "refused"
            except OSError as error:
                return self._gone(f"lost: {words_of(error)}")
            self._sent(datagram, why)
            if why and self._on_refused is not None:
                return self._refused(self._on_refused)
        self._wait(False)
        if self._queue and self._timer is None and self._translator.is_free:
            self._timer = self._loop.call_at(self._queue.ready_s(), self._on_time)
        return None

    def _sent(self, datagram: bytes, why: str) -> None:
        self._rest.popleft()
        if self._wire.hears and not why:
            self._wire.tell((datagram,), True)
        if self._returns and not why:
            self._own.append(datagram)
        if why:
            self._rest.clear()
        if self._message and not self._rest:
            self._queue.settle(len(self._message), why)
            self._message = b""

    def _wait(self, for_room: bool) -> None:
        if for_room and not self._waiting:
            self._loop.add_writer(self._socket, self._pump)
        elif self._waiting and not for_room:
            self._loop.remove_writer(self._socket)
        self._waiting = for_room

    def _on_time(self) -> None:
        self._timer = None
        self._go_on()

    def _end(self, why: str) -> None:
        self._alarm.cancel()
        cancel(self._timer)
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self.stats.reject("closed", self._turns.end() + len(self._translator.finish(self._loop.time())))
        if self._message:
            self._queue.settle(len(self._message), "closed")
        self._queue.clear("closed")
        self._socket.close()
