"""A responder: a local socket at which a running process answers its user and root."""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from appliance.local.places import clear, is_listening, is_of_program, runtime_directory, sweep
from appliance.process.serve import Service
from bus.errors import words_of
from bus.hub import Hub
from bus.machine.permissions import make_private
from bus.serving.streams import StreamListener
from bus.transports.seats import Seat
from bus.transports.sockets import Acceptor

log = logging.getLogger("buscoupler")

REQUEST_BYTES = 1 << 16
CONNECTIONS = 64
TAKE_S = 5.0
"""The time that a client may take to read its answer."""
_CREDENTIALS = struct.Struct("3i")  # process, user and group of a peer

Answer = Callable[[asyncio.StreamReader], Awaitable[bytes]]
"""A function that reads a request, if there is one, and returns the answer. May raise OSError, TimeoutError
or ValueError."""


class Responder:
    """A responder on `path` that gives each connection one answer. `without` is logged if it cannot open."""

    def __init__(self, path: Path, answer: Answer, without: str) -> None:
        self.path, self.without = path, without
        self._answer = answer
        self._listener = StreamListener(
            self._serve, lambda: CONNECTIONS, lambda _: None, read_bytes=REQUEST_BYTES
        )

    async def open(self) -> None:
        """Listen, even if a dead process left its socket file there. Raises `OSError`."""
        make_private(self.path.parent, runtime_directory())
        if is_listening(self.path):
            raise FileExistsError(f"{self.path}: another process listens there")
        acceptor = Acceptor(socket.AF_UNIX, str(self.path), _bound(self.path))
        self._listener.open(asyncio.get_running_loop(), acceptor, self._on_trouble)

    def _on_trouble(self, error: OSError) -> None:
        log.warning("%s: cannot accept: %s; will go on trying", self.path, words_of(error))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seat: Seat) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            if _user(writer.get_extra_info("socket")) in (os.geteuid(), 0):
                writer.write(await self._answer(reader))
        writer.close()
        asyncio.get_running_loop().call_later(TAKE_S, writer.transport.abort)

    def close(self) -> None:
        """Stop listening, and remove the socket file if it is still ours."""
        self._listener.close()


def _bound(path: Path) -> socket.socket:
    """Return a socket at `path` that only this user can connect to from its first moment on.

    Its file gets its name when it listens: who sees it can connect, and does not take it for a dead one.
    """
    early = path.with_suffix(".open")
    early.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    try:
        # Linux gives it to the file; a umask would hold for other threads, too.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(str(early))
        sock.listen(1024)
        sock.setblocking(False)
        early.rename(path)
    except BaseException:
        sock.close()
        raise
    return sock


def _user(sock: socket.socket) -> int:
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[1])


class WithResponders:
    """A service with responders. The service runs also without a responder that cannot be opened."""

    def __init__(self, service: Service, *responders: Responder) -> None:
        self._service, self._responders = service, responders

    def hubs(self) -> Iterable[Hub]:
        """Return the hubs of the service."""
        return self._service.hubs()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the service, then its responders. Raises as the service does."""
        self._service.open(loop)
        self._task = loop.create_task(self._open_responders())

    async def opened(self) -> None:
        """Wait until the responders are open, as far as they can be."""
        await self._task

    async def _open_responders(self) -> None:
        for responder in self._responders:
            try:
                if is_of_program(responder.path):
                    sweep(responder.path.parent.parent.name)
                await responder.open()
            except OSError as error:
                log.warning("cannot open a local socket: %s; %s", error, responder.without)

    def close(self) -> None:
        """Close the responders and the service, and remove directories that are empty then."""
        for responder in self._responders:
            responder.close()
        self._service.close()
        for responder in self._responders:
            clear(responder.path.parent)
