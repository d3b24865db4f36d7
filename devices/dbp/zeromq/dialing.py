"""Dials a ZeroMQ socket, and redials it."""

import asyncio
import random
import socket
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable
from typing import Any

from bus.backoff import Attempts
from bus.errors import words_of
from bus.serving.connection import Connection
from bus.transports.redialling import Redialling
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
        self._attempts = Attempts(limits.retry_min_s, limits.retry_max_s, random.uniform)
        self._task: Task[None] | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to dial."""
        self._loop = loop
        redialling = Redialling(self._connect, self._serve, self._failed, self._attempts.after)
        self._task = loop.create_task(redialling.run())

    def close(self) -> None:
        """Stop dialling. A connection that is up stays. Idempotent."""
        if self._task is not None:
            self._task.cancel()

    def _failed(self, error: OSError | UnicodeError) -> None:
        self.fault = words_of(error)

    async def _connect(self) -> tuple[socket.socket, Any]:
        turn, limit_s = self._attempts.turn, self._limits.handshake_s
        return await connect_by_name(self._loop, self._host, self._port, turn, limit_s=limit_s)

    async def _serve(self, made: tuple[socket.socket, Any]) -> bool:
        """Wait for the connection's end, and note why it ended. Return whether the other side greeted."""
        sock, address = made
        connection = self._made(sock, "{}:{}".format(*address))
        gone = asyncio.Event()
        connection.on_lost(lambda _: gone.set())
        timer = self._loop.call_later(self._limits.handshake_s, self._judge, connection)
        try:
            await gone.wait()
        finally:
            timer.cancel()
        self.fault = connection.fault
        return connection.greeted

    def _judge(self, connection: Connection) -> None:
        if not connection.greeted:
            connection.close("no handshake")
