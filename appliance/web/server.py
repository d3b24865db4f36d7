"""The listener of a status page, by asyncio's streams: bounded in connections, bytes and time."""

import asyncio
import contextlib
import sys
from asyncio import AbstractEventLoop, StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Final

from appliance.status.view import View
from appliance.web.acknowledging import acknowledged
from appliance.web.guard import Guard
from appliance.web.messages import POST, Request, Response
from appliance.web.stream import Stream
from bus.serving.streams import StreamListener
from bus.transports.chores import queues_of
from bus.transports.refusals import unavailable
from bus.transports.seats import Seat
from bus.transports.sockets import Acceptor

if TYPE_CHECKING:
    from ssl import SSLContext

    from appliance.web.exchange import Exchange
    from appliance.web.pages import Pages

CONNECTIONS: Final = 64
REQUEST_S: Final = 10.0
"""The time that a client may take to send a whole request, also the next one, and to take its answer."""
_READ_BYTES: Final = 4096
_REQUEST_COST_S: Final = 0.001
"""The processor time of an answer, about."""
_WAITING_BYTES: Final = 256 * 1024


class Server:
    """The HTTP server of one page. `counts` and `refused` are shown in the status."""

    def __init__(self, view: View, guard: Guard, security: "SSLContext | None" = None) -> None:
        self._view, self._guard = view, guard
        self._requests = 0
        self._stream: Stream | None = None
        self.refused = Counter[str]()
        self._listener = StreamListener(
            self._serve,
            lambda: CONNECTIONS,
            self._refuse,
            security,
            REQUEST_S,
            _READ_BYTES,
            answer=unavailable,
            silent_s=REQUEST_S,
        )

    def open(self, acceptor: Acceptor, loop: AbstractEventLoop, on_trouble: Callable[[OSError], None]) -> int:
        """Listen by an acceptor; return the port. Raises `OSError`. `on_trouble` is as of `Acceptor.open`."""
        port: int = self._listener.open(loop, acceptor, on_trouble)[1]
        self._stream = Stream(self._view, loop, self._on_slow)
        return port

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of connections, of open pages, and of requests so far."""
        viewers = 0 if self._stream is None else len(self._stream.viewers)
        return {"connections": len(self._listener), "viewers": viewers, "requests": self._requests}

    def _refuse(self, reason: str) -> None:
        self.refused[reason] += 1

    def _on_slow(self) -> None:
        self._refuse("slow reader")

    async def _serve(self, reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        writer.transport.set_write_buffer_limits(_WAITING_BYTES)
        try:
            with contextlib.suppress(OSError, TimeoutError):
                await self._talk(reader, writer, seat)
        finally:
            writer.close()
            asyncio.get_running_loop().call_later(REQUEST_S, writer.transport.abort)

    async def _talk(self, reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        """Answer one request after another."""
        if "appliance.web.exchange" not in sys.modules:
            await asyncio.to_thread(import_module, "appliance.web.exchange")
        from appliance.web.exchange import Exchange  # late: many gateways are never asked

        exchange = Exchange()
        found: Request | Response | None = None
        while True:
            async with asyncio.timeout(REQUEST_S):
                while found is None:
                    data = await reader.read(_READ_BYTES)
                    found = exchange.feed(data)
                    if not data and found is None:
                        return
            await queues_of(asyncio.get_running_loop()).chores.turn(seat.host, _REQUEST_COST_S)
            response = found if isinstance(found, Response) else await self._response(found)
            self._note(response, seat)
            is_head = not isinstance(found, Response) and found.method == "HEAD"
            if not await self._answer(exchange, response, is_head, reader, writer) or found is response:
                return
            found = exchange.turn()

    def _note(self, response: Response, seat: Seat) -> None:
        self._requests += 1
        if response.status >= 400 and response.status != HTTPStatus.SERVICE_UNAVAILABLE:  # that is an answer
            self._refuse(f"{response.status.value} {response.status.phrase.lower()}")
        else:
            seat.meet()

    async def _answer(
        self,
        exchange: "Exchange",
        response: Response,
        is_head: bool,
        reader: StreamReader,
        writer: StreamWriter,
    ) -> bool:
        """Send an answer. Return whether another request may follow."""
        writer.write(exchange.answer(response, is_head))
        if response.streams and not is_head:
            await self._watch(exchange, reader, writer)
            return False
        async with asyncio.timeout(REQUEST_S):
            await writer.drain()
        return not exchange.ended and not response.streams

    async def _response(self, request: Request) -> Response:
        refusal = self._guard.refusal(request)
        if refusal is None and request.method == POST:
            return acknowledged(self._view, request, self._guard.person(request))
        return refusal or await (await asyncio.to_thread(_pages, self._view)).answer(request)

    async def _watch(self, exchange: "Exchange", reader: StreamReader, writer: StreamWriter) -> None:
        """Send events to a page until it closes or sends anything."""
        assert self._stream is not None
        viewer = _Viewer(exchange, writer)
        self._stream.add(viewer)
        try:
            await reader.read(1)
        finally:
            self._stream.remove(viewer)

    def close(self) -> None:
        """Stop listening, and end all connections. Idempotent."""
        self._listener.close()
        if self._stream is not None:
            self._stream.close()


class _Viewer:
    """A page that is open, at the end of its connection."""

    def __init__(self, exchange: "Exchange", writer: StreamWriter) -> None:
        self._exchange, self._writer = exchange, writer

    @property
    def waiting_bytes(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def give(self, data: bytes) -> None:
        if not self._writer.transport.is_closing():
            self._writer.write(self._exchange.more(data))

    def close(self) -> None:
        self._writer.transport.abort()


def _pages(view: View) -> "Pages":
    """Return the answers of a page, in a thread: at the first request this loads and draws."""
    from appliance.web.pages import Pages  # late: many gateways are never asked

    view.prepare()
    return Pages(view)
