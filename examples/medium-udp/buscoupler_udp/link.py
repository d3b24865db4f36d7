"""A link to one UDP peer: a connected socket, one pipe, a queue with a shed policy."""

import socket
from asyncio import TimerHandle
from typing import Any

from bridges.media.device import DeviceLink, OpenPipe, PipeContext, cancel
from bridges.media.shedding import Shed, ShedQueue, fitting
from bus.errors import words_of
from bus.machine.addresses import refuse_itself
from bus.noise import Ear
from bus.wire.batch import Batch, from_payloads, payloads
from buscoupler_udp.codec import decode, encode
from buscoupler_udp.medium import Udp

_READ_BYTES = 65536
_READ_DATAGRAMS = 64  # read in one wake-up, so that other links get their turn


class UdpLink(DeviceLink[socket.socket]):
    """A UDP peer as a link. `shed` is a policy that replaces `queue_bytes`."""

    def __init__(self, options: Udp, shed: Shed | None = None, **retry: Any) -> None:
        super().__init__(f"unicast:{options.device}", shed, options.queue_bytes, **retry)
        self.options = options

    def _open_device(self) -> socket.socket:
        options = self.options
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, peer = found[0]
        sock = socket.socket(family, kind | socket.SOCK_CLOEXEC, protocol)
        try:
            sock.bind(("", options.own_port))
            sock.connect(peer)
            refuse_itself(sock)  # its own port at an address of this machine
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        return sock

    def _release(self, device: socket.socket) -> None:
        device.close()

    @property
    def ear(self) -> Ear:
        return Ear("datagrams", "another program on this port", sure=32, few=4)

    def _make_pipe(self, device: socket.socket, context: PipeContext) -> OpenPipe:
        return UdpPipe(device, self.shed, context)


class UdpPipe(OpenPipe):
    """The pipe to the peer while the socket is open."""

    def __init__(self, sock: socket.socket, shed: Shed, context: PipeContext) -> None:
        super().__init__(context)
        self._socket, self._queue = sock, ShedQueue(self.stats, shed)
        self._timer: TimerHandle | None = None
        self._waiting = False  # for room in the socket

    def start(self) -> None:
        self._loop.add_reader(self._socket, self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        messages, strange = list[bytes](), 0
        for _ in range(_READ_DATAGRAMS):
            try:
                datagram = self._socket.recv(_READ_BYTES)
                self._wire.tell((datagram,))
                messages.append(decode(datagram))
            except BlockingIOError:
                break
            except ConnectionRefusedError:  # answer to an earlier datagram: the peer does not listen
                continue
            except OSError as error:
                return self._gone(f"lost: {words_of(error)}")
            except ValueError as error:
                self.stats.reject(str(error))
                strange += 1
        self._heard(len(messages) + strange, len(messages), strange)
        if messages:
            self._hub.publish(from_payloads(messages), self)

    def _put(self, batch: Batch) -> None:
        self._queue.put(self._loop.time(), fitting(payloads(batch), self.stats))
        if not self._waiting:
            self._pump()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the waiting messages and return them."""
        return self._queue.clear(reason)

    def _pump(self) -> None:
        """Send until the socket is full, the rate limit allows no more, or the queue is empty."""
        while (taken := self._queue.take(self._loop.time())) is not None:
            datagram = encode(taken[1])
            try:
                self._socket.send(datagram)
            except BlockingIOError:
                self._queue.put_back(*taken)
                return self._wait(True)
            except ConnectionRefusedError:  # reported for an earlier datagram; this one was not sent
                self._queue.settle(len(taken[1]), "refused")
            except OSError as error:
                self._queue.settle(len(taken[1]), "closed")
                return self._gone(f"lost: {words_of(error)}")
            else:
                self._queue.settle(len(taken[1]))
                self._wire.tell((datagram,), True)
        self._wait(False)
        if self._queue and self._timer is None:
            self._timer = self._loop.call_at(self._queue.ready_s(), self._on_time)

    def _wait(self, for_room: bool) -> None:
        if for_room and not self._waiting:
            self._loop.add_writer(self._socket, self._pump)
        elif self._waiting and not for_room:
            self._loop.remove_writer(self._socket)
        self._waiting = for_room

    def _on_time(self) -> None:
        self._timer = None
        if not self._waiting:
            self._pump()

    def _end(self, why: str) -> None:
        cancel(self._timer)
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._queue.clear("closed")
        self._socket.close()
