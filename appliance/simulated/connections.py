"""The connections between the gateways of a plant: those to a bus or a broker can be cut, and mended."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any
from weakref import WeakSet

from bridges.simulate import SimulatedLoop
from bridges.simulate.loop import Owner
from bus.urls import HOSTED, split_url
from topologies.model import Topology

_GATEWAY: ContextVar[str] = ContextVar("the gateway whose code runs", default="")


class Connections:
    """The connections to each bus and broker of a topology, by the gateway that dials, and which are cut."""

    def __init__(self, topology: Topology) -> None:
        self._listeners = dict(_listeners(topology))
        self._cut = set[tuple[str, str]]()
        self._open: dict[tuple[str, str], WeakSet[socket.socket]] = {}

    @property
    def names(self) -> list[str]:
        """The names of what can be cut: buses and brokers that listen."""
        return list(dict.fromkeys(self._listeners.values()))

    def cut(self, name: str, gateway: str) -> None:
        """End the connections to a bus or broker, and refuse others; "" stands for those of all gateways."""
        self._cut.add((name, gateway))
        for (listener, dialler), sockets in self._open.items():
            if listener == name and gateway in ("", dialler):
                _end(sockets)

    def mend(self, name: str, gateway: str) -> None:
        """Undo a cut; with "" those of single gateways too."""
        self._cut -= {one for one in self._cut if one[0] == name and gateway in ("", one[1])}

    def refuse(self, address: Any) -> None:
        """Raise `OSError` if the gateway whose code runs is cut off from an address."""
        name = self._listeners.get(_place(address), "")
        if not self._cut.isdisjoint({(name, ""), (name, _GATEWAY.get())}):
            raise OSError(errno.EHOSTUNREACH, f"the test has cut the connections to {name}")

    def add(self, sock: socket.socket, address: Any) -> None:
        """Take note of a connection that the gateway whose code runs has made."""
        if name := self._listeners.get(_place(address)):
            self._open.setdefault((name, _GATEWAY.get()), WeakSet()).add(sock)


class PlantLoop(asyncio.SelectorEventLoop):
    """A loop of several gateways, which knows who dials. Time passes by the clock."""

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    def as_gateway(self, gateway: str, start: Callable[[], None]) -> None:
        """Call a function whose tasks, and their tasks, are that gateway's."""

        def run() -> None:
            _GATEWAY.set(gateway)
            start()

        copy_context().run(run)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self._connections.refuse(address)
        await super().sock_connect(sock, address)
        self._connections.add(sock, address)


class VirtualLoop(PlantLoop, SimulatedLoop):
    """Such a loop in virtual time."""

    def __init__(self, connections: Connections) -> None:
        SimulatedLoop.__init__(self)
        self._connections = connections


class RealLoop(PlantLoop, Owner):
    """Such a loop in real time, on which simulated wires can be too."""

    def __init__(self, connections: Connections) -> None:
        Owner.__init__(self)
        super().__init__(connections)

    def close(self) -> None:
        super().close()
        self.close_sockets()


def _listeners(topology: Topology) -> Iterator[tuple[int | str, str]]:
    """Yield the port or path of each listener, with the name of its bus or broker."""
    found = [(address.url, name) for name, bus in topology.buses.items() for address in bus.listen]
    found += [(address.url, name) for name, broker in topology.brokers.items() for address in broker.listen]
    for text, name in found:
        url = split_url(text)
        yield (url.port if url.scheme in HOSTED else url.path), name


def _place(address: Any) -> int | str:
    """Return what tells one listener of this machine from another: the port, or the path of a Unix socket."""
    return address if isinstance(address, str) else int(address[1])


def _end(sockets: "WeakSet[socket.socket]") -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):  # it has ended by itself
            sock.shutdown(socket.SHUT_RDWR)
    sockets.clear()
