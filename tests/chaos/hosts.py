"""Machines of a simulated plant, their devices, and the network between them."""

import asyncio
import contextlib
import errno
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from bridges.media.can.link import CanLink
from bridges.media.multicast.link import MulticastLink
from bridges.media.uart.link import UartLink
from bridges.simulate.loop import Bell
from bridges.simulate.tcp import TcpEnd, TcpWire
from bridges.simulate.wire import Wire, trouble
from bus.transports import sockets
from tests.chaos.loops import ProgramLoop, Scheduler, become, current
from topologies.wiring.rings import RING_AGE_S

_SYN_S = (1, 2, 4, 8, 16, 32)  # Linux repeats the first segment of a connection after these pauses
_PREFIX = "10.0.0."
Address = tuple[str, int]
W = TypeVar("W", bound=Wire)
_LOG_EVENTS = 64
Opens = Callable[[], tuple[Any, Callable[[], None]]]
"""Opens a device; returns it, and what closes it. Raises `OSError`."""


def brief(wire: W) -> W:
    """Return a wire that keeps a short log: a plant has many, and runs for long."""
    wire.log = deque(maxlen=_LOG_EVENTS)
    return wire


class Host:
    """A machine: its listening sockets, its connections and its devices.

    `spent` is the errno of everything that would take a descriptor or memory; 0: there is enough. A machine
    that is `off` answers nothing.
    """

    def __init__(self, network: "Network", name: str, address: str) -> None:
        self.network, self.name, self.address = network, name, address
        self.listeners: dict[int, Listening] = {}
        self.devices: dict[str, Opens] = {}
        self.spent, self.off = 0, False
        self._opened: list[Callable[[], None]] = []
        self._sockets: list[socket.socket] = []

    def program(self, name: str) -> ProgramLoop:
        """Return the loop of a program that starts on this machine."""
        made = ProgramLoop(name, self._connect)
        self.network.owners[made] = self
        return made

    def check(self) -> None:
        """Raise `OSError` if descriptors or memory are exhausted, or if the program that asks is dead."""
        if current() not in self.network.owners:
            raise trouble(errno.ENETDOWN)
        if self.spent:
            raise trouble(self.spent)

    def open(self, device: str) -> Any:
        """Open a device by its name. Raises `OSError`."""
        self.check()
        made, close = self.devices[device]()
        self._opened.append(close)
        return made

    def own(self, sock: socket.socket) -> None:
        """Note a connection of this machine's program."""
        self._sockets = [one for one in self._sockets if one.fileno() >= 0]
        self._sockets.append(sock)

    @property
    def connections(self) -> int:
        """The connections that are open."""
        return sum(one.fileno() >= 0 for one in self._sockets)

    async def _connect(self, sock: socket.socket, address: Address) -> None:
        self.check()
        wire = self.network.wire(self.address, address[0])
        for pause_s in _SYN_S:
            if not wire.severed and not self.network.hosts[address[0]].off:
                await asyncio.sleep(2 * wire.delay_s())
                self.check()
                return self.join(sock, address)
            await asyncio.sleep(pause_s)
        raise trouble(errno.ETIMEDOUT)

    def join(self, sock: socket.socket, address: Address) -> None:
        """Connect `sock` at once. Raises `OSError`."""
        server, wire = self.network.hosts[address[0]], self.network.wire(self.address, address[0])
        if wire.severed or server.off:
            raise trouble(errno.EHOSTUNREACH)
        if address[1] not in server.listeners:
            raise trouble(errno.ECONNREFUSED)
        near, far = wire.join(self.network.ends[self.address, address[0]], self.network.loop)
        become(sock, near)
        self.own(sock)
        server.listeners[address[1]].take(far, (self.address, self.network.port()))

    def die(self) -> None:
        """Take everything from the program that ran here: what it sent still leaves."""
        for listening in list(self.listeners.values()):
            listening.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for close in self._opened:
            close()
        self._sockets, self._opened = [], []


class Listening(Bell):
    """A listening socket, as far as `Acceptor` uses it. What connects waits in it until it is accepted."""

    def __init__(self, host: Host, address: Address) -> None:
        super().__init__(host.network.loop)
        self._host, self._address = host, address
        self._waiting: deque[tuple[socket.socket, Address]] = deque()
        if address[1] in host.listeners:
            raise trouble(errno.EADDRINUSE)
        host.listeners[address[1]] = self

    def take(self, sock: socket.socket, peer: Address) -> None:
        self._waiting.append((sock, peer))
        self.ring()

    def accept(self) -> tuple[socket.socket, Address]:
        if not self._waiting:
            self.quiet()
            raise trouble(errno.EAGAIN)
        self._host.check()
        sock, peer = self._waiting.popleft()
        self._host.own(sock)
        return sock, peer

    def getsockname(self) -> Address:
        return self._address

    def close(self) -> None:
        if self._host.listeners.get(self._address[1]) is self:
            del self._host.listeners[self._address[1]]
        for sock, _ in self._waiting:
            sock.close()
        self._waiting.clear()
        super().close()


async def _unconnected(_: socket.socket, address: Address) -> None:
    raise trouble(errno.ENETUNREACH)


class Network:
    """A network on which each pair of machines has a wire of its own. `loop` is that of all wires."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.hosts: dict[str, Host] = {}
        self.owners: dict[ProgramLoop, Host] = {}
        self.wires: dict[tuple[str, str], TcpWire] = {}
        self.ends: dict[tuple[str, str], TcpEnd] = {}
        self.loop = ProgramLoop("wires", _unconnected)
        scheduler.add(self.loop)
        self._ports = 0

    def host(self, name: str, address: str) -> Host:
        """Add a machine."""
        self.hosts[address] = Host(self, name, address)
        return self.hosts[address]

    def port(self) -> int:
        self._ports = (self._ports + 1) % 20000
        return 40000 + self._ports

    def wire(self, client: str, server: str) -> TcpWire:
        """Return the wire of connections that `client` makes to `server`, by their addresses.

        All end as soon as those of the trunks, which form a ring.
        """
        key = client, server
        if key not in self.wires:
            self.wires[key] = brief(TcpWire(seed=len(self.wires), patience_s=RING_AGE_S))
            self.ends[key] = self.wires[key].client(f"{client} to {server}")
        return self.wires[key]

    def between(self, one: str, other: str) -> list[TcpWire]:
        """Return the wires of two machines."""
        return [self.wire(one, other), self.wire(other, one)]

    def here(self) -> Host:
        """Return the machine of the program whose turn it is. Raises `OSError` if that is dead."""
        if current() not in self.owners:
            raise trouble(errno.ENETDOWN)
        return self.owners[current()]

    def _listen(self, family: int, address: Address) -> Listening:
        self.here().check()
        return Listening(self.here(), address)

    def _connect_ex(self, sock: socket.socket, address: Address) -> int:
        try:
            self.here().check()
            self.here().join(sock, address)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put this network and its devices in place of the machine's."""
        with contextlib.ExitStack() as stack:

            def put(owner: Any, name: str, made: Any) -> None:
                stack.enter_context(patch.object(owner, name, made))

            put(sockets, "listen_at", self._listen)
            put(socket.socket, "connect_ex", lambda sock, address: self._connect_ex(sock, address))
            put(CanLink, "_open_device", lambda link: self.here().open(str(link.options.channel)))
            put(UartLink, "_open_device", lambda link: self.here().open(link.options.port))
            put(MulticastLink, "_open_device", lambda link: self.here().open(link.options.interface))
            yield
