"""A tunnel: one connection between two proxies, and the streams that it carries."""

import asyncio
import logging
from asyncio import IncompleteReadError, Queue, StreamReader, StreamWriter, Task
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from bus.errors import words_of
from bus.serving.lasting import LastingReader, open_stream
from bus.transports.seats import Seats, dials
from devices.dbp.nodes.listing import Address
from devices.dbp.proxy import wire
from devices.dbp.proxy.wire import DATA_BYTES, HEAD, WINDOW_BYTES, Head, Hello, Target

log = logging.getLogger("buscoupler.proxy")

STREAMS_MAX: Final = 256
"""The streams that each side may have opened."""
CLIENTS_MAX: Final = STREAMS_MAX - 16
"""The connections of this side, so that those that make room for others have time to end."""
HELLO_S: Final = 5.0
PING_S: Final = 5.0
SILENT_S: Final = 15.0
CONNECT_S: Final = 5.0
NUMBERS: Final = 1 << 32
"""The numbers of streams on the wire. After its last one, a side begins anew with those that are free."""
WAITING_BYTES: Final = 4 << 20
"""The bytes that may wait for the other side: all openings, the longest offer, and data."""
_REASONS: Final = ("not offered", "streams full", "cannot connect")


class Near(Protocol):
    """The near side of a tunnel, as the tunnel sees it."""

    def met(self, tunnel: "Tunnel", hello: Hello) -> str:
        """Accept the other proxy and return "", or return why not."""

    def offered(self, tunnel: "Tunnel", services: dict[str, dict[str, Any]]) -> None:
        """Take the current offers of the other side."""

    def address_of(self, target: Target) -> Address | None:
        """Return the address for a stream of the other side; None if its target is not offered."""


class _Stream:
    """A stream: a TCP connection on this side, joined to one on the other side."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.credit = WINDOW_BYTES
        self.has_credit = asyncio.Event()
        self.has_credit.set()
        self.incoming: Queue[bytes | None] = Queue()
        self.owed = 0  # bytes received for which no credit was given back

    def spend(self, size: int) -> None:
        """Use credit for `size` bytes that are sent."""
        self.credit -= size
        if self.credit <= 0:
            self.has_credit.clear()

    def earn(self, size: int) -> None:
        """Add the credit that the other side gives."""
        self.credit += size
        self.has_credit.set()

    def rest(self) -> list[bytes]:
        """Return the bytes that have come and are not written, because the tunnel ends."""
        waiting = [self.incoming.get_nowait() for _ in range(self.incoming.qsize())]
        return [data for data in waiting if data is not None]

    def end(self) -> None:
        """Write the bytes that have come, and read nothing more."""
        self.incoming.put_nowait(None)
        self.has_credit.set()


class Tunnel:
    """A tunnel over a connection, which `run` serves until it ends. `dialled` says that this side made it.

    `counts` has the numbers of streams and bytes, and `refused` those of refused streams by reason: both go
    on for a moment when the tunnel has ended, while what came is written. Clients of this side share `seats`.
    """

    def __init__(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        dialled: bool,
        hello: Hello,
        near: Near,
        counts: Counter[str] | None = None,
        refused: Counter[str] | None = None,
    ) -> None:
        self.far = Hello("", "")
        self.counts = Counter() if counts is None else counts
        self.refused = Counter() if refused is None else refused
        self.seats = Seats()
        self._reader, self._writer, self._near, self._hello = reader, writer, near, hello
        self._next = 1 if dialled else 2
        self._streams: dict[int, _Stream] = {}
        self._sending = asyncio.Lock()
        self._tasks: set[Task[None]] = set()
        self._dialling: dict[_Stream, Task[None]] = {}
        self._closed = False
        self._heard = False  # since the last ping
        self._fault = ""

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    async def run(self) -> str:
        """Serve the connection until it ends. Return why it ended."""
        self._loop = asyncio.get_running_loop()
        self._writer.write(wire.pack_hello(self._hello))
        try:
            async with asyncio.timeout(HELLO_S):
                fault = await self._greeted()
            return fault or await self._serve()
        except TimeoutError:
            return f"no hello within {HELLO_S:g} s"
        except IncompleteReadError:
            lost = self._reader.exception()
            closed = "the other side closed the connection"
            return self._fault or (words_of(lost) if isinstance(lost, OSError) else closed)
        except OSError as error:
            return self._fault or words_of(error)
        finally:
            self.close()

    async def _greeted(self) -> str:
        head, body = await self._frame()
        if head is None or head.kind != wire.HELLO:
            return "its first frame is no hello"
        hello = wire.read_hello(body)
        if isinstance(hello, str):
            return hello
        self.far = hello
        return self._near.met(self, hello)

    async def _frame(self) -> tuple[Head | None, bytes]:
        head = wire.read_head(await self._reader.readexactly(HEAD.size))
        body = await self._reader.readexactly(head.size) if head is not None and head.size else b""
        self._heard = True
        return head, body

    async def _serve(self) -> str:
        self._begin(self._keep_alive())
        while True:
            head, body = await self._frame()
            fault = "a malformed frame" if head is None else self._take(head, body) or self._fault
            if fault:
                return fault

    def _take(self, head: Head, body: bytes) -> str:
        """Handle a frame. Return its fault if that ends the connection, or ""."""
        stream = self._streams.get(head.stream)
        match head.kind:
            case wire.OFFER:
                return self._offered(body)
            case wire.OPEN:
                return self._opened(head.stream, body)
            case wire.DATA if stream is not None and body:
                return self._came(stream, body)
            case wire.DATA:
                self._drop(body)  # the other side has not heard yet that the stream has ended
            case wire.CREDIT if stream is not None:
                stream.earn(wire.read_credit(body))
            case wire.CLOSE if stream is not None:
                self._ended(stream, body.decode(errors="replace"))
            case wire.PING:
                self._write(wire.pack(wire.PONG))
            case wire.HELLO:
                return "a second hello"
        return ""

    def _offered(self, body: bytes) -> str:
        services = wire.read_offer(body)
        if services is None:
            return "a malformed offer"
        self._near.offered(self, services)
        return ""

    def offer(self, services: dict[str, dict[str, Any]]) -> bool:
        """Send the current offers to the other side. Return False if they are too long for a frame."""
        frame = wire.pack_offer(services)
        if frame is not None:
            self._write(frame)
        return frame is not None

    # streams

    def open(self, target: Target, reader: LastingReader, writer: StreamWriter) -> bool:
        """Open a stream from a connection on this side to a target on the other. Return False if full."""
        if self._opened_by(self._next) >= STREAMS_MAX:
            self.refuse("streams full")
            return False
        number = self._number()
        stream = self._streams[number] = _Stream(number)
        self.counts["opened"] += 1
        self._write(wire.pack_open(stream.number, target))
        self._join(stream, reader, writer)
        return True

    def _number(self) -> int:
        """Return the next number for a stream of this side."""
        while True:
            number = self._next
            self._next = number + 2 if number + 2 < NUMBERS else 2 - number % 2
            if number not in self._streams:
                return number

    def refuse(self, reason: str) -> None:
        """Count a refused connection."""
        self.refused[reason] += 1

    def _write(self, frame: bytes) -> None:
        """Queue a frame, or end the connection: the other side may ask without end and read no answer."""
        transport = self._writer.transport
        if self._fault or self._closed:
            return
        if transport.get_write_buffer_size() + len(frame) <= WAITING_BYTES:
            self._writer.write(frame)
        else:
            self._fault = "the other side reads too slowly"
            self.refuse("slow reader")
            transport.abort()

    def _opened_by(self, number: int) -> int:
        """Return how many streams the side has opened that numbers them as `number`."""
        return sum(stream % 2 == number % 2 for stream in self._streams)

    def _opened(self, number: int, body: bytes) -> str:
        target = wire.read_open(body)
        if target is None or number % 2 == self._next % 2 or number in self._streams:
            return "a malformed opening of a stream"
        address = self._near.address_of(target)
        if address is None or self._opened_by(number) >= dials(STREAMS_MAX):
            reason = "not offered" if address is None else "streams full"
            self.refused[reason] += 1
            self._write(wire.pack_close(number, reason))
            return ""
        stream = self._streams[number] = _Stream(number)
        self.counts["opened"] += 1
        self._dialling[stream] = self._begin(self._connect(stream, address))
        return ""

    async def _connect(self, stream: _Stream, address: Address) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await open_stream(*address)
        except (OSError, TimeoutError, UnicodeError):  # the last for names that no resolver takes
            self.refused["cannot connect"] += 1
            self._drop(*stream.rest())
            return self._end(stream, "cannot connect")
        finally:
            del self._dialling[stream]
        if not self._closed:
            return self._join(stream, reader, writer)
        reader.let_go()
        writer.writelines(stream.rest())
        return writer.close()

    def _drop(self, *data: bytes) -> None:
        """Count bytes of the other side for which there is no connection."""
        self.counts["bytes_dropped"] += sum(map(len, data))

    def _join(self, stream: _Stream, reader: LastingReader, writer: StreamWriter) -> None:
        self._begin(self._pump_out(stream, reader))
        self._begin(self._pump_in(stream, writer))

    async def _pump_out(self, stream: _Stream, reader: LastingReader) -> None:
        """Send the bytes of this side's connection to the other side, as far as credit allows."""
        try:
            with suppress(OSError):
                while data := await self._read(stream, reader):
                    stream.spend(len(data))
                    self.counts["bytes_out"] += len(data)
                    await self._send(wire.pack(wire.DATA, stream.number, data))
        finally:
            reader.let_go()
        self._end(stream, "")

    async def _read(self, stream: _Stream, reader: LastingReader) -> bytes:
        await stream.has_credit.wait()
        return await reader.read(min(stream.credit, DATA_BYTES))

    async def _pump_in(self, stream: _Stream, writer: StreamWriter) -> None:
        """Write the bytes of the other side to this side's connection, and give credit for them.

        What comes for a connection that is lost is dropped: it ends once all is sent that it brought.
        """
        try:
            while (data := await stream.incoming.get()) is not None:
                if writer.is_closing():
                    self._drop(data)
                else:
                    with suppress(OSError):
                        writer.write(data)
                        await writer.drain()
                stream.owed -= len(data)
                if self._streams.get(stream.number) is stream:
                    self._write(wire.pack_credit(stream.number, len(data)))
        finally:
            if writer.is_closing():
                self._drop(*stream.rest())
            else:
                writer.writelines(stream.rest())
            writer.close()
        self._end(stream, "")

    async def _send(self, frame: bytes) -> None:
        async with self._sending:
            self._write(frame)
            await self._writer.drain()

    def _came(self, stream: _Stream, data: bytes) -> str:
        stream.owed += len(data)
        if stream.owed > WINDOW_BYTES:
            return "more data than there was credit for"
        self.counts["bytes_in"] += len(data)
        stream.incoming.put_nowait(data)
        return ""

    def _ended(self, stream: _Stream, reason: str) -> None:
        """End a stream that the other side has ended. Bytes that have come are written first."""
        if reason:
            self.refused[reason if reason in _REASONS else "refused there"] += 1
        del self._streams[stream.number]
        stream.end()

    def _end(self, stream: _Stream, reason: str) -> None:
        """End a stream from this side. Idempotent."""
        if self._streams.get(stream.number) is stream:
            del self._streams[stream.number]
            self._write(wire.pack_close(stream.number, reason))
        stream.end()

    # life

    async def _keep_alive(self) -> None:
        silent_s = 0.0  # by pings, not by the clock: where this process had no turn, nobody could be heard
        while silent_s < SILENT_S:
            self._heard = False
            self._write(wire.pack(wire.PING))
            await asyncio.sleep(PING_S)
            silent_s = 0.0 if self._heard else silent_s + PING_S
        log.warning("proxy: nothing heard from %s for %g s", self.far.name, SILENT_S)
        self._writer.transport.abort()

    def _begin(self, work: Coroutine[Any, Any, None]) -> Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        """End the connection and all streams. Idempotent.

        Where a stream waits for its connection here, what came for it is written when that is made.
        """
        self._closed = True
        self._streams.clear()
        going = {task for stream, task in self._dialling.items() if not stream.incoming.empty()}
        for task in self._tasks - going:
            task.cancel()
        if not self._writer.is_closing():  # after a second close() of TLS, abort() would do nothing (3.11)
            self._writer.close()
