"""A proxied service: one of the far side, listed in the near catalog, with interfaces into the tunnel."""

import logging
import time
from asyncio import AbstractEventLoop, StreamWriter
from functools import partial
from typing import Any

from bus.errors import LinkError, words_of
from bus.serving.lasting import LastingReader
from bus.serving.streams import StreamListener
from bus.transports.binding import Binding, SocketPlace
from bus.transports.seats import Seat
from bus.transports.sockets import Acceptor
from devices.dbp.nodes.presence import INTERVAL_S, Presence
from devices.dbp.nodes.registering import RegistrationState
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
        self._interfaces: dict[str, dict[str, Any]] = {}
        self.bindings: list[Binding[Any]] = []

    @property
    def is_listed(self) -> bool:
        """Whether the near catalog lists the service."""
        return self._presence.state is RegistrationState.LISTED

    @property
    def denial(self) -> str:
        """The reasons for which the near catalog does not list the service; "" if it told none."""
        return "; ".join(self._presence.reasons)

    def open(self, loop: AbstractEventLoop) -> None:
        """Listen, as soon as the address is there, and then begin to register."""
        self._loop = loop
        for interface in self.taken.interfaces:
            try:
                self._listen(interface)
            except LinkError as error:
                return log.error("%s: %s", self.name, error)
        return None

    def _listen(self, interface: str) -> None:
        tunnel, serve = self._tunnel, partial(self._accepted, Target(self.name, interface))
        listener = StreamListener(serve, lambda: CLIENTS_MAX, tunnel.refuse, seats=tunnel.seats)
        self._listeners.append(listener)

        def bind(place: SocketPlace) -> Any:
            return listener.open(self._loop, Acceptor(*place), self._on_trouble)

        url, host = f"tcp://{self._host}:0 ({self.name})", "" if self._host == "*" else self._host
        binding = Binding[Any](url, (0, (host, 0)), bind, partial(self._listens, interface))
        self.bindings.append(binding)
        binding.open(self._loop)

    def _listens(self, interface: str, bound: Any) -> None:
        self._interfaces[interface] = {"ip": bound[0], "port": bound[1]}  # a catalog takes no names
        if self._interfaces.keys() >= set(self.taken.interfaces):
            interfaces = {name: self._interfaces[name] for name in self.taken.interfaces}
            fields = {**self.taken.fields, "interfaces": interfaces, "reg_time": time.asctime()}
            self._presence.open(fields, self._loop)

    def _on_trouble(self, error: OSError) -> None:
        log.warning("%s: cannot accept: %s; will go on trying", self.name, words_of(error))

    async def _accepted(
        self, target: Target, reader: LastingReader, writer: StreamWriter, seat: Seat
    ) -> None:
        if self._tunnel.open(target, reader, writer):
            seat.meet()
            await reader.ended()
        else:
            writer.close()

    async def close(self) -> None:
        """Leave the catalog, and stop listening. Streams end with their connections, or with the tunnel."""
        for binding in self.bindings:
            binding.close()
        for listener in self._listeners:
            listener.shut()
        self._listeners.clear()
        await self._presence.leave()
