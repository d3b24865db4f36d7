"""The server of a process's status, and the service that runs with one."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from appliance.serve import Service
from appliance.status.places import is_listening, is_of_program, sweep
from appliance.status.snapshot import View, snapshot
from bus.hub import Hub

log = logging.getLogger("buscoupler")


class StatusServer:
    """A server that answers each connection to `path` with one snapshot of `view`, and closes it."""

    def __init__(self, path: Path, view: View) -> None:
        self.path, self._view = path, view
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen, even if a dead process left its socket file there. Raises `OSError`."""
        if is_listening(self.path):
            raise FileExistsError(f"{self.path}: another process listens there")
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._answer, self.path)
        os.chmod(self.path, 0o600)

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(json.dumps(snapshot(self._view)).encode() + b"\n")
            await writer.drain()
        writer.close()

    def close(self) -> None:
        """Stop listening and remove the socket file."""
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)


class Attended:
    """A service with a status socket at `path`. It also runs if the socket cannot be opened."""

    def __init__(self, service: Service, path: Path, view: View) -> None:
        self._service, self._path = service, path
        self._status = StatusServer(path, view)

    def hubs(self) -> Iterable[Hub]:
        """Return the hubs of the service."""
        return self._service.hubs()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the service, then its status. Raises as the service does."""
        self._service.open(loop)
        self._task = loop.create_task(self._open_status())

    async def _open_status(self) -> None:
        try:
            if is_of_program(self._path):
                sweep(self._path.parent.parent.name)
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await self._status.open()
        except OSError as error:
            text = "cannot open the status socket: %s; `buscoupler top` will not show this process"
            log.warning(text, error)

    def close(self) -> None:
        """Close both. A directory that is empty then goes too."""
        self._status.close()
        self._service.close()
        with contextlib.suppress(OSError):
            self._path.parent.rmdir()
