"""The connection of a client to one node, for requests: one at a time, each with its reply."""

import asyncio
from asyncio import Lock
from collections.abc import Sequence

from devices.dbp.nodes.listing import Address
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket


class Ended(Exception):
    """The connection has ended. `was_sent`: the request had been sent, and may have been done.

    `misfit`: what was wrong with the answer, so that we ended it; "" if the other side did.
    """

    def __init__(self, was_sent: bool, misfit: str = "") -> None:
        super().__init__()
        self.was_sent, self.misfit = was_sent, misfit


class Asker:
    """A DEALER that sends one request at a time. A request without a reply ends its connection.

    `users` is the number of requests without a reply. `fault` says why the last one found no peer. Once the
    connection has ended, another service may be at the address: with `once` it is not used again.
    """

    def __init__(self, address: Address, limits: Limits, once: bool = False) -> None:
        self.address, self._limits, self._once = address, limits, once
        self.users = 0
        self.fault = ""
        self.is_over = False
        self._lock = Lock()
        self._socket: Socket | None = None
        self._answer: asyncio.Future[list[bytes]] | None = None

    async def ask(self, frames: Sequence[bytes], timeout_s: float) -> list[bytes]:
        """Send a request, and return the frames of its reply.

        Raises `TimeoutError` after `timeout_s`, and `Ended`.
        """
        self.users += 1
        try:
            async with asyncio.timeout(timeout_s), self._lock:
                if self.is_over:
                    raise Ended(was_sent=False)
                return await self._ask(frames)
        finally:
            self.users -= 1

    async def _ask(self, frames: Sequence[bytes]) -> list[bytes]:
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._connected().send(frames)
            return await self._answer
        except asyncio.CancelledError:
            self.fault = self._socket.fault if self._socket is not None else ""
            self.close()  # its late reply must not answer the next question
            raise
        finally:
            self._answer = None

    def _connected(self) -> Socket:
        if self._socket is None:
            self._socket = Socket("dealer", self._on_messages, self._limits, lost=self._on_lost)
            self._socket.open(asyncio.get_running_loop())
            self._socket.connect(*self.address)
        return self._socket

    def _on_messages(self, messages: list[Message]) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(messages[0].frames)

    def _on_lost(self, _: bytes) -> None:
        self.is_over = self._once
        if self._answer is not None and not self._answer.done():
            misfit = self._socket.misfit if self._socket is not None else ""
            self._answer.set_exception(Ended(was_sent=True, misfit=misfit))
        self.close()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()
