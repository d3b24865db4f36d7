"""Dials a ZeroMQ socket, and redials it."""

import asyncio
import random
import socket
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable

from bus.backoff import Backoff
from bus.errors import words_of
from bus.serving.connection import Connection
from bus.transports.sockets import connect_by_name
from devices.dbp.zeromq.limits import Limits


class Dialer:
    """Keeps one connection to `host` and `port` up. `fault` says why there is none, or "".

    A name is looked up for each attempt. `made(sock, name)` returns the connection over a connected socket.
    """

    def __init__(
        self, host: str, port: int, limits: Limits, made: Callable[[socket.socket, str], Connection]
    ) -> None:
        self.fault = ""
        self._host, self._port, self._limits, self._made = host, port, limits, made
        self._backoff = Backoff(limits.retry_min_s, limits.retry_max_s, random.uniform)
        self._task: Task[None] | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to dial."""
        self._loop = loop
        self._task = loop.create_task(self._run())

    def close(self) -> None:
        """Stop dialling. A connection that is up stays. Idempotent."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            try:
                self.fault = await self._once()
            except (OSError, UnicodeError) as error:  # a name can be none
                self.fault = words_of(error) if isinstance(error, OSError) else "no such name"
            await asyncio.sleep(self._backoff.next_s())

    async def _once(self) -> str:
        """Connect, and wait for the connection's end. Return why it ended. Raises `OSError`."""
        async with asyncio.timeout(self._limits.handshake_s):
            sock, address = await connect_by_name(self._loop, self._host, self._port)
        connection = self._made(sock, "{}:{}".format(*address))
        gone = asyncio.Event()
        connection.on_lost(lambda _: gone.set())
        timer = self._loop.call_later(self._limits.handshake_s, self._judge, connection)
        try:
            await gone.wait()
        finally:
            timer.cancel()
        if connection.greeted:
            self._backoff.reset()
        return connection.fault

    def _judge(self, connection: Connection) -> None:
        if not connection.greeted:
            connection.close("no handshake")
