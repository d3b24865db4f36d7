"""The local socket on which a process reloads for its user, and answers with the outcome."""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

from appliance.reload.outcome import REQUEST_BYTES, Outcome, pack, unpack_request
from appliance.reload.reloader import Reloader
from appliance.serve import Service
from appliance.status.places import is_listening
from bus.hub import Hub

log = logging.getLogger("buscoupler")

REQUEST_S = 5.0
_CREDENTIALS = struct.Struct("3i")  # process, user and group of a peer


class ReloadServer:
    """Listens on `path`, for this user and root only. Each connection is one request and one outcome."""

    def __init__(self, path: Path, reloader: Reloader) -> None:
        self.path, self._reloader = path, reloader
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen, even if a dead process left its socket file there. Raises `OSError`."""
        if is_listening(self.path):
            raise FileExistsError(f"{self.path}: another process listens there")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=_bound(self.path), limit=REQUEST_BYTES
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            if _user(writer.get_extra_info("socket")) in (os.geteuid(), 0):
                writer.write(pack(await self._answer(reader)))
                await writer.drain()
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> Outcome:
        async with asyncio.timeout(REQUEST_S):
            request = unpack_request(await reader.readline())
        if not self._reloader.is_meant(request):
            return self._reloader.outcome(meant=False)
        return await self._reloader.reload()

    def close(self) -> None:
        """Stop listening and remove the socket file."""
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)


def _bound(path: Path) -> socket.socket:
    """Return a socket at `path` that only this user can connect to from its first moment on."""
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(before)
    return sock


def _user(sock: socket.socket) -> int:
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[1])


class Reloadable:
    """A service that can be told at `path` to reload. It also runs if the socket cannot be opened."""

    def __init__(self, service: Service, path: Path, reloader: Reloader) -> None:
        self._service = service
        self._server = ReloadServer(path, reloader)

    def hubs(self) -> Iterable[Hub]:
        """Return the hubs of the service."""
        return self._service.hubs()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the service, then the socket. Raises as the service does."""
        self._service.open(loop)
        self._task = loop.create_task(self._open_socket())

    async def _open_socket(self) -> None:
        try:
            await self._server.open()
        except OSError as error:
            log.warning("cannot open the socket of `buscoupler reload`: %s; send SIGHUP instead", error)

    def close(self) -> None:
        """Close both."""
        self._server.close()
        self._service.close()
