"""A simulated network with a multicast group: each datagram goes to all members, also back to its sender."""

import errno
import socket
from asyncio import AbstractEventLoop
from collections import deque
from ipaddress import IPv4Address
from typing import Any, ClassVar

from bridges.media.multicast.interfaces import Interface
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.multicast.sockets import Sockets
from bridges.media.rtnetlink import MULTICAST, RUNNING, UP, LinkNews, News
from bridges.simulate.loop import Bell, socket_pair
from bridges.simulate.wire import Faults, Path, Wire, WireEnd, flip_one_bit, settings, trouble
from bus.transports.inlet import Held

_QUEUE_BYTES = 4 * 1024 * 1024  # of a receiving socket
_DATAGRAM_BYTES = 65536
_PORT = 49152

Address = tuple[str, int]


class MulticastWire(Wire):
    """A network segment at `rate_bytes_s`; faults are drawn for each receiver separately.

    A member hears its own datagrams, as a host does with multicast loopback. With `stuck = True`, datagrams
    are lost without an error.
    """

    headers_bytes: ClassVar[int] = 28 + 38  # IP, UDP, Ethernet with its gap
    send_bytes: ClassVar[int] = 0  # of the sending socket, if not as many as there are

    def __init__(
        self, rate_bytes_s: float = 12.5e6, mtu: int = 1500, seed: int = 0, faults: Faults | None = None
    ) -> None:
        super().__init__(seed, faults)
        self.rate_bytes_s, self.mtu = rate_bytes_s, mtu
        self.members: list[MulticastEnd] = []

    def member(self, name: str = "") -> "MulticastEnd":
        """Add a host."""
        self.members.append(MulticastEnd(self, name or f"host{len(self.members)}", len(self.members) + 1))
        return self.members[-1]

    def link(self, name: str = "", **options: Any) -> "SimulatedMulticast":
        """Return a `MulticastLink` on a new host; `options`: fields of `Multicast`, arguments of the link."""
        return SimulatedMulticast(self.member(name), **options)

    def carry(self, loop: AbstractEventLoop, datagram: bytes, sender: Address) -> None:
        """Deliver a datagram to every member that listens."""
        if self.stuck:
            return self.note(loop, sender[0], "stuck", datagram)
        self.note(loop, sender[0], "datagram", datagram)
        for member in self.members:
            member.hear(loop, datagram, sender)
        return None


class MulticastEnd(WireEnd):
    """A host with one interface. `unplug()` removes its carrier until `plug()`.

    With `clogged = True` its interface sends nothing, and its program's datagrams wait. It hears nothing of
    the hosts in `deaf_to`.
    """

    def __init__(self, wire: MulticastWire, name: str, number: int) -> None:
        super().__init__(name)
        self.wire = wire
        self.interface = Interface(number, name, wire.mtu, IPv4Address(f"10.0.0.{number}"))
        self.sockets: _SimulatedSockets | None = None
        self.deaf_to = set[MulticastEnd]()
        self._path = Path["_Letter"](wire, name, self._arrive, lambda letter: letter[0], self._bend)

    def open(self, loop: AbstractEventLoop) -> Sockets:
        """Return the counterpart of `sockets.open_sockets`. Raises `OSError` without a carrier."""
        if not self.plugged:
            raise OSError(errno.ENETDOWN, f"{self.name} has no carrier")
        self.sockets = _SimulatedSockets(self, loop)
        return self.sockets

    def _on_clogged(self) -> None:
        if self.sockets and not self.clogged:
            self.sockets.sender.go()

    def unplug(self) -> None:
        self.plugged = False
        if self.sockets:
            self.sockets.watch.tell(self.news())

    def news(self) -> LinkNews:
        """Return the kernel's notification about the interface as it is now."""
        flags = UP | MULTICAST | (RUNNING if self.plugged else 0)
        return LinkNews(self.interface.index, self.name, flags, self.interface.mtu, False)

    def hear(self, loop: AbstractEventLoop, datagram: bytes, sender: Address) -> None:
        if self.sockets and self.plugged:
            if sender == self.sockets.own:
                self._arrive((datagram, sender))  # it never leaves the host, so no fault can hit it
            elif all(end.sockets is None or sender != end.sockets.own for end in self.deaf_to):
                self._path.carry(loop, (datagram, sender))

    def _bend(self, letter: "_Letter") -> "_Letter":
        return flip_one_bit(letter[0], self.wire.random), letter[1]

    def _arrive(self, letter: "_Letter") -> None:
        if self.sockets and self.plugged:
            self.sockets.receiver.take(*letter)


_Letter = tuple[bytes, Address]


class _Receiver(Bell):
    """A receiving socket, as far as the link uses it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        super().__init__(loop)
        self._arrived: deque[_Letter] = deque()
        self._bytes = self.overflowed = 0

    def take(self, datagram: bytes, sender: Address) -> None:
        if self._bytes + len(datagram) > _QUEUE_BYTES:
            self.overflowed += 1
            return
        self._bytes += len(datagram)
        self._arrived.append((datagram, sender))
        self.ring()

    def recvfrom_into(self, view: memoryview) -> tuple[int, Address]:
        if not self._arrived:
            self.quiet()
            raise trouble(errno.EAGAIN)
        datagram, sender = self._arrived.popleft()
        self._bytes -= len(datagram)
        view[: len(datagram)] = datagram
        return len(datagram), sender


class _Sender:
    """A sending socket, as far as the link uses it, and the interface that reads from it."""

    def __init__(self, end: MulticastEnd, loop: AbstractEventLoop) -> None:
        self._end, self._loop = end, loop
        self._interface, self._program = socket_pair(loop, socket.SOCK_DGRAM)
        if end.wire.send_bytes:
            self._program.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, end.wire.send_bytes)
        self._closed = False
        self.go()

    def fileno(self) -> int:
        return self._program.fileno()

    def getsockname(self) -> Address:
        return str(self._end.interface.address), _PORT

    def send(self, datagram: bytes) -> int:
        """Send a datagram. Raises `BlockingIOError` if the socket's buffer is full."""
        return self._program.send(datagram)

    def go(self) -> None:
        """Wait for the program's next datagram, unless the host is clogged."""
        if self._closed:
            return
        if self._end.clogged:
            self._loop.remove_reader(self._interface)
        else:
            self._loop.add_reader(self._interface, self._transmit)

    def _transmit(self) -> None:
        self._loop.remove_reader(self._interface)
        datagram = self._interface.recv(_DATAGRAM_BYTES)
        seconds = (len(datagram) + self._end.wire.headers_bytes) / self._end.wire.rate_bytes_s
        self._loop.call_later(seconds, self._transmitted, datagram)

    def _transmitted(self, datagram: bytes) -> None:
        if not self._closed and self._end.plugged:
            self._end.wire.carry(self._loop, datagram, self.getsockname())
        self.go()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._interface)
        self._interface.close()
        self._program.close()


class _Watch(Bell):
    """A stand-in for `bridges.media.multicast.interfaces.Watch`."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        super().__init__(loop)
        self._waiting: list[News] = []

    def tell(self, news: News) -> None:
        self._waiting.append(news)
        self.ring()

    def news(self) -> list[News]:
        self.quiet()
        waiting, self._waiting = self._waiting, []
        return waiting


class _SimulatedSockets(Sockets):
    watch: Any
    receiver: Any
    sender: Any

    def __init__(self, end: MulticastEnd, loop: AbstractEventLoop) -> None:
        parts: Any = _Watch(loop), _Receiver(loop), _Sender(end, loop)
        super().__init__(end.interface, *parts)
        self._end = end

    def stamp(self) -> tuple[int, int]:
        draw = self._end.wire.retries.getrandbits
        return draw(32), draw(32)

    def held(self) -> Held:
        return Held(self.receiver.overflowed, False)

    def close(self) -> None:
        self._end.sockets = None
        super().close()


class SimulatedMulticast(MulticastLink):
    """A `MulticastLink` on a simulated network; the rest is the real link."""

    def __init__(self, end: MulticastEnd, **options: Any) -> None:
        fixed: dict[str, Any] = {"group": "239.0.0.1", "port": 9943, "interface": end.name}
        group, rest = settings(end.wire, Multicast, options, **fixed)
        super().__init__(group, **rest)
        self.end = end

    def _open_device(self) -> Sockets:
        return self.end.open(self._loop)
