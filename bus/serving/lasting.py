"""Streams of asyncio that are read to their end, although a write to them has failed first.

When a transport of asyncio cannot write, it closes its connection, and a `StreamReader` whose connection was
lost raises at once: what the peer sent before it went would be lost, in the reader and in the kernel. Over
TLS only what lies in the kernel is.
"""

import asyncio
import os
import socket
from asyncio import (
    AbstractEventLoop,
    BaseTransport,
    ReadTransport,
    StreamReader,
    StreamReaderProtocol,
    StreamWriter,
)
from contextlib import suppress
from typing import Any, Final, cast

from bus.transports.parting import hang_up
from bus.transports.sockets import connect_by_name

READ_BYTES: Final = 1 << 16


class LastingReader(StreamReader):
    """A reader that gives what came before the connection was lost, and then its end.

    `exception()` says why it was lost. Call `let_go` when nothing is read any more.
    """

    def __init__(self, limit_bytes: int, loop: AbstractEventLoop) -> None:
        super().__init__(limit_bytes, loop)
        self._source = _Source(self, loop)
        self._lost: Exception | None = None
        self._ended = asyncio.Event()

    def set_transport(self, transport: BaseTransport) -> None:
        self._source.transport_is(cast(ReadTransport, transport))
        super().set_transport(self._source)

    def exception(self) -> Exception | None:
        return self._lost

    def set_exception(self, exc: Exception) -> None:
        """Note why the connection was lost. The end comes behind what the peer sent before."""
        self._lost = exc
        if not self._source.go_on():
            self.feed_eof()

    def feed_data(self, data: Any) -> None:
        if not self._ended.is_set():  # else it was let go
            super().feed_data(data)

    def feed_eof(self) -> None:
        self._ended.set()
        super().feed_eof()

    async def ended(self) -> None:
        """Wait until nothing more comes."""
        await self._ended.wait()

    def let_go(self) -> None:
        """Drop what has not come yet. Idempotent."""
        self._source.close()
        self.feed_eof()


class _Source(ReadTransport):
    """The source of a reader's bytes: its transport, and the socket of that once it is lost."""

    _transport: ReadTransport

    def __init__(self, reader: LastingReader, loop: AbstractEventLoop) -> None:
        super().__init__()
        self._reader, self._loop = reader, loop
        self._is_paused = False
        self._rest = -1  # the descriptor from which the rest is read

    def transport_is(self, transport: ReadTransport) -> None:
        """Take the transport, which has connected."""
        self._transport = transport

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._rest < 0:
            self._transport.pause_reading()
        else:
            self._loop.remove_reader(self._rest)

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._rest < 0:
            self._transport.resume_reading()
        else:
            self._loop.add_reader(self._rest, self._on_readable)

    def go_on(self) -> bool:
        """Read the rest from the socket, which the transport closes next. Return False if there is no way."""
        sock = self._transport.get_extra_info("socket")
        if sock is None or self._transport.get_extra_info("sslcontext") is not None:
            return False
        with suppress(OSError):
            self._rest = os.dup(sock.fileno())
        if self._rest >= 0 and not self._is_paused:
            self._loop.add_reader(self._rest, self._on_readable)
        return self._rest >= 0

    def _on_readable(self) -> None:
        try:
            data = os.read(self._rest, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._reader.feed_data(data)
        else:
            self._reader.let_go()

    def close(self) -> None:
        """Close the socket from which the rest is read. Idempotent."""
        if self._rest >= 0:
            self._loop.remove_reader(self._rest)
            os.close(self._rest)
            self._rest = -1


class LastingProtocol(StreamReaderProtocol):
    """The protocol of a lasting reader. Where much lies unread at the end, the peer sees no reset."""

    def __init__(self, reader: LastingReader, loop: AbstractEventLoop) -> None:
        super().__init__(reader, loop=loop)
        self._carrier: BaseTransport | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        self._carrier = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        sock = None if self._carrier is None else self._carrier.get_extra_info("socket")
        if exc is None and sock is not None:  # over TLS it may have gone already
            with suppress(OSError):
                hang_up(socket.socket(fileno=os.dup(sock.fileno())))
        self._carrier = None


class LastingWriter(StreamWriter):
    """A writer that may be closed after its peer has said goodbye over TLS.

    That marks asyncio's transport as closed, and to close it again takes its protocol from it: then it can
    neither be aborted nor asked for its socket, and whoever tries that raises.
    """

    def close(self) -> None:
        if not self.is_closing():
            super().close()


async def open_stream(
    *place: Any, limit_bytes: int = READ_BYTES, **options: Any
) -> tuple[LastingReader, StreamWriter]:
    """Connect to a `place`: host, port and maybe a turn, as `connect_by_name` has them; or use the `sock` of
    the `options`, which are those of `asyncio.open_connection`. Raises `OSError`, and `UnicodeError` for what
    can be no name."""
    loop = asyncio.get_running_loop()
    if place:
        options["sock"], _ = await connect_by_name(loop, *place)
    reader = LastingReader(limit_bytes, loop)
    protocol = LastingProtocol(reader, loop)
    transport, _ = await loop.create_connection(lambda: protocol, **options)
    return reader, LastingWriter(transport, protocol, reader, loop)
