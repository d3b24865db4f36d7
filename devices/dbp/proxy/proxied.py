"""A proxied service: one of the far side, listed in the near catalog, with interfaces into the tunnel."""

import logging
import time
from asyncio import AbstractEventLoop, StreamReader, StreamWriter
from functools import partial

from bus.errors import words_of
from bus.serving.streams import StreamListener
from bus.transports.seats import Seat
from bus.transports.sockets import Acceptor
from devices.dbp.nodes.presence import INTERVAL_S, Presence
from devices.dbp.proxy.offers import Taken
from devices.dbp.proxy.tunnel import CLIENTS_MAX, Tunnel
from devices.dbp.proxy.wire import Target
from devices.dbp.zeromq.limits import Limits

log = logging.getLogger("buscoupler.proxy")


class ProxiedService:
    """A service of the far side. It listens on `host`, a port for each interface, and is in `catalog`."""

    def __init__(self, name: str, taken: Taken, tunnel: Tunnel, host: str, catalog: str) -> None:
        self.name, self.taken = name, taken
        self._tunnel, self._host = tunnel, host
        self._presence = Presence(name, catalog, INTERVAL_S, Limits())
        self._listeners: list[StreamListener] = []

    def open(self, loop: AbstractEventLoop) -> None:
        """Listen, and begin to register."""
        interfaces = {}
        for interface in self.taken.interfaces:
            try:
                port = self._listen(loop, Target(self.name, interface))
            except (OSError, UnicodeError) as error:
                return log.error("%s: cannot listen on %s: %s", self.name, self._host, words_of(error))
            interfaces[interface] = {"ip": self._host, "port": port}
        fields = {**self.taken.fields, "interfaces": interfaces, "reg_time": time.asctime()}
        return self._presence.open(fields, loop)

    def _listen(self, loop: AbstractEventLoop, target: Target) -> int:
        tunnel, serve = self._tunnel, partial(self._accepted, target)
        listener = StreamListener(serve, lambda: CLIENTS_MAX, tunnel.refuse, seats=tunnel.seats)
        port: int = listener.open(loop, Acceptor(0, (self._host, 0)), self._on_trouble)[1]
        self._listeners.append(listener)
        return port

    def _on_trouble(self, error: OSError) -> None:
        log.warning("%s: cannot accept: %s; will go on trying", self.name, words_of(error))

    async def _accepted(self, target: Target, reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        if self._tunnel.open(target, reader, writer):
            seat.meet()
        else:
            writer.close()

    async def close(self) -> None:
        """Leave the catalog, and stop listening. Streams end with their connections, or with the tunnel."""
        for listener in self._listeners:
            listener.shut()
        self._listeners.clear()
        await self._presence.leave()
