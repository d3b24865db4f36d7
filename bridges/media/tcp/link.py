"""A link over plain TCP, for what is not SP: TMQ frames back to back, or COBS as behind a serial server.

Links, pipes, bounds and retries are those of a bus (`bus.transports`); the framing is another, and there
is no handshake (docs/wire/tcp.md).
"""

import contextlib
import logging
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, Literal

from bridges.media.tcp.frames import CobsDecoder, FramesDecoder, join, join_cobs
from bridges.media.uart.codec import WIRE_BYTES_MAX
from bus.errors import LinkError, words_of
from bus.hub import Hub, Pipe, Stats
from bus.transports.stream import StreamOptions, StreamPipe
from bus.transports.tcp import DialLink, ListenLink
from bus.wire.batch import Batch

log = logging.getLogger("buscoupler.bridges")

_SERVED_S = 1.0  # a connection that lasted so long, or brought something, was a success: retry soon

Framing = Literal["frames", "cobs"]
Join = Callable[[Batch], tuple[bytes, int]]


class FramesPipe(StreamPipe):
    """One peer. `fault` says why it was closed."""

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        scratch: bytearray,
        options: StreamOptions,
        on_close: Callable[[StreamPipe], None],
        framing: Framing,
        join: Join,
    ) -> None:
        super().__init__(sock, name, scratch, options, on_close)
        self.fault = ""
        self._join = join
        self._unfit = "malformed" if framing == "frames" else "oversize"
        decoder: Any = (
            FramesDecoder(scratch) if framing == "frames" else CobsDecoder(scratch, self.stats.rejected)
        )
        self._decoder = decoder

    def start(self, hub: Hub, loop: AbstractEventLoop, handshake_s: float) -> None:
        """Attach at once: there is no greeting."""
        self._hub, self._loop = hub, loop
        self._enter()

    def send(self, batch: Batch) -> None:
        """As the stream's, re-framed; what the framing cannot carry is dropped and counted."""
        data, count = self._join(batch)
        if count < batch.count:
            self.stats.offered += batch.count - count
            self.stats.drop(self._unfit, batch.count - count)
        if count:
            super().send(Batch(data, count))

    def purge(self, reason: str) -> list[bytes]:
        """Close the pipe if anything waits: what was framed cannot be taken back."""
        return Pipe.purge(self, reason)

    def _fail(self, reason: str, expected: bool = False) -> None:
        self.fault = self.fault or reason
        super()._fail(reason, expected)


class _Framed:
    """What listening and dialling have in common: the pipes they make, and what these counted."""

    name: str
    options: StreamOptions
    pipes: set[StreamPipe]
    framing: Framing = "frames"
    silence_ms = 0
    fault = ""
    losses = 0
    _scratch: bytearray
    _closed: bool
    _last: tuple[Batch, tuple[bytes, int]] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gone = Stats()

    def reopen(self) -> None:
        """A link of a bus is opened once; a bridge's may be opened again."""
        self._closed = False

    def _make_pipe(
        self, sock: socket.socket, name: str, on_close: Callable[[StreamPipe], None]
    ) -> StreamPipe:
        def closed(pipe: StreamPipe) -> None:
            self._lost(pipe)
            on_close(pipe)

        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.silence_ms)
        return FramesPipe(sock, name, self._scratch, self.options, closed, self.framing, self._join)

    def _join(self, batch: Batch) -> tuple[bytes, int]:
        """Framed once for all peers: the hub gives each of them the same batch in turn."""
        if self._last is None or self._last[0] is not batch:
            self._last = batch, join(batch) if self.framing == "frames" else join_cobs(batch)
        return self._last[1]

    def _lost(self, pipe: StreamPipe) -> None:
        self.gone.add(pipe.stats)
        self.losses += 1
        if isinstance(pipe, FramesPipe) and pipe.fault:
            self.fault = f"{pipe.name}: {pipe.fault}"

    def stats(self) -> Stats:
        total = Stats()
        for stats in (self.gone, *(pipe.stats for pipe in self.pipes)):
            total.add(stats)
        return total


class _Listen(_Framed, ListenLink):
    pass


class _Dial(_Framed, DialLink):
    async def _connect(self) -> socket.socket:
        try:
            return await super()._connect()
        except OSError as error:
            self.fault = f"cannot connect: {words_of(error)}"
            raise

    async def _serve(self, sock: socket.socket) -> bool:
        """Whether the connection was of use. One that is closed at once backs off like one refused."""
        received, began_s = self.stats().received, self._loop.time()
        await super()._serve(sock)
        return self.stats().received > received or self._loop.time() - began_s > _SERVED_S


class TcpFramesLink:
    """A plain TCP stream of frames as a link: dialled, or listening for many peers, each with a pipe.

    `host`, `port`: where to; `*` listens on every interface, port 0 on any (`url` tells which).
    `framing`: `frames` for messages back to back, where an illegal header costs the peer its connection;
    `cobs` for what a serial server passes on (docs/wire/uart.md), which finds its way back.
    `queue_bytes` bounds what waits for each peer; more is dropped and counted `queue full`; `peers` how many
    may be connected. `silence_s`: a peer that takes nothing for so long while something waits is closed.
    `retry_min_s`, `retry_max_s`: the pauses of a dialling link. Raises `LinkError` for what can never work.
    `fault` is the last trouble in words, `losses` counts the connections that ended.
    """

    def __init__(
        self,
        host: str,
        port: int,
        mode: Literal["dial", "listen"] = "dial",
        framing: Framing = "frames",
        queue_bytes: int = 1 << 20,
        peers: int = 1024,
        silence_s: float = 30.0,
        **retry: Any,
    ) -> None:
        self.name = f"tcp:{host}:{port}"
        _check(self.name, port, mode, framing, silence_s)
        url = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
        make = _Dial if mode == "dial" else _Listen
        options = {"queue_bytes": queue_bytes, "message_bytes": WIRE_BYTES_MAX, "peers": peers}
        try:
            self._link: _Dial | _Listen = make(url, **options, **retry)
        except ValueError as error:
            raise LinkError(f"{self.name}: {error}") from error
        self._link.framing, self._link.silence_ms = framing, int(silence_s * 1000)
        self.mode, self.framing, self.queue_bytes = mode, framing, queue_bytes
        self._open = False

    @property
    def url(self) -> str:
        """Where it listens or dials; the port that was bound, once it listens."""
        return self._link.url

    @property
    def pipes(self) -> set[StreamPipe]:
        """The peers that are connected."""
        return self._link.pipes

    @property
    def state(self) -> Literal["closed", "up", "waiting"]:
        """A listening link is up while it listens, a dialling one while it is connected."""
        if not self._open:
            return "closed"
        return "up" if self.mode == "listen" or self.pipes else "waiting"

    @property
    def fault(self) -> str:
        return self._link.fault

    @property
    def losses(self) -> int:
        return self._link.losses

    @property
    def stats(self) -> Stats:
        """The counts of all peers so far, those that have gone included, added up now."""
        return self._link.stats()

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start. Raises `LinkError` where it cannot listen."""
        if not self._open:
            self._link.reopen()
            self._link.open(hub, loop)
            self._open = True

    def close(self) -> None:
        """Stop, and close all peers. Idempotent."""
        self._open = False
        self._link.close()


def _check(name: str, port: int, mode: str, framing: str, silence_s: float) -> None:
    if mode not in ("dial", "listen"):
        raise LinkError(f"{name}: mode is dial or listen, not {mode}")
    if framing not in ("frames", "cobs"):
        raise LinkError(f"{name}: framing is frames or cobs, not {framing}")
    if not (0 if mode == "listen" else 1) <= port <= 65535:
        raise LinkError(f"{name}: no such port")
    if silence_s < 1:
        raise LinkError(f"{name}: silence_s must be at least 1")
