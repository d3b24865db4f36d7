"""Carriers of bytes, as links with a protocol have them: ptys, serial servers, and TCP both ways.

`KINDS` has one for each way to open a stream.
"""

import os
import socket
from asyncio import get_running_loop
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from bridges.media.medium import Medium
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.medium import Uart
from bridges.protocols.protocol import Protocol
from bus.hub import Hub, Link
from tests.bridges.media.uart.rfc2217_server import Server
from tests.bridges.support import PtyPair
from tests.helpers.peers import until

RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.02}
BAUD = 3_000_000


class Carrier:
    """The far end of one stream: what the device says and hears, and how it goes and comes back."""

    def __init__(self, place: Path) -> None:
        self.place, self.link = place, None

    link: Any
    retry: ClassVar[dict[str, Any]] = RETRY
    listens = False
    holds_a_peer = False
    hears_itself = False

    def medium(self) -> Medium:
        raise NotImplementedError

    def say(self, data: bytes) -> None:
        raise NotImplementedError

    def heard(self) -> bytes:
        raise NotImplementedError

    def unplug(self) -> None:
        raise NotImplementedError

    def plug(self) -> None:
        """Be there, if the device is not."""

    def is_met(self) -> bool:
        """Return whether the link has the device."""
        return self.link.state == "up"  # type: ignore[no-any-return]

    def close(self) -> None:
        raise NotImplementedError

    def made(self, protocol: Protocol) -> Link:
        """Return a link to this carrier, not yet open."""
        return self.medium().speaking(protocol, **self.retry)

    async def open(self, hub: Hub, protocol: Protocol) -> Link:
        """Open a link, and wait until it has the device."""
        self.link = self.made(protocol)
        await self.reopen(hub)
        return self.link  # type: ignore[no-any-return]

    async def reopen(self, hub: Hub) -> None:
        """Open the link again, and wait until it has the device."""
        self.link.open(hub, get_running_loop())
        await self.back()

    async def back(self) -> None:
        """Be there again, and wait until the link has the device."""
        await until(lambda: self.link.state == "up" or not self.listens)
        self.plug()
        await until(self.is_met)

    async def go(self) -> None:
        """Go, and wait until the link knows."""
        losses = self.link.losses
        self.unplug()
        await until(lambda: self.link.losses > losses)


class Pty(Carrier):
    """A device file."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.line = PtyPair(place / "ttyTEST")

    def medium(self) -> Medium:
        return Uart(port=str(self.line.path), baud=BAUD)

    def say(self, data: bytes) -> None:
        assert os.write(self.line.master, data) == len(data)

    def heard(self) -> bytes:
        return self.line.read()

    def unplug(self) -> None:
        self.line.unplug()

    def plug(self) -> None:
        if self.line.master < 0:
            self.line.plug()

    def close(self) -> None:
        self.line.close()


class TwoWires(Pty):
    """A two-wire line, as RS-485 is: the adapter hears all that it sends."""

    hears_itself = True

    def medium(self) -> Medium:
        return Uart(port=str(self.line.path), baud=BAUD, echo=True)

    def heard(self) -> bytes:
        data = super().heard()
        if data:
            self.say(data)
        return data


class _Serving(Carrier):
    """A socket at which the link calls."""

    holds_a_peer = True

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.setblocking(False)
        self.port = self.listening.getsockname()[1]
        self.peer: socket.socket | None = None

    def is_met(self) -> bool:
        if self.peer is None:
            with suppress(BlockingIOError):
                self.peer, _ = self.listening.accept()
                self.peer.setblocking(False)
        return self.peer is not None and super().is_met()

    def say(self, data: bytes) -> None:
        assert self.peer is not None
        assert self.peer.send(data) == len(data)

    def heard(self) -> bytes:
        assert self.peer is not None
        return received(self.peer)

    def unplug(self) -> None:
        assert self.peer is not None
        self.peer.close()
        self.peer = None

    def close(self) -> None:
        if self.peer is not None:
            self.peer.close()
        self.listening.close()


def received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(65536)
    except (BlockingIOError, ConnectionError):
        return b""


class SerialServer(_Serving):
    """A serial server that forwards bytes."""

    def medium(self) -> Medium:
        return Uart(port=f"socket://127.0.0.1:{self.port}", baud=BAUD)


class Dialled(_Serving):
    """A TCP socket that the link dials."""

    def medium(self) -> Medium:
        return Tcp(host="127.0.0.1", port=self.port)


class Listening(Carrier):
    """A TCP socket at which the device calls."""

    peer: socket.socket

    def medium(self) -> Medium:
        return Tcp(host="127.0.0.1", port=0, mode="listen")

    retry: ClassVar[dict[str, Any]] = {}
    listens = True
    holds_a_peer = True

    def plug(self) -> None:
        port = int(self.link.url.rpartition(":")[2])
        self.peer = socket.create_connection(("127.0.0.1", port))
        self.peer.setblocking(False)

    def is_met(self) -> bool:
        return any(pipe.ready for pipe in self.link.link.link.pipes)

    def say(self, data: bytes) -> None:
        assert self.peer.send(data) == len(data)

    def heard(self) -> bytes:
        return received(self.peer)

    def unplug(self) -> None:
        self.peer.close()

    def close(self) -> None:
        with suppress(AttributeError):
            self.peer.close()


class Rfc2217(Pty):
    """A serial server with RFC 2217, which is pyserial's."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.server = Server(str(self.line.path))

    def medium(self) -> Medium:
        return Uart(port=f"rfc2217://127.0.0.1:{self.server.port}", baud=57600)

    def unplug(self) -> None:
        self.server.hang_up()

    def plug(self) -> None:
        """Do nothing: the server goes on."""

    def close(self) -> None:
        self.server.close()
        super().close()


KINDS: dict[str, Callable[[Path], Carrier]] = {
    "pty": Pty,
    "two wires": TwoWires,
    "socket": SerialServer,
    "rfc2217": Rfc2217,
    "dialled": Dialled,
    "listening": Listening,
}
