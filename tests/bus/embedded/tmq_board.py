"""A board that is a client of TMQ brokers: the node on CPython, polled by a task."""

import asyncio
from types import ModuleType, TracebackType
from typing import Any, Self

from bus.embedded import buscoupler_tmq
from bus.tmq.broker import Broker
from tests.helpers.ports import free_port
from tests.helpers.tmq import Address

Message = tuple[tuple[int, ...], bytes]


def named(broker: Broker | Address) -> str:
    host, port = broker.addresses[0] if isinstance(broker, Broker) else broker
    return f"{host}:{port}"


class Board:
    """A node that is polled until the end, and whose seconds are short. An error of `poll` fails the test."""

    def __init__(
        self, *brokers: Broker | Address, module: ModuleType | Any = buscoupler_tmq, **options: Any
    ) -> None:
        options = {"timeout_s": 5, **options}
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)
        self.link = module.Tmq(list(map(named, brokers)), *self.address, **options)
        self.node = module.TmqNode(self.link)
        self.heard: list[Message] = []

    def subscribe(self, *pattern: int) -> None:
        self.node.subscribe(pattern, lambda tokens, data: self.heard.append((tokens, data)))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def _run(self) -> None:
        while True:
            self.link.second_ms -= 20
            self.node.poll()
            await asyncio.sleep(0.0005)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.link.close()
        if not self._task.cancelled():
            self._task.result()
