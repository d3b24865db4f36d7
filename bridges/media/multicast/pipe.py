"""The pipe of a multicast group: it drains the receiver, fills the sender and watches the interface."""

import errno
import math
import socket
from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bridges.media.device import OpenPipe, PipeContext, cancel
from bridges.media.multicast.datagram import Decoder, Encoder, opened
from bridges.media.multicast.fragments import TIMEOUT_S
from bridges.media.multicast.interfaces import lost
from bridges.media.multicast.send import Outbox
from bridges.media.multicast.shed import ShedOutbox
from bridges.media.multicast.sockets import HEADER_BYTES, Sockets
from bridges.media.rtnetlink import LinkNews, News
from bridges.media.seals import Seals
from bridges.media.shedding import Shed
from bus.errors import words_of
from bus.transports.inlet import FULL, Inlet
from bus.transports.intake import Received, Turns
from bus.wire.batch import Batch, payloads

DATAGRAM_BYTES_MIN = 64
_READ_BYTES = 65536
_READ_DATAGRAMS, _READ_MOST_BYTES = 1024, 1 << 20  # in one wake-up: faster than most can say them
_FULL_INTERFACE_S = 0.002  # pause; the kernel does not report when the interface's queue has room

# The interface is lost. Any other error concerns one datagram.
_LOST = {
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ENODEV,
    errno.ENXIO,
    errno.EADDRNOTAVAIL,
    errno.EINVAL,
}


def drain(
    sock: socket.socket, view: memoryview, own: tuple[Any, ...]
) -> tuple[list[tuple[bytes, Any]], int, OSError | None]:
    """Read up to 1,024 datagrams, or 1 MiB.

    Return those of others with senders, how many are ours, and the error behind them, if there was one.
    """
    read, found, echoes, left_bytes = sock.recvfrom_into, list[tuple[bytes, Any]](), 0, _READ_MOST_BYTES
    append = found.append
    try:
        for _ in range(_READ_DATAGRAMS):
            size, sender = read(view)
            left_bytes -= size
            if sender == own:
                echoes += 1
            else:
                append((bytes(view[:size]), sender))
            if left_bytes < 0:
                break
    except (BlockingIOError, InterruptedError):
        pass
    except OSError as error:
        return found, echoes, error
    return found, echoes, None


class Sizes(Protocol):
    """The settings of the pipe."""

    @property
    def datagram_bytes(self) -> int: ...
    @property
    def queue_bytes(self) -> int: ...


class MulticastPipe(OpenPipe):
    """All other members of the group, as one peer. Without `shed`, a full queue drops the newest messages."""

    def __init__(
        self,
        sockets: Sockets,
        options: Sizes,
        shed: Shed | None,
        context: PipeContext,
        seals: Seals | None,
    ) -> None:
        super().__init__(context)
        self._seals = seals
        self._sockets, self._datagram_bytes = sockets, options.datagram_bytes
        size, stamp = self._fit(sockets.interface.mtu), sockets.stamp()
        self._encoder = Encoder(size, *stamp, self.stats.dropped, seals)
        self._outbox = (
            Outbox(self._encoder, self.stats, options.queue_bytes)
            if shed is None
            else ShedOutbox(self._encoder, self.stats, shed, self._loop.time)
        )
        self._decoder = Decoder(self.stats.rejected)
        self._inlet = Inlet(sockets.receiver, self.stats.reject, sockets.held)
        self._turns = Turns(self._loop, self._decoded, self._publish, self._lose, self._inlet)
        self._view = memoryview(bytearray(_READ_BYTES))
        self._expiry: TimerHandle | None = None
        self._retry: TimerHandle | None = None
        self._pacing: TimerHandle | None = None
        self._waiting = False
        self._repeat = False  # this host received the first datagram, but the interface did not send it

    def _fit(self, mtu: int) -> int:
        """Return the most bytes in a datagram that fits `mtu` with its IP and UDP headers."""
        room = mtu - HEADER_BYTES[self._sockets.interface.address.version]
        return max(DATAGRAM_BYTES_MIN, min(self._datagram_bytes, room))

    def start(self) -> None:
        self._loop.add_reader(self._sockets.watch, self._on_news)
        self._loop.add_reader(self._sockets.receiver, self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        datagrams, echoes, error = drain(self._sockets.receiver, self._view, self._sockets.own)
        if echoes:
            self.stats.reject("echo", echoes)
        is_pressed = self._inlet.look()
        if datagrams and self._wire.hears:
            self._wire.tell([bytes(datagram) for datagram, _ in datagrams])
        self._turns.hear(self._opened(datagrams), is_pressed)
        if error is not None:
            self._gone(f"lost: {words_of(error)}")

    def _opened(self, datagrams: Sequence[Received]) -> Sequence[Received]:
        """Return what came as datagrams of the format."""
        return datagrams

    def _decoded(self, datagrams: Sequence[Received]) -> Batch | None:
        good = datagrams if self._seals is None else opened(datagrams, self._seals)
        batch = self._decoder.feed(good, self._loop.time())
        noise, self._decoder.noise = self._decoder.noise, 0
        self._heard(len(datagrams), len(datagrams) - noise, noise)
        if self._expiry is None and self._decoder.reassembly.unfinished:
            self._expiry = self._loop.call_later(TIMEOUT_S, self._expire)
        return batch

    def _publish(self, batch: Batch) -> None:
        self._hub.publish(batch, self)

    def _lose(self, count: int) -> None:
        self.stats.reject(FULL, count)

    @property
    def _send_one(self) -> Callable[[bytes], int]:
        """The call that sends a datagram; while a tap hears, it is shown too."""
        return self._send_shown if self._wire.hears else self._sockets.sender.send

    def _send_shown(self, datagram: bytes) -> int:
        size = self._sockets.sender.send(datagram)
        self._wire.tell((datagram,), True)
        return size

    def _expire(self) -> None:
        reassembly, self._expiry = self._decoder.reassembly, None
        reassembly.expire(self._loop.time())
        if reassembly.unfinished:
            self._expiry = self._loop.call_later(TIMEOUT_S, self._expire)

    def _on_news(self) -> None:
        try:
            told = self._sockets.watch.news()
        except OSError as error:
            return self._gone(f"lost: the watch over the interface: {words_of(error)}")
        for news in told:
            trouble = self._trouble(news)
            if trouble:
                return self._gone(trouble)
            if isinstance(news, LinkNews) and news.ifindex == self._sockets.interface.index:
                self._encoder.datagram_bytes = self._fit(news.mtu)

    def _trouble(self, news: News) -> str:
        """Return why the interface can no longer be used, by what the kernel tells; "" if it can."""
        return lost(self._sockets.interface, news)

    def _put(self, batch: Batch) -> None:
        """Send at once.

        Queue the messages that the kernel does not accept, and all that follow until it does.
        """
        if self._waiting:
            return self._outbox.add_later(payloads(batch))
        self._outbox.add(batch)
        self._flush()
        self._outbox.trim()
        self._repeat = self._repeat and self._outbox.has_ready

    def _flush(self) -> None:
        self._retry = None
        while True:
            try:
                if self._repeat:
                    self._repeat_first()
                self._outbox.transmit(self._send_one)
            except OSError as error:
                if not self._may_go_on(error):
                    return
            else:
                self._wait(False)
                return self._pace()

    def _pace(self) -> None:
        """Flush again when the rate allows the next message, if messages wait for it."""
        if self._pacing is None and (ready_s := self._outbox.ready_s()) < math.inf:
            self._pacing = self._loop.call_at(ready_s, self._paced)

    def _paced(self) -> None:
        self._pacing = None
        if not self._waiting:
            self._flush()

    def _repeat_first(self) -> None:
        with self._sockets.unheard_here():
            self._outbox.transmit_first(self._send_one)
        self._repeat = False

    def _may_go_on(self, error: OSError) -> bool:
        """Handle an error of sending. Return whether to continue now; if not, retry or end later."""
        if error.errno in _LOST:
            self._gone(f"lost: {words_of(error)}")
        elif isinstance(error, BlockingIOError | InterruptedError):
            if not self._repeat:
                self._outbox.give_back()
            self._wait(True)
        elif error.errno == errno.ENOBUFS:
            self._wait(False)
            self._waiting = self._repeat = True
            self._retry = self._loop.call_later(_FULL_INTERFACE_S, self._flush)
        else:
            self._repeat = False
            self._outbox.refuse_first(words_of(error).lower())
            return True
        return False

    def _wait(self, for_room: bool) -> None:
        """Start or stop waiting until the socket has room."""
        if for_room:
            self._loop.add_writer(self._sockets.sender, self._flush)
        elif self._waiting:
            self._loop.remove_writer(self._sockets.sender)
        self._waiting = for_room

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy; without one, another bound."""
        self._outbox.revise(shed, not self._repeat)
        cancel(self._pacing)
        self._paced()
        return True

    def purge(self, reason: str) -> list[bytes]:
        """Drop the waiting messages and return them."""
        self._repeat = False
        return self._outbox.purge(reason, self._begun)

    @property
    def _begun(self) -> Sequence[bytes]:
        """The fragments that are sent of a message that has begun, if they are kept."""
        return ()

    def _end(self, why: str) -> None:
        sockets, loop = self._sockets, self._loop
        loop.remove_reader(sockets.watch)
        loop.remove_reader(sockets.receiver)
        loop.remove_writer(sockets.sender)
        cancel(self._expiry, self._retry, self._pacing)
        self._outbox.purge("closed")
        self.stats.reject("closed", self._turns.end())
        self._decoder.reassembly.expire(math.inf)
        sockets.close()
