"""A proxied service: one of the far side, listed in the near catalog, with interfaces into the tunnel."""

import asyncio
import logging
import socket
import time
from asyncio import AbstractEventLoop, Server, StreamReader, StreamWriter, Task
from functools import partial

from bus.errors import LinkError
from bus.transports.binding import Binding, when_bound
from devices.dbp.nodes.presence import INTERVAL_S, Presence
from devices.dbp.proxy.offers import Taken
from devices.dbp.proxy.tunnel import Tunnel
from devices.dbp.proxy.wire import Target
from devices.dbp.zeromq.limits import Limits

log = logging.getLogger("buscoupler.proxy")


class ProxiedService:
    """A service of the far side. It listens on `host`, a port for each interface, and is in `catalog`."""

    def __init__(self, name: str, taken: Taken, tunnel: Tunnel, host: str, catalog: str) -> None:
        self.name, self.taken = name, taken
        self._tunnel, self._host = tunnel, host
        self._presence = Presence(name, catalog, INTERVAL_S, Limits())
        self._servers: list[Server] = []
        self._task: Task[None] | None = None
        self.bindings: list[Binding[socket.socket]] = []

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to listen, then to register."""
        self._task = loop.create_task(self._open(loop))

    async def _open(self, loop: AbstractEventLoop) -> None:
        interfaces = {}
        for interface in self.taken.interfaces:
            serve = partial(self._accepted, Target(self.name, interface))
            url = f"tcp://{self._host}:0 for {self.name} {interface}"
            host = "" if self._host == "*" else self._host
            try:
                sock = await when_bound(url, (0, (host, 0)), self.bindings.append)
            except LinkError as error:
                return log.error("%s: %s", self.name, error)
            server = await asyncio.start_server(serve, sock=sock)
            self._servers.append(server)
            interfaces[interface] = {"ip": self._host, "port": server.sockets[0].getsockname()[1]}
        fields = {**self.taken.fields, "interfaces": interfaces, "reg_time": time.asctime()}
        return self._presence.open(fields, loop)

    async def _accepted(self, target: Target, reader: StreamReader, writer: StreamWriter) -> None:
        if not self._tunnel.open(target, reader, writer):
            writer.close()

    async def close(self) -> None:
        """Leave the catalog, and stop listening. Streams end with their connections, or with the tunnel."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for binding in self.bindings:
            binding.close()
        for server in self._servers:
            server.close()
        self._servers.clear()
        await self._presence.leave()
