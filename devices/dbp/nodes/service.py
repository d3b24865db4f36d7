"""A service of DBP: it registers with a catalog, answers requests, and publishes."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

from bus.errors import LinkError
from bus.wire.batch import check_bytes
from devices.dbp import ports
from devices.dbp.monitor.mirror import Audience, Mirror
from devices.dbp.monitor.wire import WORD as MONITOR
from devices.dbp.monitor.wire import Grant
from devices.dbp.nodes import requests
from devices.dbp.nodes.calls import Calls, Handler, Reply
from devices.dbp.nodes.presence import INTERVAL_S, NodeError, Presence
from devices.dbp.nodes.registering import RegistrationState
from devices.dbp.nodes.requests import Request, refusal
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket


class Service:
    """A service of a program. Use it with `async with`: it registers, and retries until it is listed.

    `handlers` answer requests, by word. With `publishes` the service has a PUB socket. `catalog` is
    `tcp://HOST:PORT`; without it the service listens for the beacon of one. It listens on `host` at the first
    free port from `port` on, or any free one for 0; on "0.0.0.0", every interface, the catalog lists the
    address that the service connects from. `interval_s` is the offered interval of heartbeats. `fields` are
    registered beside `function` and `topics`. `mirrors` says which hosts may get copies of messages at its
    sockets, from `monitor_port` on (docs/dbp.md). Raises ValueError for a word that no request can have.
    """

    def __init__(
        self,
        name: str,
        handlers: Mapping[str, Handler] | None = None,
        *,
        catalog: str | None = None,
        host: str = "127.0.0.1",
        port: int = ports.BUS,
        function: str = "",
        topics: Sequence[str] = (),
        publishes: bool = False,
        interval_s: float = INTERVAL_S,
        limits: Limits | None = None,
        fields: Mapping[str, Any] | None = None,
        mirrors: Audience = "host",
        monitor_port: int = ports.MONITOR,
    ) -> None:
        self.name = name
        self.calls = Calls(name, handlers or {})
        self._host, self._port = host, port
        self._fields = {"function": function, "topics": list(topics), **(fields or {})}
        self._limits = limits = limits or Limits()
        self._router = Socket("router", self._on_requests, limits, name)
        self._pub = Socket("pub", lambda _: None, limits, name) if publishes else None
        self._presence = Presence(name, catalog, interval_s, limits)
        self._mirror = Mirror(name, self._sockets(), host, mirrors, monitor_port, limits)

    def _sockets(self) -> dict[str, Socket]:
        return {"router": self._router} | ({"pub": self._pub} if self._pub is not None else {})

    @property
    def state(self) -> RegistrationState:
        """The state of the registration with the catalog."""
        return self._presence.state

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the last denial."""
        return self._presence.reasons

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen, and begin to register. Raises `LinkError` if no port is free, with nothing left open."""
        self._loop = asyncio.get_running_loop()
        try:
            interfaces = {name: self._bind(one) for name, one in self._sockets().items()}
        except LinkError:
            await self.close()
            raise
        fields = {**self._fields, "interfaces": interfaces, "reg_time": time.asctime()}
        self._presence.open(fields, self._loop)

    def _bind(self, sock: Socket) -> dict[str, Any]:
        sock.open(self._loop)
        host, port, *_ = sock.bind_at(self._host, self._port, ports.TRIES if self._port else 1)
        return {"ip": host, "port": port}  # a catalog takes no names of hosts

    @property
    def urls(self) -> Sequence[str]:
        """The URLs of the ROUTER, and of the PUB socket if the service has one."""
        interfaces = self._presence.fields.get("interfaces", {})
        return [f"tcp://{one['ip']}:{one['port']}" for one in interfaces.values()]

    @property
    def dropped(self) -> Mapping[str, int]:
        """The counts of answers, publications and copies of messages that a peer did not get, by reason."""
        found = Counter[str]()
        for stats in (*(one.stats for one in self._sockets().values()), self._mirror.stats):
            found.update(stats.dropped)
        return found

    @property
    def fault(self) -> str:
        """The reason why the service is not listed now; "" if none is known, or it is."""
        return self._presence.fault

    async def changed(self) -> None:
        """Wait for the next event between the service and its catalog."""
        await self._presence.changed()

    async def listed(self) -> None:
        """Wait until the catalog lists the service. Raises `NodeError` with the reasons of a denial."""
        await self._presence.listed()

    async def update(self, **fields: Any) -> None:
        """Change registered fields. Raises `NodeError` with the reasons of a denial."""
        await self._presence.update(**fields)

    def publish(self, topic: str, data: bytes) -> bool:
        """Publish to the subscribers of a topic. Return False, and count it, if the queue of one was full.

        Raises `NodeError` for a service without `publishes` and for what is longer than a message of its
        `limits`, `TypeError` for data that are not bytes.
        """
        check_bytes(data)
        if self._pub is None:
            raise NodeError(f"{self.name} has no PUB socket: make it with publishes=True")
        frames = [topic.encode(), data]
        if not requests.fits(frames, self._limits):
            raise NodeError(f"the data are longer than the {self._limits.message_bytes} bytes of `limits`")
        return self._pub.send(frames)

    def _on_requests(self, messages: list[Message]) -> None:
        for (peer, *frames), host in messages:
            request = requests.parse(frames)
            if not isinstance(request, Request):
                self.calls.reject(request)
            elif request.word == MONITOR:
                self._reply(peer)(self._mirrored(request, host))
            else:
                self.calls.take(request, self._reply(peer))

    def _mirrored(self, request: Request, host: str) -> Request:
        """Return the answer to a request for a mirror."""
        granted = self._mirror.ask(request.data.decode(errors="replace"), host, self._loop)
        if isinstance(granted, Grant):
            return request._replace(body=(granted.pack(),))
        self.calls.reject(granted)
        return refusal(granted, request.binary_time)

    def _reply(self, peer: bytes) -> Reply:
        def reply(said: Request) -> bool:
            frames = requests.pack(said, time.time())
            fits = requests.fits(frames, self._limits)
            if fits:
                self._router.send([peer, *frames])
            return fits

        return reply

    async def close(self) -> None:
        """Leave the catalog, and close all sockets. Idempotent."""
        await self._presence.leave()
        self.calls.close()
        self._mirror.close()
        self._router.close()
        if self._pub is not None:
            self._pub.close()
