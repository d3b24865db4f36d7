"""A service of DBP: it registers with a catalog, answers requests, and publishes."""

import asyncio
import time
from asyncio import TimerHandle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Self

from bus.errors import BusError
from devices import ports
from devices.catalog.wire import Heard
from devices.nodes import requests
from devices.nodes.calls import Calls, Handler, Reply
from devices.nodes.line import Line
from devices.nodes.registering import Registration, Standing, Step
from devices.nodes.requests import Request
from devices.zeromq.limits import Limits
from devices.zeromq.sockets import Message, Socket

INTERVAL_S: Final = 1.0
_DRAIN_S: Final = 1.0  # for the last command


class NodeError(BusError):
    """A node could not do what was asked; the text says why."""


class Service:
    """A service. Use it with `async with`: it registers, and goes on trying until it is listed.

    `handlers` answer requests, by word; with `publishes` it has a PUB socket. `catalog` is `tcp://HOST:PORT`;
    without it the service searches for a beacon. It listens on `host`, from `port` on the first that is free;
    "0.0.0.0" is every interface, and the catalog then lists the address that the service speaks from.
    `interval_s` is that of its heartbeats. `fields` are registered beside all this.
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
    ) -> None:
        self.name = name
        self.calls = Calls(name, handlers or {})
        self._host, self._port, self._interval_s = host, port, interval_s
        self._fields = {"function": function, "topics": list(topics), **(fields or {})}
        limits = limits or Limits()
        self._router = Socket("router", self._on_requests, limits, name)
        self._pub = Socket("pub", lambda _: None, limits, name) if publishes else None
        self._line = Line(catalog, self._on_heard, self._on_datagram, _quick(limits, interval_s))
        self._registration = Registration(name, self._fields, interval_s)
        self._timer: TimerHandle | None = None
        self._changed = asyncio.Event()
        self._updates: list[asyncio.Future[tuple[str, ...]]] = []

    @property
    def standing(self) -> Standing:
        """How it stands with its catalog."""
        return self._registration.standing

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the last denial."""
        return self._registration.reasons

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen, and begin to register. Raises `LinkError` if no port is free."""
        self._loop = asyncio.get_running_loop()
        interfaces = {"router": self._bind(self._router)}
        if self._pub is not None:
            interfaces["pub"] = self._bind(self._pub)
        fields = {**self._fields, "interfaces": interfaces, "reg_time": time.asctime()}
        self._registration = Registration(self.name, fields, self._interval_s)
        self._do(self._registration.open(self._loop.time()))
        self._tick()

    def _bind(self, sock: Socket) -> dict[str, Any]:
        sock.open(self._loop)
        port = sock.bind(self._host, self._port, ports.TRIES if self._port else 1)
        return {"ip": self._host if self._host not in ("", "*") else "0.0.0.0", "port": port}

    @property
    def urls(self) -> Sequence[str]:
        """Where it listens: its ROUTER, and its PUB socket if it has one."""
        interfaces = self._registration.fields.get("interfaces", {})
        return [f"tcp://{one['ip']}:{one['port']}" for one in interfaces.values()]

    async def changed(self) -> None:
        """Wait until something has happened between it and its catalog."""
        self._changed.clear()
        await self._changed.wait()

    async def listed(self) -> None:
        """Wait until the catalog lists it. Raises `NodeError` with the reasons if it is denied."""
        while self.standing is not Standing.LISTED:
            if self.standing is Standing.DENIED:
                raise NodeError(f"{self.name} was denied: {'; '.join(self.reasons)}")
            await self.changed()

    async def update(self, **fields: Any) -> None:
        """Change registered fields. Raises `NodeError` with the reasons if that is denied."""
        answer: asyncio.Future[tuple[str, ...]] = self._loop.create_future()
        self._updates.append(answer)
        self._do(self._registration.update(fields, self._loop.time()))
        reasons = await answer
        if reasons:
            raise NodeError(f"{self.name}: the update was denied: {'; '.join(reasons)}")

    def publish(self, topic: str, data: bytes) -> bool:
        """Publish to who has subscribed to the topic. Return False, and count it, if a queue was full.

        Raises `NodeError` for a service without `publishes`.
        """
        if self._pub is None:
            raise NodeError(f"{self.name} has no PUB socket: make it with publishes=True")
        return self._pub.send([topic.encode(), data])

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._registration.interval_s / 8, self._tick)
        self._do(self._registration.tick(self._loop.time()))

    def _on_heard(self, heard: Heard) -> None:
        self._do(self._registration.heard(heard, self._loop.time()))

    def _on_datagram(self, heard: Heard) -> None:
        self._do(self._registration.datagram(heard, self._loop.time()))

    def _do(self, step: Step) -> None:
        if step.renew:
            self._line.renew(self._loop)
            self._fail_updates()
        for command in step.say:
            self._line.say(command)
        if step.beat:
            self._line.beat(self.name)
        if step.answer is not None and self._updates:
            answer = self._updates.pop(0)
            if not answer.done():
                answer.set_result(step.answer)
        self._changed.set()

    def _fail_updates(self) -> None:
        """Answer the updates that were under way when a connection ended: the next registration has them."""
        for answer in self._updates:
            if not answer.done():
                answer.set_result(())
        self._updates.clear()

    def _on_requests(self, messages: list[Message]) -> None:
        for (peer, *frames), _ in messages:
            request = requests.parse(frames)
            if isinstance(request, Request):
                self.calls.take(request, self._reply(peer))
            else:
                self.calls.reject(request)

    def _reply(self, peer: bytes) -> Reply:
        return lambda said: self._router.send([peer, *requests.pack(said, time.time())])

    async def close(self) -> None:
        """Leave the catalog, and end. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._do(self._registration.close())
            with suppress(asyncio.CancelledError):
                await self._line.drain(_DRAIN_S)
        self.calls.close()
        self._line.close()
        self._router.close()
        if self._pub is not None:
            self._pub.close()


def _quick(limits: Limits, interval_s: float) -> Limits:
    """Return limits with which a catalog that comes back is met within an interval."""
    pause_s = max(0.01, min(limits.retry_max_s, interval_s / 2))
    return replace(limits, retry_min_s=min(limits.retry_min_s, pause_s), retry_max_s=pause_s)
